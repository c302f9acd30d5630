"""What was judged is what runs, and what a person said yes to is what he was shown."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from garra.core.approvals import Answer, Question
from garra.core.errors import ToolFailed
from garra.core.execplan import Settings
from garra.core.execrules import Entry, Policy, Rules
from garra.core.ids import AgentId, RunId
from garra.domains.exec.supervisor import Behalf, Commands, Supervisor
from garra.sdk.ports import Launch, Ran
from tests.domains.exec.house import FREE, MAIN, House, silent
from tests.domains.exec.smuggling import ALL, ALLOWED, CLASSES

LISTED = Policy("allowlist", "off", None, tuple(map(Entry, ALLOWED)))
ASKING = replace(LISTED, ask="on-miss")
ME = Behalf(AgentId("main"), RunId("r"), "telegram:bot:7")


@dataclass
class Person:
    """Somebody who is asked. He does `meanwhile`, then says `answer`."""

    answer: Answer = field(default_factory=lambda: Answer("allow-once", "me"))
    meanwhile: Callable[[], object] = lambda: None
    asked: list[Question] = field(default_factory=list)

    async def ask(self, question: Question) -> Answer:
        self.asked.append(question)
        await asyncio.to_thread(self.meanwhile)
        return self.answer


def commands(
    house: House, policy: Policy, person: Person | None = None, supervisor: Supervisor | None = None
) -> Commands:
    made = supervisor or house.supervisor([])
    made.asker = person
    return made.exec_for(MAIN, str(house.workspace), "channel", Settings(host="gateway", policy=policy), behalf=ME)


async def run(where: Commands, text: str, **more: Any) -> Ran:
    return await where.run(replace(Launch(text), **more), silent)


async def tried(where: Commands, text: str) -> str:
    """Why it did not run; empty when it did."""
    try:
        await run(where, text)
    except ToolFailed as refused:
        return refused.message
    return ""


def script(path: Path, text: str = "touch canary-script") -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_the_corpus_is_large() -> None:
    assert len(ALL) >= 240
    assert min(map(len, CLASSES.values())) >= 20
    assert len({text for _, text in ALL}) == len(ALL)


@pytest.mark.parametrize("kind", CLASSES)
async def test_nothing_is_smuggled_past_an_allowlist(house: House, kind: str) -> None:
    for name in ("ls", "cat", "touch", "x.so"):
        await asyncio.to_thread(script, house.workspace / name)
    where = commands(house, LISTED)
    for number, text in enumerate(CLASSES[kind]):
        canary = house.workspace / f"canary-{number}"
        refused = await tried(where, text.format(x=canary))
        assert not refused or refused.startswith(("No command was run: ", "command: "))
        assert not await asyncio.to_thread(canary.exists), text
        assert not await asyncio.to_thread((house.workspace / "canary-script").exists), text


@pytest.mark.parametrize("kind", CLASSES)
async def test_what_is_not_covered_is_asked_for_and_not_offered_for_good_where_it_is_no_plain_command(
    house: House, kind: str
) -> None:
    person = Person(Answer("deny", reason="no"))
    where = commands(house, ASKING, person)
    for text in CLASSES[kind]:
        before = len(person.asked)
        refused = await tried(where, text.format(x="/nowhere/x"))
        asked = person.asked[before:]
        assert len(asked) == (1 if refused and not refused.startswith("command: ") else 0)
        for question in asked:
            assert question.subject == text.format(x="/nowhere/x")
            assert question.why
            assert bool(question.entries) is ("allow-always" in question.choices) is bool(question.remembers)


@pytest.mark.parametrize(
    ("text", "output"),
    [
        ("echo 'a b'  \"c\"", "a b c\n"),
        ("echo '$(touch x)' \"\\$HOME\"", "$(touch x) $HOME\n"),
        ("echo a | cat | wc -l", "1\n"),
        ("grep -q nothing /etc/passwd && echo yes || echo no", "no\n"),
        ("echo a; echo b\necho c", "a\nb\nc\n"),
        ("cat nosuch 2>/dev/null; echo on", "on\n"),
        ("ls nosuch 2>&1 | wc -l", "1\n"),
        ("echo out >/dev/null", ""),
        ("cat </dev/null | wc -c", "0\n"),
        ("head -n 1000000 /dev/zero | head -c 5 | wc -c", "5\n"),
    ],
)
async def test_what_is_listed_runs_without_a_shell(house: House, text: str, output: str) -> None:
    ran = await run(commands(house, LISTED), text)
    assert ran.output == output
    assert not await asyncio.to_thread((house.workspace / "x").exists)


async def test_how_it_ended_is_told_as_a_shell_tells_it(house: House) -> None:
    where = commands(house, LISTED)
    assert (await run(where, "ls nosuch")).exit_code == 2
    assert (await run(where, "ls nosuch 2>/dev/null | cat")).exit_code == 0
    assert (await run(where, "cat | ls nosuch 2>/dev/null")).exit_code == 2


async def test_a_variable_of_the_line_reaches_its_program_alone(house: House) -> None:
    listed = replace(LISTED, allowlist=(Entry("env", "^$"),))
    ran = await run(commands(house, listed), "LC_TIME=de_DE env; env")
    assert ran.output.count("LC_TIME=de_DE") == 1


@pytest.mark.req("TOOL-12")
async def test_without_a_yes_nothing_runs(house: House) -> None:
    for policy, line in (
        (Policy("deny", "off"), "switched off"),
        (Policy("allowlist", "off"), "not on the allowlist"),
        (Policy("allowlist", "on-miss"), "nobody can be asked"),
        (Policy(), "nobody can be asked"),
        (Policy("full", "always"), "nobody can be asked"),
    ):
        with pytest.raises(ToolFailed, match=line) as caught:
            await run(commands(house, policy), "touch ran")
        assert caught.value.details is not None
        assert caught.value.details["kind"] == "denied"
    assert not await asyncio.to_thread((house.workspace / "ran").exists)
    await run(commands(house, FREE), "touch ran")
    assert await asyncio.to_thread((house.workspace / "ran").exists)


async def test_the_document_makes_the_configuration_stricter_and_never_looser(house: House) -> None:
    supervisor = house.supervisor([])
    supervisor.rules = lambda: Rules(Policy("allowlist", "off"), {"main": Policy(allowlist=(Entry("touch"),))})
    where = commands(house, FREE, supervisor=supervisor)
    await run(where, "touch listed")
    with pytest.raises(ToolFailed, match="not on the allowlist"):
        await run(where, "ls")
    supervisor.rules = lambda: Rules(Policy("full", "off"))
    with pytest.raises(ToolFailed, match="switched off"):
        await run(commands(house, Policy("deny"), supervisor=supervisor), "ls")


async def test_a_person_is_shown_all_of_it(house: House) -> None:
    person = Person()
    long = "echo " + "x" * 10_000 + " $HOME"
    ran = await run(commands(house, ASKING, person), long, env={"B": "2", "A": "one"}, call_id="c-1")
    (asked,) = person.asked
    assert (asked.kind, asked.subject, asked.call_id, asked.run_id) == ("exec", long, "c-1", "r")
    assert (asked.requester, asked.host, asked.cwd) == ("telegram:bot:7", "gateway", str(house.workspace))
    assert asked.env == ("A", "B")
    assert asked.why[-2:] == ("with A='one'", "with B='2'")
    assert asked.choices == ("allow-once", "deny")
    assert ran.output.startswith("xxxx")


async def test_a_variable_of_the_call_smuggles_nothing(house: House) -> None:
    where = commands(house, LISTED)
    assert (await run(where, "echo a", env={"LC_ALL": "C"})).output == "a\n"
    for name in ("GREP_OPTIONS", "RIPGREP_CONFIG_PATH", "X"):
        with pytest.raises(ToolFailed, match=name):
            await run(where, "echo a", env={name: "x"})


async def test_a_lasting_yes_is_an_entry_for_just_this(house: House) -> None:
    person = Person()
    await run(commands(house, ASKING, person), "touch ran")
    (asked,) = person.asked
    (entry,) = asked.entries
    assert (entry.pattern, entry.cwd) == ("/usr/bin/touch", str(house.workspace))
    assert (
        asked.remembers == f"/usr/bin/touch with exactly these arguments, in {house.workspace}, until you take it back"
    )
    person.asked.clear()
    where = commands(house, replace(ASKING, allowlist=asked.entries), person)
    await run(where, "touch ran")
    assert not person.asked
    await run(where, "touch other")
    await asyncio.to_thread((house.workspace / "sub").mkdir)
    await run(where, "touch ran", workdir="sub")
    assert len(person.asked) == 2


async def test_what_changed_after_it_was_shown_does_not_run(house: House) -> None:
    root = house.workspace
    for name in ("good", "other"):
        await asyncio.to_thread((root / name).mkdir)
    await asyncio.to_thread((root / "in").symlink_to, root / "good")

    def link() -> None:
        (root / "in").unlink()
        (root / "in").symlink_to(root / "other")

    def again(name: str, text: str) -> Callable[[], object]:
        return lambda: script(root / name, text)

    def rewritten() -> None:
        kept = (root / "d.py").stat()
        (root / "d.py").write_text("open('ran','w')#")
        os.utime(root / "d.py", ns=(kept.st_atime_ns, kept.st_mtime_ns))

    def replaced() -> None:
        (root / "good").rename(root / "was")
        (root / "other").rename(root / "good")

    for name in ("a", "b", "c", "c1", "c2", "e"):
        await asyncio.to_thread(script, root / name, "true")
    await asyncio.to_thread((root / "d.py").write_text, "print('harmless')")
    tries: list[tuple[str, dict[str, str], Callable[[], object]]] = [
        ("./a", {}, again("a", "touch ran")),
        ("./b $HOME", {}, again("b", "touch ran")),
        ("sh c", {}, again("c", "touch ran")),
        ("python3 d.py", {}, rewritten),
        ("sh --rcfile=e c", {}, again("e", "touch ran")),
        ("for x in 1; do sh c; done", {}, again("c", "touch ran2")),
        ("sh c?", {}, again("c1", "touch ran")),
        ("for x in c*; do sh $x; done", {}, again("c2", "touch ran")),
        ("sh -c 'sh c'", {}, again("c", "touch ran3")),
        ("python3 -c \"import os;os.execvp('sh',['sh','c'])\"", {}, again("c", "touch ran4")),
        ("sh later", {}, again("later", "touch ran")),
        ("touch ran", {"workdir": "in"}, link),
        ("touch ran", {"workdir": "good"}, replaced),
    ]
    for text, more, meanwhile in tries:
        with pytest.raises(ToolFailed, match=r"no longer what the person was shown|is no folder"):
            await run(commands(house, ASKING, Person(meanwhile=meanwhile)), text, **more)
    assert not await asyncio.to_thread(lambda: list(root.rglob("ran*")))


async def test_what_the_owner_takes_back_meanwhile_does_not_run(house: House) -> None:
    supervisor = house.supervisor([])
    now = [Rules()]
    supervisor.rules = lambda: now[0]

    def revoke() -> None:
        now[0] = Rules(Policy("deny"))

    with pytest.raises(ToolFailed, match="switched off"):
        await run(commands(house, ASKING, Person(meanwhile=revoke), supervisor), "touch ran")
    assert not await asyncio.to_thread((house.workspace / "ran").exists)


async def test_the_very_file_that_was_judged_is_started(house: House, tmp_path: Path) -> None:
    """Another file at the same place is not run, however short before the start it comes there."""
    tools = tmp_path / "tools"
    await asyncio.to_thread(tools.mkdir)
    tool = await asyncio.to_thread(script, tools / "tool", "echo good")
    listed = replace(LISTED, allowlist=(Entry(str(tool)), Entry("wc")))
    where = commands(house, listed)
    assert (await run(where, str(tool))).output == "good\n"
    assert (await run(where, f"{tool} | wc -l")).output == "1\n"
    starting = where.supervisor.programs.start

    async def late(start: object) -> object:
        await asyncio.to_thread(script, tool, "touch ran")
        return await starting(start)  # type: ignore[arg-type]

    where.supervisor.programs.start = late  # type: ignore[method-assign, assignment]
    for text in (str(tool), f"{tool} | wc -l"):
        ran = await run(where, text)
        assert "not the file it was" in ran.output
    assert not await asyncio.to_thread((house.workspace / "ran").exists)


async def test_a_program_is_not_looked_for_where_the_agent_or_anybody_writes(house: House, tmp_path: Path) -> None:
    public = tmp_path / "public"
    for folder in (public, house.workspace / "bin"):
        await asyncio.to_thread(folder.mkdir)
        await asyncio.to_thread(script, folder / "ls")
        await asyncio.to_thread(script, folder / "mine")
    await asyncio.to_thread(public.chmod, 0o777)
    settings = Settings(
        host="gateway",
        policy=replace(LISTED, allowlist=(Entry("*"),)),
        path=(str(public), str(house.workspace / "bin"), ".", "relative"),
    )
    where = house.supervisor([]).exec_for(MAIN, str(house.workspace), "channel", settings, behalf=ME)
    await run(where, "ls")
    with pytest.raises(ToolFailed, match="no program on the search path"):
        await run(where, "mine")
    assert not await asyncio.to_thread((house.workspace / "canary-script").exists)


@pytest.mark.needs("bwrap")
async def test_in_a_sandbox_what_the_owner_says_of_all_commands_holds_too(house: House) -> None:
    supervisor = house.boxed()

    def shut_in(policy: Policy, person: Person | None = None) -> Commands:
        supervisor.asker = person
        return supervisor.exec_for(MAIN, str(house.workspace), "channel", Settings(policy=policy), behalf=ME)

    assert (await run(shut_in(Policy()), "echo $((1+1))")).output == "2\n"
    assert (await run(shut_in(LISTED), "echo 'a b' | cat 2>&1 | LC_ALL=C wc -l; echo '$x'")).output == "1\n$x\n"
    with pytest.raises(ToolFailed, match=r"arithmetic|variable"):
        await run(shut_in(LISTED), "echo $((1+1))")
    person = Person()
    assert (await run(shut_in(Policy(None, "always"), person), "echo $((1+1))")).output == "2\n"
    assert person.asked[0].host == "sandbox"


@pytest.mark.req("TOOL-16")
@pytest.mark.needs("bwrap")
async def test_elevated_leaves_the_sandbox_where_it_may_and_is_asked_for_all_the_same(house: House) -> None:
    person = Person()
    supervisor = house.boxed()
    supervisor.asker = person
    for barred, policy, questions in (("", Policy(), 1), ("", Policy("full", "always"), 2), ("", FREE, 2)):
        settings = Settings(policy=policy, barred=barred)
        where = supervisor.exec_for(MAIN, str(house.workspace), "channel", settings, behalf=ME)
        ran = await run(where, "ls /proc/1/exe >/dev/null 2>&1; echo $HOME", elevated=True)
        assert ran.output.strip() == str(house.workspace)
        assert len(person.asked) == questions
        assert person.asked[-1].host == "gateway"
    where = supervisor.exec_for(MAIN, str(house.workspace), "channel", Settings(), behalf=ME)
    with pytest.raises(ToolFailed, match="elevated is not enabled"):
        await run(where, "true", elevated=True)


async def test_in_a_marked_turn_what_the_owner_listed_runs_unasked_where_he_wants_that(house: House) -> None:
    person = Person()
    for policy, questions in ((LISTED, 0), (FREE, 1), (Policy("full", "always"), 2)):
        where = commands(house, policy, person).guarded((), ask=False, why=("it read a page",), listed=True)
        assert await where.settles(Launch("echo a"))
        await run(where, "echo a")
        assert len(person.asked) == questions
    assert all("it read a page" in question.why for question in person.asked)
