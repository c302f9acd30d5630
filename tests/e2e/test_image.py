"""What the Dockerfile says of the running program, said to the program itself: how it binds, and how it is asked."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.test_image import instructions
from tests.e2e.resident import ROOT, TOKEN, Resident, strict_model

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(60)]


def said(word: str) -> str:
    return [rest for each, rest in instructions((ROOT / "Dockerfile").read_text()) if each == word][-1]


async def test_the_image_s_environment_and_its_question(tmp_path: Path) -> None:
    async with strict_model() as model:
        house = Resident(tmp_path, model.url)
        env = dict(re.findall(r"(GARRA_\w+)=(\S+)", said("ENV")))
        house.config["gateway"] = {}
        house.write()
        house.env |= {"GARRA_GATEWAY_BIND": env["GARRA_GATEWAY_BIND"], "GARRA_GATEWAY_PORT": str(house.port)}
        code, _, err = await house.run("gateway", "run")
        assert code == 1
        assert "without auth" in err
        house.env["GARRA_GATEWAY_TOKEN"] = TOKEN
        await house.start()
        assert f"ws://0.0.0.0:{house.port}" in house.log()
        question = json.loads(said("HEALTHCHECK").partition(" CMD ")[2])
        question[0] = sys.executable
        asked = await asyncio.to_thread(subprocess.run, question, env=house.env, check=False)
        assert asked.returncode == 0
        await house.stop()
        asked = await asyncio.to_thread(subprocess.run, question, env=house.env, capture_output=True, check=False)
        assert asked.returncode != 0


async def test_a_bind_that_is_none_is_said_in_a_line(tmp_path: Path) -> None:
    house = Resident(tmp_path, "http://127.0.0.1:9")
    house.env["GARRA_GATEWAY_BIND"] = "everywhere"
    code, _, err = await house.run("gateway", "run")
    assert code == 1
    assert "GARRA_GATEWAY_BIND is 'everywhere'" in err
    assert err.count("\n") == 1
