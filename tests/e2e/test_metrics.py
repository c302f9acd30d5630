"""`GET /metrics` of a gateway that runs: off by default, behind the secret, with nothing in it that names anybody."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from garra.testing.model_server import Fail, Say, Use
from tests.e2e.resident import KEY, TOKEN, Resident, resident, strict_model

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(60)]
BEARER = f"Authorization: Bearer {TOKEN}"
ON = {"diagnostics": {"prometheus": {"enabled": True}}}


async def measured(house: Resident) -> dict[str, float]:
    """Every sample by its name with its labels."""
    status, body = await house.get("/metrics", BEARER)
    assert status == 200, body
    samples = [line.rpartition(" ") for line in body.decode().splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in samples}


async def test_metrics_of_turns(tmp_path: Path) -> None:
    async with strict_model() as model, resident(tmp_path, model.url, ON) as house:
        assert (await house.get("/metrics"))[0] == 401
        model.then(Fail(503, "overloaded, later"), Use("read", {"path": "AGENTS.md"}), Say("done"))
        async with house.client() as client:
            await client.say("do it", session="agent:main:secret-name-of-a-conversation")
            found = await measured(house)
        assert found['garra_run_completed_total{outcome="ok",origin="operator"}'] == 1
        assert found['garra_model_call_total{provider="fake",model="fake",outcome="overloaded"}'] == 1
        assert found['garra_model_call_total{provider="fake",model="fake",outcome="success"}'] == 2
        assert found['garra_model_tokens_total{provider="fake",model="fake",token_type="input"}'] == 22
        assert found['garra_tool_execution_total{tool="read",outcome="ok"}'] == 1
        assert found['garra_run_duration_seconds_count{outcome="ok"}'] == 1
        assert found["garra_gateway_connections"] == 1
        assert found["process_resident_memory_bytes"] > 1 << 20
        _, body = await house.get("/api/diagnostics/prometheus", BEARER)
        assert b"secret-name" not in body
        assert KEY.encode() not in body


async def test_metrics_go_on_and_off_while_the_gateway_runs(tmp_path: Path) -> None:
    async with strict_model() as model, resident(tmp_path, model.url) as house:
        assert (await house.get("/metrics", BEARER))[0] == 404
        house.config |= {"plugins": {"entries": {"diagnostics-prometheus": {"enabled": True}}}}
        house.write()
        await until(house, 200)
        house.config.pop("plugins")
        house.write()
        await until(house, 404)


async def until(house: Resident, status: int) -> None:
    async with asyncio.timeout(30):
        while (await house.get("/metrics", BEARER))[0] != status:  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.1)
    assert json.loads((await house.get("/readyz"))[1])["ready"] is True
