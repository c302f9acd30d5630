"""Traces, metrics and log lines to a collector, and what a dead one costs."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from garra.testing.model_server import Say, Use
from tests.e2e.resident import KEY, free_port, resident, strict_model

pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="needs garra[otel]")
from tests.e2e.collector import attributes, collector

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(90)]
WORDS = "words-that-stay-in-the-house"
SESSION = "agent:main:a-person-by-name"


def on(url: str, **more: Any) -> dict[str, Any]:
    otel = {"enabled": True, "endpoint": url, "headers": {"x-tenant": "mine"}, "flushIntervalMs": 1000, **more}
    return {"diagnostics": {"otel": {"serviceName": "my-garra", **otel}}}


async def test_a_turn_reaches_the_collector(tmp_path: Path) -> None:
    async with (
        strict_model() as model,
        collector() as there,
        resident(tmp_path, model.url, on(there.url, logs=True)) as house,
    ):
        model.then(Use("read", {"path": "AGENTS.md"}), Say(WORDS))
        async with house.client() as client:
            await client.say(f"do it, {WORDS}", session=SESSION)
        await there.until(lambda: len(there.spans) >= 6 and "garra_model_tokens_total" in there.metrics)
        names = [span.name for span in there.spans]
        assert {"turn", "tool read", "model fake/fake", "context context"} <= set(names)
        root = next(span for span in there.spans if span.name == "turn")
        assert {span.trace_id for span in there.spans} == {root.trace_id}
        assert {span.parent_span_id for span in there.spans if span is not root} == {root.span_id}
        asked = attributes(next(span for span in there.spans if span.name == "model fake/fake"))
        assert asked["gen_ai.request.model"] == "fake"
        assert asked["gen_ai.usage.input_tokens"] == 11
        assert there.metrics["garra_run_duration_seconds"].histogram.data_points[0].count == 1
        assert there.metrics["garra_run_completed_total"].sum.is_monotonic
        assert there.services == {"my-garra"}
        assert all(each["x-tenant"] == "mine" for each in there.headers)
        await there.until(lambda: bool(there.lines))
        everything = b"".join(there.raw)
        assert not [text for text in (WORDS, SESSION, KEY) if text.encode() in everything]


async def test_a_dead_collector_costs_one_warning(tmp_path: Path) -> None:
    async with strict_model() as model, resident(tmp_path, model.url, on(f"http://127.0.0.1:{free_port()}")) as house:
        async with house.client() as client:
            for _ in range(3):
                model.then(Say("fine"))
                assert (await client.say("hello"))["state"] == "final"
            async with asyncio.timeout(40):
                while "not taken" not in house.log():  # noqa: ASYNC110 - another process
                    await asyncio.sleep(0.2)
            await asyncio.sleep(3)
        lines = [line for line in house.log().splitlines() if "taken at" in line or "opentelemetry" in line.lower()]
        assert len(lines) == 1, lines
        assert "Traceback" not in house.log()
        assert await house.stop() == 0


async def test_lines_of_the_log_say_which_run(tmp_path: Path) -> None:
    async with strict_model() as model, resident(tmp_path, model.url, {"logging": {"level": "debug"}}) as house:
        model.then(Say("fine"))
        async with house.client() as client:
            run_id = await client.send("hello")
            await client.until(run_id)
            found = await client.call("logs.tail")
        lines = [json.loads(line) for line in found["lines"]]
        of_run = [line for line in lines if line.get("run_id") == run_id]
        ended = next(line for line in of_run if line["message"].startswith("turn ended: ok after"))
        assert (ended["agent_id"], ended["level"]) == ("main", "debug")
        assert len(ended["session_id"]) == 36
