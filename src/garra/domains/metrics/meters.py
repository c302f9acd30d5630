"""What is counted, and the counters. There are at most so many series; what comes beyond them is counted as dropped."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Final

from garra.core.exposition import Family, Kind, Spread, word
from garra.core.value import frozen, record

MOST: Final = 2_048
"""Series of all metrics together."""
SECONDS: Final = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)


@frozen
class Metric:
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()


CATALOG: Final[Mapping[str, Metric]] = {
    "run_completed_total": Metric("counter", "Turns that ended.", ("outcome", "origin")),
    "run_duration_seconds": Metric("histogram", "From the acceptance of a turn to its end.", ("outcome",)),
    "run_queue_wait_seconds": Metric("histogram", "How long turns waited for their conversation.", ()),
    "model_call_total": Metric("counter", "Requests to models.", ("provider", "model", "outcome")),
    "model_call_duration_seconds": Metric("histogram", "How long requests to models took.", ("provider", "model")),
    "model_first_token_seconds": Metric("histogram", "Until an answer began to come.", ("provider", "model")),
    "model_failover_total": Metric("counter", "Requests made since one before had failed.", ("level", "provider")),
    "model_tokens_total": Metric("counter", "Tokens, as providers count them.", ("provider", "model", "token_type")),
    "model_cost_usd_total": Metric("counter", "US dollars, where a price is known.", ("provider", "model")),
    "tool_execution_total": Metric("counter", "Calls of tools.", ("tool", "outcome")),
    "tool_execution_duration_seconds": Metric("histogram", "How long tools took, waits included.", ("tool",)),
    "approval_total": Metric("counter", "Questions to a person that ended.", ("outcome",)),
    "approval_wait_seconds": Metric("histogram", "How long questions waited for a person.", ()),
    "compaction_total": Metric("counter", "Histories that were made smaller.", ("step",)),
    "message_received_total": Metric("counter", "Messages that came in.", ("channel",)),
    "message_delivery_total": Metric("counter", "Messages that went out, by how it ended.", ("channel", "outcome")),
    "series_dropped_total": Metric("counter", "Measurements for which there was no series left.", ()),
}


@record
class _Bins:
    counts: list[int] = field(default_factory=lambda: [0] * (len(SECONDS) + 1))
    sum: float = 0.0


class Meters:
    """Counters and histograms of CATALOG. All calls are made on the event loop's thread."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._numbers: dict[str, dict[tuple[str, ...], float]] = {}
        self._bins: dict[str, dict[tuple[str, ...], _Bins]] = {}
        self._series = self._dropped = 0

    def count(self, name: str, *labels: str, by: float = 1.0) -> None:
        rows = self._numbers.setdefault(name, {})
        values = tuple(map(word, labels))
        if values in rows or self._room():
            rows[values] = rows.get(values, 0.0) + by

    def time(self, name: str, ms: float, *labels: str) -> None:
        """Something took so many milliseconds."""
        rows = self._bins.setdefault(name, {})
        values = tuple(map(word, labels))
        if values not in rows and not self._room():
            return
        bins = rows.setdefault(values, _Bins())
        seconds = max(0.0, ms / 1000)
        bins.counts[bisect_left(SECONDS, seconds)] += 1
        bins.sum += seconds

    def _room(self) -> bool:
        if self._series >= self._most:
            self._dropped += 1
            return False
        self._series += 1
        return True

    def families(self) -> list[Family]:
        """Everything that was counted so far."""
        found = [_family(name, metric, self._rows(name, metric)) for name, metric in CATALOG.items()]
        return [family for family in found if family.rows]

    def _rows(self, name: str, metric: Metric) -> Sequence[tuple[tuple[str, ...], float | Spread]]:
        if name == "series_dropped_total":
            return [((), float(self._dropped))]
        if metric.kind != "histogram":
            return sorted(self._numbers.get(name, {}).items())
        bins = sorted(self._bins.get(name, {}).items(), key=lambda row: row[0])
        return [(values, Spread(SECONDS, tuple(each.counts), round(each.sum, 6))) for values, each in bins]


def _family(name: str, metric: Metric, rows: Sequence[tuple[tuple[str, ...], float | Spread]]) -> Family:
    return Family(name, metric.kind, metric.help, metric.labels, tuple(rows))
