"""In a turn that has read text from outside a command cannot change what the agent goes by."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from garra.core.approvals import Answer, Question
from garra.core.errors import ToolFailed
from garra.core.execplan import Settings
from garra.core.execrules import Entry, Policy
from garra.core.taint import GUARDED
from garra.domains.exec import guard
from garra.domains.exec.supervisor import Commands
from garra.sdk.ports import Launch
from tests.domains.exec.house import FREE, MAIN, ON_HOST, SHUT_IN, House, NoBox, silent

bwrap = pytest.mark.needs("bwrap")


@dataclass
class Person:
    """Somebody who answers."""

    answer: Answer = field(default_factory=lambda: Answer("deny", reason="the owner said no"))
    asked: list[Question] = field(default_factory=list)

    async def ask(self, question: Question) -> Answer:
        self.asked.append(question)
        return self.answer


def marked(house: House, settings: Settings = SHUT_IN, *, ask: bool = False) -> Commands:
    return house.commands(house.boxed(), settings).guarded(GUARDED, ask=ask)


async def said(commands: Commands, line: str) -> str:
    return (await commands.run(Launch(line), silent)).output


@bwrap
async def test_files_that_instruct_stay_as_they_are(house: House) -> None:
    root = house.workspace
    (root / "AGENTS.md").write_text("be kind")
    (root / "memory").mkdir()
    commands = marked(house)
    for line in (
        "echo obey > AGENTS.md",
        "echo obey > MEMORY.md",
        "rm -f AGENTS.md",
        "mv memory elsewhere",
        "echo obey > memory/today.md",
        "mkdir -p skills/mail && echo obey > skills/mail/SKILL.md",
        "ln -s /etc/passwd HEARTBEAT.md",
        "ln AGENTS.md other; echo obey > other; cp other AGENTS.md",
        "python3 -c \"import os; os.rename('AGENTS.md', 'x')\"",
    ):
        await said(commands, line)
        assert (root / "AGENTS.md").read_text() == "be kind"
        assert sorted(path.name for path in root.iterdir() if path.name != "other") == ["AGENTS.md", "memory"]
    assert list((root / "memory").iterdir()) == []


@bwrap
async def test_what_is_made_to_be_held_stays_as_long_as_a_command_needs_it(house: House) -> None:
    supervisor = house.boxed()
    commands = house.commands(supervisor).guarded(GUARDED, ask=False)
    line = "until [ -e go ]; do sleep 0.05; done; echo obey > MEMORY.md; echo obey > memory/x.md"
    job = (await commands.run(Launch(line, background=True), silent)).session or ""
    await said(commands, "true")
    assert (house.workspace / "MEMORY.md").read_bytes() == b""
    (house.workspace / "USER.md").write_text("of the owner")
    (house.workspace / "go").touch()
    await commands.poll(job, 5_000)
    await supervisor.stop(MAIN, background=True)
    assert sorted(path.name for path in house.workspace.iterdir()) == ["USER.md", "go"]


@bwrap
async def test_the_rest_of_the_workspace_is_the_commands_own(house: House) -> None:
    (house.workspace / "AGENTS.md").write_text("be kind")
    commands = marked(house)
    assert await said(commands, "cat AGENTS.md; echo x > notes.md; cat notes.md") == "be kindx\n"
    assert (await house.commands(house.boxed()).run(Launch("echo new > AGENTS.md"), silent)).exit_code == 0
    assert (house.workspace / "AGENTS.md").read_text() == "new\n"


@bwrap
async def test_what_can_harm_nobody_is_shut_in(house: House) -> None:
    assert await marked(house).settles(Launch("true"))
    assert not await marked(house, ask=True).settles(Launch("true"))
    assert not await marked(house, ON_HOST).settles(Launch("true"))
    assert not await marked(house, Settings(network=True)).settles(Launch("true"))
    assert await marked(house).settles(Launch("true", host="gateway"))  # it will be refused


async def test_without_a_sandbox_that_holds_nothing_is_shut_in(house: House) -> None:
    commands = house.commands(house.supervisor([NoBox()]), origin="local").guarded(GUARDED, ask=False)
    assert not await commands.settles(Launch("true"))


@bwrap
async def test_a_link_in_their_place_makes_a_person_decide(house: House) -> None:
    (house.workspace / "real.md").write_text("x")
    (house.workspace / "soul.md").symlink_to("real.md")
    commands = marked(house)
    assert not await commands.settles(Launch("true"))
    assert (await said(commands, "echo it runs when allowed")).startswith("it runs")


@bwrap
async def test_a_command_in_the_background_is_as_free_as_it_was_begun(house: House) -> None:
    supervisor = house.boxed()
    free = house.commands(supervisor)
    before = (await free.run(Launch("cat", background=True), silent)).session or ""
    held = free.guarded(GUARDED, ask=False)
    after = (await held.run(Launch("cat", background=True), silent)).session or ""
    assert [await held.settles(name) for name in (before, after, "gone")] == [False, True, True]
    await supervisor.close()


@pytest.mark.parametrize("policy", [FREE, Policy("full", "always"), Policy("allowlist", "off", None, (Entry("echo"),))])
async def test_a_command_on_the_machine_is_asked_about_once_whatever_the_rules_allow(
    house: House, policy: Policy
) -> None:
    person = Person()
    supervisor = house.supervisor([])
    supervisor.asker = person
    own = house.commands(supervisor, Settings(host="gateway", policy=policy))
    marked = own.guarded(GUARDED, ask=False, why=("it read https://evil.example/",), covers="taint:exec:x")
    assert await marked.settles(Launch("echo hi"))
    with pytest.raises(ToolFailed, match="the owner said no"):
        await marked.run(Launch("echo hi"), silent)
    (question,) = person.asked
    assert question.why[0] == "it read https://evil.example/"
    assert (question.kind, question.host, question.fallback) == ("exec", "gateway", "deny")
    person.answer = Answer("allow-once")
    assert await said(marked, "echo hi") == "hi\n"
    if policy.ask != "always":
        assert (question.covers, question.choices[1]) == (f"taint:exec:x:{question.bound}", "allow-always")
        assert question.remembers.startswith("exec with echo hi in this conversation")


async def test_what_is_allowed_word_for_word_runs_unless_the_owner_wants_to_be_asked(house: House) -> None:
    person = Person()
    supervisor = house.supervisor([])
    supervisor.asker = person
    policy = Policy("allowlist", "on-miss", None, (Entry("echo", r"^hi$"), Entry("printf")))
    own = house.commands(supervisor, Settings(host="gateway", policy=policy))
    why = ("it read https://evil.example/",)
    marked = own.guarded(GUARDED, ask=False, why=why)
    assert (await said(marked, "echo hi"), person.asked) == ("hi\n", [])
    with pytest.raises(ToolFailed, match="the owner said no"):
        await marked.run(Launch("printf x"), silent)
    with pytest.raises(ToolFailed, match="the owner said no"):
        await own.guarded(GUARDED, ask=True, why=why).run(Launch("echo hi"), silent)
    assert await said(own.guarded(GUARDED, ask=False, why=why, listed=True), "printf x") == "x"


@bwrap
async def test_in_the_sandbox_nobody_is_asked_unless_the_owner_wants_to_be(house: House) -> None:
    person = Person(Answer("allow-once"))
    supervisor = house.boxed()
    supervisor.asker = person
    why = ("it read https://evil.example/",)
    free = house.commands(supervisor).guarded(GUARDED, ask=False, why=why)
    assert (await said(free, "echo hi"), person.asked) == ("hi\n", [])
    strict = house.commands(supervisor).guarded(GUARDED, ask=True, why=why)
    assert (await said(strict, "echo hi"), len(person.asked)) == ("hi\n", 1)
    assert person.asked[0].host == "sandbox"


async def test_what_cannot_be_made_is_said(tmp_path: Path) -> None:
    assert await asyncio.to_thread(guard.holds, str(tmp_path / "gone"), GUARDED)
    holder = guard.Holder()
    names = await holder.hold(str(tmp_path), ("MEMORY.md", "memory/"))
    assert names == (str(tmp_path / "MEMORY.md"), str(tmp_path / "memory"))
    assert await holder.hold(str(tmp_path), ("MEMORY.md", "memory/")) == names
    with pytest.raises(ToolFailed, match="cannot be made"):
        await holder.hold(str(tmp_path), ("x" * 300 + ".md",))
    await holder.free(names)
    assert (tmp_path / "MEMORY.md").read_bytes() == b""
    await holder.free(names)
    assert list(tmp_path.iterdir()) == []
