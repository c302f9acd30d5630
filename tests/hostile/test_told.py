"""Secrets that stand where they may, asked for where they must not be told."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from tests.e2e.resident import TOKEN, Client, Resident, StrictModel, strict_model
from tests.hostile.cases import Hostile, of

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

PLANTED, AROUND = "Zq81fLm0pasWd77wX", "sk-planted-in-the-environment"


async def answer(program: Resident, client: Client, model: StrictModel, case: Hostile) -> str:
    if "command" in case.more:
        code, out, err = await program.run(*case["command"])
        assert "Traceback" not in out + err
        return f"{code} {out} {err}"
    if "method" in case.more:
        try:
            return json.dumps(await client.call(case["method"], json.loads(case.get("params", "{}"))))
        except RuntimeError as refused:
            return str(refused)
    await client.say(f"tool:{case['tool']} {json.dumps(case['arguments'])}", f"agent:main:{case.id.partition('/')[2]}")
    told = [said["content"] for said in model.requests[-1].body["messages"] if said["role"] == "tool"]
    return json.dumps(told[-1])


async def test_no_answer_holds_a_secret(tmp_path: Path) -> None:
    async with strict_model() as model:
        program = Resident(tmp_path, model.url)
        program.config["models"]["providers"]["fake"]["apiKey"] = PLANTED
        program.config["tools"] = {"toolSearch": False, "loopDetection": {"enabled": False}}
        program.env["OPENAI_API_KEY"] = AROUND
        program.write()
        await program.start()
        try:
            async with program.client() as client:
                await client.say("something to keep")
                await client.say("THE OTHER'S WORDS", "agent:main:private")
                assert model.requests[-1].key == PLANTED  # the control: it is used
                found = {}
                for case in of("told"):
                    told = await answer(program, client, model, case)
                    secrets = [each for each in (PLANTED, TOKEN, AROUND, case.get("never")) if each and each in told]
                    if secrets:
                        found[case.id] = f"it tells {secrets}: {told[:300]}"
                assert not found, json.dumps(found, indent=1)
            log = await asyncio.to_thread(program.log)
            assert PLANTED not in log + TOKEN
        finally:
            program.kill()
            await program.gone()
