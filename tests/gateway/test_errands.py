"""What tools ask the gateway: as the very turn, and no further than it sees."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from garra.core.errors import BadArguments, Forbidden, NotFound, UserError
from garra.core.groups import Place
from garra.core.ids import AgentId, RunId, SessionKey
from garra.core.messages import Assistant, Text, User
from garra.gateway import table
from garra.gateway.errands import letters
from garra.runs.errand import BETWEEN, Errand
from garra.runs.run import Turn
from tests.gateway.standing import CONFIG, Standing, standing

MAIN = SessionKey("agent:main:main")
HERS, HIS = SessionKey("agent:main:telegram:direct:7"), SessionKey("agent:main:telegram:direct:8")
CHILD, WORK = SessionKey("agent:main:subagent:1"), SessionKey("agent:work:main")
OWNER = Errand(MAIN, AgentId("main"), RunId("r1"), "operator", tools=("read",))
SHE = Errand(
    HERS, AgentId("main"), RunId("r2"), "channel", Place("telegram", "default", "7", "7", group=False), tools=("read",)
)
MORE: Mapping[str, Any] = {
    **CONFIG,
    "agents": {**CONFIG["agents"], "list": [{"id": "main", "subagents": {"allowAgents": ["work"]}}, {"id": "work"}]},
}


async def ask(gateway: Standing, errand: Errand, method: str, **params: Any) -> Any:
    return await table.caller(table.of(gateway.gateway), gateway.host)(errand, method, params)


async def fill(gateway: Standing) -> None:
    """Conversations of two people, the owner, a sub-agent of hers, and another agent."""
    sessions = gateway.host.sessions
    for key in (MAIN, HERS, HIS, CHILD, WORK):
        agent = key.split(":")[1]
        await sessions.ensure(key, agent_id=agent, cwd=str(gateway.folder), created_via="channel")
        transcript = await sessions.transcript(key)
        await transcript.append(User((Text(f"secret of {key}"),), 1))
    await sessions.record(CHILD, extra={"spawnedBy": HERS})


async def keys(gateway: Standing, errand: Errand, **params: Any) -> set[str]:
    found = await ask(gateway, errand, "sessions.list", **params)
    return {row["key"] for row in found["sessions"]}


async def test_who_sees_which_conversations(tmp_path: Path) -> None:
    async with standing(tmp_path, dict(MORE)) as gateway:
        await fill(gateway)
        assert await keys(gateway, OWNER) == {MAIN, HERS, HIS, CHILD}
        assert await keys(gateway, SHE) == {HERS, CHILD}
        assert await keys(gateway, replace(SHE, origin="subagent", place=None)) == {HERS, CHILD}
        page = await ask(gateway, OWNER, "sessions.list", limit=3)
        assert page["hasMore"]
        rest = await ask(gateway, OWNER, "sessions.list", limit=3, offset=page["nextOffset"])
        seen = [row["key"] for row in (*page["sessions"], *rest["sessions"])]
        assert (len(seen), set(seen)) == (4, {MAIN, HERS, HIS, CHILD})


@pytest.mark.parametrize("named", [HIS, MAIN, WORK, "agent:main:nobody", "no:such::key", "nonsense"])
async def test_what_is_not_seen_is_not_there(tmp_path: Path, named: str) -> None:
    async with standing(tmp_path, dict(MORE)) as gateway:
        await fill(gateway)
        for method, more in (
            ("sessions.history", {}),
            ("session.status", {}),
            ("sessions.send", {"message": "x", "callId": "c"}),
        ):
            with pytest.raises(NotFound, match="No session"):
                await ask(gateway, SHE, method, sessionKey=named, **more)
        session = await gateway.host.sessions.get(HIS)
        assert session is not None
        with pytest.raises(NotFound, match="No session"):
            await ask(gateway, SHE, "sessions.history", sessionKey=session.session_id)
        found = await ask(gateway, SHE, "sessions.search", query="secret of")
        assert {hit["sessionKey"] for hit in found["hits"]} == {HERS, CHILD}


async def test_other_peoples_words_are_marked(tmp_path: Path) -> None:
    async with standing(tmp_path, dict(MORE)) as gateway:
        await fill(gateway)
        theirs = await ask(gateway, OWNER, "sessions.history", sessionKey=HIS)
        assert theirs["messages"][0]["text"] == f"secret of {HIS}"
        assert theirs["marks"] == [{"source": "person", "where": HIS}]
        own = await ask(gateway, SHE, "sessions.history")
        assert own["marks"] == []
        assert (await ask(gateway, OWNER, "session.status", sessionKey="current"))["key"] == MAIN


async def test_history_is_bounded_and_shows_no_secret(tmp_path: Path) -> None:
    secret = "sk-0123456789abcdef0123456789abcdef"
    provider = {"fake": {"baseUrl": "http://localhost", "apiKey": secret, "models": []}}
    async with standing(tmp_path, {**MORE, "models": {"providers": provider}}) as gateway:
        await fill(gateway)
        transcript = await gateway.host.sessions.transcript(MAIN)
        for at in range(30):
            await transcript.append(User((Text(f"{secret} {'x' * 9_000}"),), at))
        found = await ask(gateway, OWNER, "sessions.history", limit=25)
        assert secret not in str(found)
        assert len(str(found["messages"])) < 90_000
        assert found["hasMore"]
        older = await ask(gateway, OWNER, "sessions.history", limit=200, offset=found["nextOffset"])
        assert older["messages"][0]["text"] == f"secret of {MAIN}"


async def test_agents_are_told_to_the_owners_turns(tmp_path: Path) -> None:
    async with standing(tmp_path, dict(MORE)) as gateway:
        assert [row["id"] for row in (await ask(gateway, OWNER, "agents.list"))["agents"]] == ["main", "work"]
        assert [row["id"] for row in (await ask(gateway, SHE, "agents.list"))["agents"]] == ["main"]


async def test_another_session_answers_with_no_more_rights(tmp_path: Path) -> None:
    async with standing(tmp_path, dict(MORE)) as gateway:
        await fill(gateway)
        mark = {"source": "web", "where": "https://x"}
        found = await ask(
            gateway, SHE, "sessions.send", sessionKey=CHILD, message="say seven", callId="c1", marks=[mark]
        )
        assert (found["status"], found["reply"]) == ("ok", "seven")
        turn = gateway.acting.seen[-1]
        assert (turn.place, turn.inherited, turn.origin) == (SHE.place, ("read",), "channel")
        assert [each.where for each in turn.marks] == ["https://x"]
        assert turn.meta[BETWEEN] == {"from": HERS, "hops": 1}
        assert "isUser=false" in turn.text
        again = await ask(gateway, SHE, "sessions.send", sessionKey=CHILD, message="say seven", callId="c1")
        assert again["runId"] == found["runId"], "the same call is made once"


async def test_an_answer_nobody_waits_for_comes_as_a_message(tmp_path: Path) -> None:
    async with standing(tmp_path, dict(MORE)) as gateway:
        await fill(gateway)
        found = await ask(
            gateway, OWNER, "sessions.send", sessionKey=HERS, message="say late", callId="c1", timeoutSeconds=0
        )
        assert found["status"] == "accepted"
        async with asyncio.timeout(20):
            while len(gateway.acting.seen) < 2:  # noqa: ASYNC110 - runs have no end to wait for here
                await asyncio.sleep(0.01)
        back = gateway.acting.seen[-1]
        assert back.session_key == MAIN
        assert "late" in back.text
        assert back.meta[BETWEEN]["hops"] == 1


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not true():  # noqa: ASYNC110 - runs have no end to wait for here
            await asyncio.sleep(0.01)


def asked_for(gateway: Standing, key: str) -> list[Turn]:
    return [turn for turn in gateway.acting.seen if turn.session_key == key]


async def left(gateway: Standing) -> dict[str, Any]:
    return await letters.letters(gateway.host)._shelf.items()


async def test_a_late_answer_comes_back_once_after_a_restart_too(tmp_path: Path) -> None:
    async with standing(tmp_path, dict(MORE)) as gateway:
        await fill(gateway)
        await ask(
            gateway, OWNER, "sessions.send", sessionKey=HERS, message="go say late", callId="c1", timeoutSeconds=0
        )
        await until(lambda: bool(asked_for(gateway, HERS)))
    async with standing(tmp_path) as gateway:
        gateway.acting.release.set()
        await letters.letters(gateway.host).resume()
        await until(lambda: bool(asked_for(gateway, MAIN)))
        (again,), (back,) = asked_for(gateway, HERS), asked_for(gateway, MAIN)
        assert (again.run_id, again.inherited, again.origin) == ("r1:c1", ("read",), "operator")
        assert (back.run_id, back.text.split("\n")[-1], back.silent) == ("r1:c1:reply", "late", True)
        assert [(mark.source, mark.where) for mark in back.marks] == [("agent", HERS)]
        await until(lambda: gateway.host.runs.active(MAIN) is None)
        async with asyncio.timeout(20):
            while await left(gateway):  # noqa: ASYNC110 - likewise
                await asyncio.sleep(0.01)
    async with standing(tmp_path) as gateway:
        await letters.letters(gateway.host).resume()
        assert not gateway.acting.seen


async def test_an_answer_that_was_there_before_the_restart_is_only_brought_back(tmp_path: Path) -> None:
    async with standing(tmp_path, dict(MORE)) as gateway:
        await fill(gateway)
        known, letter = letters.letters(gateway.host), letters.Letter(SHE, CHILD, "main", "say it", "c", 0)
        await known.put(replace(letter, sent_at=gateway.host.clock.now_ms()))
        await known.put(replace(letter, call_id="old"))
        meta = {"__openclaw": {"runId": "r2:c"}}
        transcript = await gateway.host.sessions.transcript(CHILD)
        await transcript.append(User((Text("say it"),), 2, meta={"idempotencyKey": "r2:c:user"}))
        await transcript.append(Assistant((Text("it"),), 3, "x", "fake", "fake", meta=meta))
        await known.resume()
        await until(lambda: bool(asked_for(gateway, HERS)))
        assert asked_for(gateway, HERS)[0].place == SHE.place
        assert not asked_for(gateway, CHILD), "nothing is asked twice, and nothing after an hour"


@pytest.mark.parametrize(
    ("changes", "named", "words"),
    [
        ({}, MAIN, "this very conversation"),
        ({"hops": 5}, HERS, "answered each other 5 times"),
        ({"session_key": HERS}, f"{HERS}:thread:1", "No session"),
    ],
)
async def test_what_is_not_sent(tmp_path: Path, changes: dict[str, Any], named: str, words: str) -> None:
    async with standing(tmp_path, dict(MORE)) as gateway:
        await fill(gateway)
        with pytest.raises((UserError, NotFound), match=words):
            await ask(gateway, replace(OWNER, **changes), "sessions.send", sessionKey=named, message="x", callId="c")


async def test_other_methods_are_for_the_owners_turns_and_read_only(tmp_path: Path) -> None:
    async with standing(tmp_path, dict(MORE)) as gateway:
        assert "models" in await ask(gateway, OWNER, "models.list")
        with pytest.raises(Forbidden):
            await ask(gateway, SHE, "models.list")
        with pytest.raises(Forbidden):
            await ask(gateway, OWNER, "config.set", raw="{}")
        for method in ("config.get", "config.patch", "config.confirm", "config.preview"):
            with pytest.raises(Forbidden, match="owner's own turns"):
                await ask(gateway, SHE, method, **({"patch": {}} if "p" in method.split(".")[1] else {}))
        with pytest.raises(Forbidden, match=r"tools\.deny"):
            await ask(gateway, OWNER, "config.preview", patch={"tools": {"deny": []}})
        with pytest.raises(BadArguments):
            await ask(gateway, OWNER, "sessions.list", limit="many")
        assert "loggin" not in str(await ask(gateway, OWNER, "config.get", path="agents"))
        with pytest.raises(NotFound):
            await ask(gateway, OWNER, "config.get", path="nothing.here")
