from __future__ import annotations

from garra.core.exposition import Spread
from garra.domains.metrics.meters import CATALOG, SECONDS, Meters


def test_what_is_counted_and_timed_is_told() -> None:
    meters = Meters()
    meters.count("run_completed_total", "ok", "channel")
    meters.count("run_completed_total", "ok", "channel", by=2)
    meters.count("run_completed_total", "ok", "agent:main:telegram:direct:1")
    meters.time("run_duration_seconds", 30, "ok")
    meters.time("run_duration_seconds", 10_000_000, "ok")
    found = {family.name: family for family in meters.families()}
    assert found["run_completed_total"].rows == ((("ok", "channel"), 3.0), (("ok", "other"), 1.0))
    spread = found["run_duration_seconds"].rows[0][1]
    assert isinstance(spread, Spread)
    assert (spread.counts[SECONDS.index(0.1)], spread.counts[-1], spread.count) == (1, 1, 2)
    assert "tool_execution_total" not in found


def test_there_are_only_so_many_series() -> None:
    meters = Meters(most=3)
    for name in ("a", "b", "c", "d", "e"):
        meters.count("message_received_total", name)
    meters.time("model_first_token_seconds", 5, "p", "m")
    meters.count("message_received_total", "a")
    found = {family.name: family for family in meters.families()}
    assert [row[0][0] for row in found["message_received_total"].rows] == ["a", "b", "c"]
    assert found["message_received_total"].rows[0][1] == 2
    assert found["series_dropped_total"].rows == (((), 3.0),)
    assert "model_first_token_seconds" not in found


def test_every_metric_says_what_it_is() -> None:
    for name, metric in CATALOG.items():
        assert metric.help.endswith("."), name
        assert (metric.kind == "counter") == name.endswith("_total"), name
