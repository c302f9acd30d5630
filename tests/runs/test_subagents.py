"""A session's sub-agents: started within limits, isolated or with its history, told once, stopped, gone on with."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from garra.config.sections import Config
from garra.core import taint
from garra.core.events import TextDelta
from garra.core.groups import Place
from garra.core.ids import SessionKey
from garra.core.lineage import Child
from garra.core.messages import Assistant, ToolResult, User
from garra.core.taint import Mark
from garra.domains.tools.pipeline import Scope
from garra.runs import offspring
from garra.runs.attic import Attic
from garra.sdk.channel import Address
from garra.testing.model import Says, calls, fails, says
from tests.runs.family import MAIN, House, Plan, config, house, marked

HANGS = Says(("I begin",), hangs=True)
WEB = Mark("web", "https://example.org/")


def spawn(task: str = "child: look", **more: Any) -> Says:
    return calls("sessions_spawn", {"task": task, **more})


START: Plan = {"go": [spawn(), says("started")], "child:": [says("the find")]}


def result(made: House, name: str = "sessions_spawn") -> ToolResult:
    """The newest result of a tool that the model was shown."""
    every = [m for request in made.model.requests for m in request if isinstance(m, ToolResult) and m.name == name]
    return every[-1]


def only(made: House) -> Child:
    (child,) = made.table.every()
    return child


async def ended(made: House, count: int = 1) -> None:
    """Until so many parents were told, and nothing runs any more."""
    await made.told(count)
    await made.until(lambda: not made.runs.every())


async def test_a_report_comes_to_its_parent_once_as_data(tmp_path: Path) -> None:
    async with house(tmp_path, START) as made:
        begin = made.hold("child:")
        run = await made.say("go")
        begin.set()
        assert run.ended
        assert run.ended.reply == "started"
        assert result(made).details["status"] == "accepted"
        await ended(made)
        (request,) = made.asked("[A sub-agent")
        report = [m.text for m in request if isinstance(m, User)][-1]
        assert "<<<EXTERNAL_UNTRUSTED_CONTENT" in report
        assert "the find" in report
        assert "done, and its report is to be checked" in report
        assert len(made.posted) == 1
        assert [c.state for c in await made.table.ports.records.load()] == ["told"]


@pytest.mark.req("TOOL-17")
async def test_an_isolated_child_sees_its_task_alone_and_a_fork_what_was_said(tmp_path: Path) -> None:
    plan: Plan = {
        "go": [spawn(), says("one is at work")],
        "again": [spawn("child: with all", context="fork"), says("two")],
        "child:": [says("done")],
    }
    async with house(tmp_path, plan) as made:
        await made.say("the secret is 42")
        await made.say("go")
        await ended(made)
        (alone,) = made.asked("[Subagent Task]\nchild: look")
        assert [m.text for m in alone if isinstance(m, User)] == ["[Subagent Task]\nchild: look"]
        await made.say("again")
        await ended(made, 2)
        (forked,) = made.asked("your work:\n\nchild: with all")
        words = [m.text for m in forked if isinstance(m, User)]
        assert words[0] == "the secret is 42"
        assert "again" in words
        assert "this alone is your work" in words[-1]
        assert not any("with all" in str(m.calls) for m in forked if isinstance(m, Assistant))  # no half of a call


@pytest.mark.req("TOOL-18")
@pytest.mark.parametrize("name", ["channel", "target", "threadId", "to", "replyTo", "accountId"])
async def test_where_a_report_goes_is_nothing_a_model_can_say(tmp_path: Path, name: str) -> None:
    plan = {**START, "go": [spawn(**{name: "telegram:1"}), says("refused")]}
    async with house(tmp_path, plan) as made:
        await made.say("go")
        assert result(made).is_error
        assert result(made).details["errorKind"] == "argument-validation"
        assert not made.table.every()


async def test_a_report_goes_where_its_parents_turn_was_asked(tmp_path: Path) -> None:
    address = Address("telegram", "default", "-100", "group", "7")
    place = Place("telegram", "default", "-100", "1", "7")
    allowed = {"channels": {"telegram": {"groups": {"-100": {"tools": {"allow": ["group:sessions"]}}}}}}
    async with house(tmp_path, START, Config.model_validate(allowed)) as made:
        await made.say("go", origin="channel", place=place, address=address, route="r", extra_system="s")
        await ended(made)
        ((child, turn),) = made.posted
        assert (turn.session_key, turn.place, turn.route, turn.extra_system) == (MAIN, place, "r", "s")
        assert turn.origin == "channel"
        assert child.home.address == {
            "channel": "telegram", "account": "default", "chat": "-100", "kind": "group", "thread": "7",
            "parent": "", "guild": "", "team": "", "roles": (),
        }  # fmt: skip


async def test_a_report_to_a_turn_that_nobody_sits_before_is_no_owners_word(tmp_path: Path) -> None:
    async with house(tmp_path, START) as made:
        await made.say("go", origin="job")
        await ended(made)
        assert made.posted[0][1].origin == "job"
        assert offspring.origin("something new") == "channel"


@pytest.mark.req("TOOL-19")
async def test_rights_only_shrink_and_hold_after_a_restart(tmp_path: Path) -> None:
    place = Place("telegram", "default", "-100", "1")
    allowed = {"channels": {"telegram": {"groups": {"-100": {"tools": {"allow": ["group:sessions", "read"]}}}}}}
    settings = Config.model_validate(allowed)
    async with house(tmp_path, START, settings) as made:
        await made.say("go", origin="channel", place=place)
        await ended(made)
        child = only(made)
        scope = made.table.scope(Scope(child_agent(child), SessionKey(child.key), "subagent"))
        assert (scope.depth, scope.place) == (1, place)
        assert scope.inherited is not None
    async with house(tmp_path, START, settings, resumed=True) as again:
        assert again.table.scope(Scope(child_agent(child), SessionKey(child.key), "operator")) == Scope(
            child_agent(child), SessionKey(child.key), "operator", place=place, depth=1, inherited=scope.inherited
        )


async def test_the_session_of_a_child_that_nobody_remembers_has_no_tool(tmp_path: Path) -> None:
    async with house(tmp_path, START) as made:
        lost = SessionKey("agent:main:subagent:gone")
        scope = made.table.scope(Scope(child_agent(None), lost, "operator"))
        assert (scope.depth, scope.inherited) == (1, ())
        run = await made.say("go", lost)
        assert "sessions_spawn" not in run.trace.tools
        assert not made.table.every()
        own = Scope(child_agent(None), MAIN, "operator")
        assert made.table.scope(own) is own


def child_agent(child: Child | None) -> Any:
    return child.agent if child else "main"


@pytest.mark.req("TOOL-20")
async def test_a_parent_that_yields_wakes_once_with_the_result(tmp_path: Path) -> None:
    plan: Plan = {
        "go": [spawn(), calls("sessions_yield", {"acknowledgment": "One moment."}), says("never asked")],
        "child:": [says("the find")],
        "[A sub-agent": [says("It is the find.")],
    }
    async with house(tmp_path, plan) as made:
        begin = made.hold("child:")
        run = await made.say("go")
        begin.set()
        assert run.ended
        assert run.ended.reply == "One moment."
        await ended(made)
        assert len(made.asked("[A sub-agent")) == 1
        assert len(made.asked("go")) == 2  # spawn and yield, and not asked again
        replies = [r.ended.reply for r in made.runs._runs.values() if r.ended and r.turn.silent]
        assert replies == ["It is the find."]


async def test_there_is_nothing_to_yield_for_without_a_child(tmp_path: Path) -> None:
    async with house(tmp_path, {"go": [calls("sessions_yield"), says("fine, I answer")]}) as made:
        run = await made.say("go")
        assert run.ended
        assert run.ended.reply == "fine, I answer"
        assert "nothing to wait for" in result(made, "sessions_yield").text


async def test_a_parent_at_work_is_handed_the_report_within_its_run(tmp_path: Path) -> None:
    plan: Plan = {"go": [spawn(), Says(("I think",), hangs=True)], "child:": [says("the find")]}
    async with house(tmp_path, plan) as made:
        begin = made.hold("child:")
        waiting = asyncio.create_task(made.say("go"))
        await made.until(lambda: len(made.model.streams) == 2)
        begin.set()
        await made.until(lambda: made.posted)
        busy = made.model.streams[1]
        busy.push(TextDelta(1, " so"))
        busy.done("stop")
        run = await waiting
        assert [each.turn.run_id for each in run.joined] == [only(made).report_id]
        assert len(made.asked("[A sub-agent")) == 1


@pytest.mark.parametrize(
    ("says_so", "more", "status"),
    [
        (fails(message="the model's server failed"), {}, "it failed (the model's server failed)"),
        (HANGS, {"runTimeoutSeconds": 1}, "it timed out (Stopped after 1 s"),
    ],
)
async def test_what_goes_wrong_is_a_report_too(tmp_path: Path, says_so: Says, more: Any, status: str) -> None:
    plan = {"go": [spawn(**more), says("started")], "child:": [says_so]}
    async with house(tmp_path, plan) as made:
        await made.say("go")
        await ended(made)
        (request,) = made.asked("[A sub-agent")
        assert status in request[-1].text


async def test_one_that_uses_up_its_means_is_stopped(tmp_path: Path) -> None:
    plan: Plan = {"go": [spawn(), says("x")], "child:": [calls("subagents"), says("never")]}
    async with house(tmp_path, plan, config(maxTokens=14, maxSpawnDepth=2)) as made:
        await made.say("go")
        await ended(made)
        assert only(made).outcome == "over"
        assert "maxTokens" in only(made).fault


async def test_depth_number_and_agents_are_limited(tmp_path: Path) -> None:
    deep: Plan = {"go": [spawn(), says("x")], "child:": [spawn("child: deeper"), says("no deeper")]}
    async with house(tmp_path, deep) as made:
        await made.say("go")
        await ended(made)
        assert len(made.table.every()) == 1
    many: Plan = {"go": [Says(calls=tuple(("sessions_spawn", {"task": f"child: {n}"}) for n in range(4))), says("x")]}
    async with house(tmp_path / "many", {**many, "child:": [HANGS]}, config(maxChildrenPerAgent=2)) as made:
        await made.say("go")
        assert len(made.table.every()) == 2
        assert "maxChildrenPerAgent" in result(made).text
    other: Plan = {"go": [spawn(agentId="work"), says("x")]}
    async with house(tmp_path / "other", other) as made:
        await made.say("go")
        assert "no agent work that may be started" in result(made).text


async def test_an_agent_that_is_shut_in_starts_none_that_is_not(tmp_path: Path) -> None:
    agents = {
        "defaults": {"subagents": {"allowAgents": ["*"]}},
        "list": [
            {"id": "main", "sandbox": {"mode": "all"}},
            {"id": "open", "sandbox": {"mode": "off"}},
            {"id": "shut"},
        ],
    }
    tools = {"sandbox": {"tools": {"allow": ["*"]}}}
    settings = Config.model_validate({"agents": agents, "tools": tools})
    plan: Plan = {"go": [spawn(agentId="open"), says("x")]}
    async with house(tmp_path, plan, settings) as made:
        await made.say("go")
        assert "less shut in" in result(made).text
        assert not made.table.every()


async def test_so_many_run_at_once_and_the_others_wait_their_turn(tmp_path: Path) -> None:
    plan: Plan = {
        "go": [
            Says(calls=(("sessions_spawn", {"task": "child: a"}), ("sessions_spawn", {"task": "child: b"}))),
            says("x"),
        ],
        "child:": [HANGS],
    }
    async with house(tmp_path, plan, config(maxConcurrent=1)) as made:
        await made.say("go")
        await made.until(lambda: {c.state for c in made.table.every()} == {"running", "queued"})
        first = next(c for c in made.table.every() if c.state == "running")
        await made.table.stop(first.key, quiet=False)
        await made.until(lambda: any(c.state == "running" and c.key != first.key for c in made.table.every()))
        assert sum(c.state == "running" for c in made.table.every()) == 1


async def test_a_child_waits_for_its_own_and_reports_what_it_made_of_them(tmp_path: Path) -> None:
    plan: Plan = {
        "go": [spawn("middle: split it"), says("x")],
        "middle:": [spawn("child: a part"), says("I have split it")],
        "child:": [says("the part")],
    }
    async with house(tmp_path, plan, config(maxSpawnDepth=2)) as made:
        await made.say("go")
        await ended(made, 2)
        middle = next(c for c in made.table.every() if c.depth == 1)
        assert middle.report.startswith("noted: [A sub-agent")
        assert "the part" in middle.report
        assert [child.depth for child, _ in made.posted] == [1]


async def test_a_silent_answer_to_a_part_leaves_the_earlier_words_as_the_report(tmp_path: Path) -> None:
    plan: Plan = {
        "go": [spawn("middle: split it"), says("x")],
        "middle:": [spawn("child: a part"), says("all there is to say")],
        "child:": [says("the part")],
    }
    async with house(tmp_path, {**plan, "[A sub-agent": [says("NO_REPLY")]}, config(maxSpawnDepth=2)) as made:
        begin = made.hold("child:")
        await made.say("go")
        await made.until(lambda: any(c.state == "waiting" for c in made.table.every()))
        begin.set()
        await ended(made, 2)
        assert next(c for c in made.table.every() if c.depth == 1).report == "all there is to say"


async def test_who_stops_a_parent_stops_its_children_and_theirs_and_nobody_is_told(tmp_path: Path) -> None:
    plan: Plan = {
        "go": [spawn("middle: split it"), HANGS],
        "middle:": [spawn("child: a part"), HANGS],
        "child:": [HANGS],
    }
    async with house(tmp_path, plan, config(maxSpawnDepth=2)) as made:
        task = asyncio.create_task(made.say("go"))
        await made.until(lambda: len(made.table.every()) == 2 and all(c.state == "running" for c in made.table.every()))
        await made.runs.abort(MAIN, reason="stop")
        await task
        await made.told(2)
        assert {c.outcome for c in made.table.every()} == {"stopped"}
        assert not made.posted
        await made.until(lambda: set(made.halted) == {c.key for c in made.table.every()})
        await made.until(lambda: not made.runs.every())


async def test_a_child_that_somebody_stops_is_told_to_its_parent(tmp_path: Path) -> None:
    async with house(tmp_path, {**START, "child:": [HANGS]}) as made:
        await made.say("go")
        await made.until(lambda: only(made).state == "running")
        await made.runs.abort(only(made).key, reason="rpc")
        await ended(made)
        assert "it was stopped" in made.asked("[A sub-agent")[0][-1].text


async def test_the_tool_lists_logs_steers_and_cancels(tmp_path: Path) -> None:
    plan: Plan = {
        "go": [spawn(label="scout"), says("x")],
        "child:": [HANGS],
        "list": [calls("subagents"), says("x")],
        "log": [calls("subagents", {"action": "log", "target": "scout"}), says("x")],
        "steer": [calls("subagents", {"action": "steer", "target": "1", "message": "child: hurry"}), says("x")],
        "cancel": [calls("subagents", {"action": "cancel", "target": "scout"}), says("x")],
        "nobody": [calls("subagents", {"action": "cancel", "target": "zz"}), says("x")],
    }
    async with house(tmp_path, plan) as made:
        await made.say("go")
        await made.until(lambda: only(made).state == "running")
        await made.say("list")
        assert result(made, "subagents").text == f"1. scout: running · {only(made).key}"
        await made.say("log")
        assert "user: [Subagent Task] child: look" in result(made, "subagents").text
        await made.say("nobody")
        assert "there is no sub-agent" in result(made, "subagents").text
        await made.say("steer")
        assert "scout is told" in result(made, "subagents").text
        await made.say("cancel")
        assert result(made, "subagents").text == "Stopped: scout."
        await made.told()
        assert not made.posted


async def test_marks_go_along_to_the_child_and_come_back_with_its_report(tmp_path: Path) -> None:
    async with house(tmp_path, START) as made:
        made.marks = marked(WEB)
        await made.say("go")
        await ended(made)
        child = only(made)
        assert child.given == (WEB,)
        assert taint.of((await made.messages(child.key))[0].meta) == (WEB,)
        assert made.posted[0][1].marks == (WEB,)
    async with house(tmp_path / "clean", START) as made:
        await made.say("go")
        await ended(made)
        assert made.posted[0][1].marks == ()


async def test_a_restart_goes_on_with_what_ran_and_tells_its_parent_once(tmp_path: Path) -> None:
    async with house(tmp_path, {**START, "child:": [HANGS]}) as made:
        await made.say("go")
        await made.until(lambda: only(made).state == "running")
        await made.until(lambda: len(made.model.streams) == 3)
    async with house(tmp_path, START, resumed=True) as again:
        await ended(again)
        assert len(again.posted) == 1
        assert "the find" in again.posted[0][1].text
        assert len([m for m in await again.messages(only(again).key) if isinstance(m, User)]) == 1
    async with house(tmp_path, START, resumed=True) as third:
        await asyncio.sleep(0.05)
        assert not third.posted


async def test_what_had_ended_when_the_process_died_is_not_run_again(tmp_path: Path) -> None:
    async with house(tmp_path, START) as made:
        await made.say("go")
        await ended(made)
        child = only(made)
        import dataclasses  # noqa: PLC0415

        await made.table.ports.records.put(dataclasses.replace(child, state="running", outcome="", report=""), 1)
    async with house(tmp_path, START, resumed=True) as again:
        await ended(again)
        assert only(again).report == "the find"
        assert not again.asked("[Subagent Task]\nchild: look")


async def test_without_a_gateway_the_report_follows_in_the_same_process(tmp_path: Path) -> None:
    async with house(tmp_path, START, resident=False) as made:
        await made.say("go")
        await ended(made)
        assert only(made).local
        assert len(made.asked("[A sub-agent")) == 1
    async with house(tmp_path, START, resumed=True) as again:
        assert not again.posted


async def test_one_not_to_be_kept_is_put_away_and_its_report_is_still_told(tmp_path: Path) -> None:
    async with house(tmp_path, {**START, "go": [spawn(cleanup="delete"), says("x")]}) as made:
        await made.say("go")
        await ended(made)
        key = only(made).key
        async with asyncio.timeout(20):
            while await made.sessions.get(key) is not None:  # noqa: ASYNC110 - nobody tells of it
                await asyncio.sleep(0.01)
        assert len(made.posted) == 1


async def test_whoever_has_to_wait_for_all_of_it_can(tmp_path: Path) -> None:
    plan = {**START, "[A sub-agent": [says("It is the find.")]}
    async with house(tmp_path, plan, resident=False) as made:
        begin = made.hold("child:")
        await made.say("go")
        waiting = asyncio.create_task(made.table.over(MAIN))
        begin.set()
        async with asyncio.timeout(10):
            (run,) = await waiting
        assert run.ended
        assert run.ended.reply == "It is the find."
        assert await made.table.over("agent:main:other") == []


async def test_what_is_old_is_put_away_with_its_record(tmp_path: Path) -> None:
    async with house(tmp_path, START, config(archiveAfterMinutes=0.0001)) as made:
        await made.say("go")
        await ended(made)
        child = only(made)
        await asyncio.sleep(0.02)
        attic = Attic(made.table.ports, made.table)
        assert attic.old() == [child]
        await attic.put_away(child)
        assert not made.table.every()
        assert await made.sessions.get(child.key) is None
        assert await made.table.ports.records.load() == []
    async with house(tmp_path / "kept", START, config(archiveAfterMinutes=0)) as made:
        await made.say("go")
        await ended(made)
        assert Attic(made.table.ports, made.table).old() == []
