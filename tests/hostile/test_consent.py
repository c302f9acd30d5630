"""A yes holds for what was shown: what becomes another before it is given does not run."""

from __future__ import annotations

import asyncio
import json
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from garra.core.approvals import Answer, Question
from garra.core.errors import ToolFailed
from garra.core.execplan import Settings
from garra.core.execrules import Policy
from garra.core.ids import AgentId, RunId
from garra.domains.exec.supervisor import Behalf, Commands
from garra.io.process.door import Programs
from garra.io.tasks import Tasks
from garra.sdk.ports import Launch
from tests.domains.exec.house import MAIN, House, silent
from tests.hostile.cases import Hostile, of

ASKING = Policy("allowlist", "on-miss", None, ())
ME = Behalf(AgentId("main"), RunId("r"), "telegram:bot:7")


@dataclass
class Person:
    """Says yes, after `then` was done in the folder."""

    folder: Path
    then: str = ""
    asked: list[Question] = field(default_factory=list)

    async def ask(self, question: Question) -> Answer:
        self.asked.append(question)
        await asyncio.to_thread(subprocess.run, ["/bin/sh", "-c", self.then], cwd=self.folder, check=True)
        return Answer("allow-once", "me")


def furnish(folder: Path) -> None:
    for name in ("tool", "good", "evil"):
        (folder / name).write_text(f"#!/bin/sh\n{'touch made' if name == 'evil' else 'echo fine'}\n")
        (folder / name).chmod(0o755)
    (folder / "link").symlink_to("good")
    (folder / "script.sh").write_text("echo fine\n")
    for name in ("sub", "other"):
        (folder / name).mkdir()
    (folder / "way").symlink_to("sub")


async def said(commands: Commands, case: Hostile, folder: Path) -> str:
    """What came of it."""
    workdir = case.get("workdir", ".")
    try:
        return (
            await commands.run(Launch(case["line"].replace("{folder}", str(folder)), workdir=workdir), silent)
        ).output
    except ToolFailed as refused:
        return refused.message


@pytest.mark.parametrize("case", of("consent"), ids=lambda case: case.id)
async def test_what_changed_meanwhile_does_not_run(tmp_path: Path, case: Hostile) -> None:
    programs = Programs()
    async with Tasks() as tasks:
        for change in ("", case["then"]):  # the control, where nothing is changed, then the attack
            folder = tmp_path / ("changed" if change else "same")
            folder.mkdir()
            furnish(folder)
            person = Person(folder, change.replace("{folder}", str(folder)))
            supervisor = House(folder, tasks, programs).supervisor([])
            supervisor.asker = person
            commands = supervisor.exec_for(
                MAIN, str(folder), "channel", Settings(host="gateway", policy=ASKING), behalf=ME
            )
            told = await said(commands, case, folder)
            assert len(person.asked) == 1, json.dumps(told)
            made = await asyncio.to_thread(lambda where: [*where.rglob("made"), *where.rglob("mad")], folder)
            if change:
                assert "no longer what the person was shown" in told
                assert not made
            else:
                assert "no longer" not in told
        await programs.close()
