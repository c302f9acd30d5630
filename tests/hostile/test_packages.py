"""Plugins that are another than they say, or where none belongs: none is loaded, the one beside them is."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from tests.e2e.resident import Resident, strict_model
from tests.e2e.test_taint import worldly
from tests.hostile.cases import Hostile, of

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(90)]

CODE = """
open({made!r}, "a").write({id!r} + "\\n")
from garra.sdk.tool import Result, ToolInfo


class T:
    info = ToolInfo({id!r}, "T", "T.", {{"type": "object"}}, source="plugin", declared=True)

    async def execute(self, call, update):
        return Result.of("ran")
"""


def put(root: Path, case: Hostile, made: Path) -> None:
    name = case.id.partition("/")[2]
    folder = root / "state" / case.get("place", "extensions") / name
    folder.mkdir(parents=True)
    module = case.get("module", "code:T")
    tool = (
        f'kind = "{case.get("kind", "tool")}"\napi = {case.get("api", 1)}\n[[tool]]\nname = "t"\nmodule = "{module}"\n'
    )
    (folder / "manifest.toml").write_text(
        f"{case['manifest']}\n{tool.replace('api = 1', '') if 'api' in case['manifest'] else tool}"
    )
    for file in ("code.py", "secret.py", "../secret.py"):
        (folder / file).write_text(CODE.format(made=str(made), id=name))


async def test_no_package_comes_in_by_itself(tmp_path: Path) -> None:
    made = tmp_path / "made"
    async with strict_model() as model:
        program = Resident(tmp_path, model.url)
        entries = worldly(tmp_path)["plugins"]["entries"]
        names = []
        for case in of("packages"):
            put(tmp_path, case, made)
            identity = case["manifest"].partition('id = "')[2].partition('"')[0].replace("\\n", "\n")
            if case.get("enabled") and identity:
                entries[identity] = {"enabled": True}
            names.append(case.id)
        program.config["plugins"] = {"entries": entries}
        program.config["tools"] = {"toolSearch": False}
        program.write()
        await program.start()
        try:
            async with program.client() as client:
                await client.say('tool:page {"text": "x"}')  # the control: the plugin beside them does its work
                last = json.dumps(model.requests[-1].body["messages"][-1])
                assert "EXTERNAL_UNTRUSTED" in last
                await client.say('tool:t {"text": "x"}')
                assert "ran" not in str(model.requests[-1].body["messages"][-1]["content"])
            loaded = await asyncio.to_thread(lambda: made.read_text() if made.exists() else "")
            assert not loaded, loaded
        finally:
            program.kill()
            await program.gone()
