"""`chat.*` over a real socket."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.house import Guest, Refused
from tests.gateway.standing import standing

KEY = "agent:main:t"


def message(text: str, key: str = "k1", session: str = KEY, **more: Any) -> dict[str, Any]:
    return {"sessionKey": session, "message": text, "idempotencyKey": key, **more}


async def final(guest: Guest, run_id: str) -> dict[str, Any]:
    """The `chat` event that ends a run."""
    ends = ("final", "error", "aborted")
    for frame in guest.heard:
        if frame.get("event") == "chat" and frame["payload"]["runId"] == run_id and frame["payload"]["state"] in ends:
            return dict(frame["payload"])
    frame = await guest.next(
        lambda f: f.get("event") == "chat" and f["payload"]["runId"] == run_id and f["payload"]["state"] in ends
    )
    return dict(frame["payload"])


def text(payload: dict[str, Any]) -> str:
    return "".join(part["text"] for part in payload["message"]["content"])


@pytest.mark.req("GW-13", "UI-05")
async def test_the_same_key_twice_is_one_run(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.guest() as guest:
        first, second = await asyncio.gather(*(guest.ask("chat.send", message("go say hi")) for _ in range(2)))
        answers = [await guest.next(lambda f: f.get("id") in (first, second)) for _ in range(2)]
        statuses = sorted(frame["payload"]["status"] for frame in answers)
        assert statuses == ["in_flight", "started"]
        gateway.acting.release.set()
        assert text(await final(guest, "k1")) == "hi"
        assert (await guest.call("chat.send", message("go say hi")))["status"] == "ok"
        with pytest.raises(Refused) as caught:
            await guest.call("chat.send", message("something else"))
        assert caught.value.error["code"] == "INVALID_REQUEST"
        assert caught.value.error["details"]["reason"] == "chat-request-conflict"
        assert len(gateway.acting.seen) == 1


@pytest.mark.req("GW-13")
async def test_a_key_is_known_after_a_restart(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.guest() as guest:
        await guest.call("chat.send", message("say hi"))
        await final(guest, "k1")
    async with standing(tmp_path) as gateway, gateway.guest() as guest:
        assert await guest.call("chat.send", message("say hi")) == {"runId": "k1", "status": "ok"}
        with pytest.raises(Refused):
            await guest.call("chat.send", message("say bye"))
        assert gateway.acting.seen == []


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"sessionKey": KEY, "message": "x"}, "must have required property 'idempotencyKey'"),
        (message("x", extra=1), "at root: unexpected property 'extra'"),
        (message("x", session=""), "at /sessionKey:"),
        (message("x", queueMode="never"), "at /queueMode:"),
        (message("  "), "message or attachment required"),
    ],
)
async def test_bad_parameters_are_named(tmp_path: Path, params: dict[str, Any], words: str) -> None:
    async with standing(tmp_path) as gateway, gateway.guest() as guest:
        with pytest.raises(Refused, match=r"invalid chat\.send params") as caught:
            await guest.call("chat.send", params)
        assert words in caught.value.error["message"]


@pytest.mark.req("MSG-14")
async def test_what_was_said_is_told_in_order_and_read_back(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.guest() as guest:
        await guest.call("sessions.subscribe", {})
        await guest.call("chat.send", message("say one two three"))
        await final(guest, "k1")
        await guest.next(lambda f: f.get("event") == "sessions.changed" and f["payload"].get("phase") == "end")
        events = [f for f in guest.heard if f.get("type") == "event" and f["event"] != "connect.challenge"]
        numbers = [f["seq"] for f in events if "seq" in f]
        assert numbers == list(range(1, len(numbers) + 1))
        names = [f["event"] for f in events if f["event"] in ("session.message", "chat", "sessions.changed")]
        assert names.index("session.message") < names.index("chat") < len(names) - 1
        assert names[-1] == "sessions.changed"
        seqs = [f["payload"]["seq"] for f in events if f["event"] == "agent"]
        assert seqs == list(range(1, len(seqs) + 1))
        history = await guest.call("chat.history", {"sessionKey": KEY})
        assert [m["role"] for m in history["messages"]] == ["user", "assistant"]
        assert history["messages"][0]["__openclaw"]["idempotencyKey"] == "k1:user"
        assert history["sessionInfo"]["key"] == KEY
        told = [f["payload"]["messageSeq"] for f in events if f["event"] == "session.message"]
        assert told == [1, 2] == [m["__openclaw"]["seq"] for m in history["messages"]]


async def test_the_answer_comes_before_the_first_event(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.guest() as guest:
        for number in range(5):
            asked = await guest.ask("chat.send", message("say hi", f"k{number}"))
            await guest.answer(asked)
            before = [f for f in guest.heard if f.get("event") == "agent" and f["payload"]["runId"] == f"k{number}"]
            assert before == []
            await final(guest, f"k{number}")


@pytest.mark.req("GW-14")
async def test_who_comes_later_reads_what_was_missed(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway:
        async with gateway.guest() as guest:
            await guest.call("chat.send", message("go say all of it"))
        async with gateway.guest() as guest:
            running = await guest.call("chat.history", {"sessionKey": KEY})
            assert running["inFlightRun"]["runId"] == "k1"
            gateway.acting.release.set()
            await final(guest, "k1")
            chat = [f for f in guest.heard if f.get("event") == "chat" and f["payload"]["state"] == "status"]
            assert chat == []
            history = await guest.call("chat.history", {"sessionKey": KEY})
            assert history["messages"][-1]["content"][0]["text"] == "all of it"
            assert "inFlightRun" not in history


async def test_an_abort_is_told_before_it_is_answered(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.guest() as guest:
        await guest.call("chat.send", message("wait"))
        asked = await guest.ask("chat.abort", {"sessionKey": KEY})
        answer = await guest.answer(asked)
        assert answer["payload"] == {"ok": True, "aborted": True, "runIds": ["k1"]}
        told = [f["payload"] for f in guest.heard if f.get("event") == "chat" and f["payload"]["state"] == "aborted"]
        assert [p["stopReason"] for p in told] == ["rpc"]
        nothing = await guest.call("chat.abort", {"sessionKey": KEY, "runId": "nobody"})
        assert nothing == {"ok": True, "aborted": False, "runIds": []}


async def test_a_failure_is_one_error_event(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.guest() as guest:
        await guest.call("chat.send", message("fail"))
        end = await final(guest, "k1")
        assert (end["state"], end["errorMessage"]) == ("error", "The provider refused the key.")


async def test_a_busy_session_takes_a_second_message(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.guest() as guest:
        await guest.call("chat.send", message("go say one", "a"))
        second = await guest.call("chat.send", message("say two", "b", queueMode="followup"))
        assert second["status"] == "started"
        gateway.acting.release.set()
        assert text(await final(guest, "a")) == "one"
        assert text(await final(guest, "b")) == "two"


async def test_tool_events_reach_the_starter_and_the_watchers_each_in_its_form(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.guest(caps=["tool-events"]) as mine, gateway.guest() as other:
        await mine.call("sessions.subscribe", {})
        await other.call("sessions.subscribe", {})
        await mine.call("chat.send", message("tool"))
        await final(mine, "k1")
        await final(other, "k1")

        def tools(guest: Guest, event: str) -> list[str]:
            frames = [f["payload"] for f in guest.heard if f.get("event") == event]
            return [p["data"]["phase"] for p in frames if p["stream"] == "tool"]

        assert tools(mine, "agent") == ["start", "result"] == tools(other, "session.tool")
        assert tools(mine, "session.tool") == [] == tools(other, "agent")


async def test_a_client_may_ask_to_hear_only_its_sessions(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.guest(caps=["session-scoped-events"]) as guest:
        await guest.call("sessions.messages.subscribe", {"key": KEY})
        await guest.call("chat.send", message("say x", "other", "agent:main:other"))
        await guest.call("chat.send", message("say y", "mine"))
        await final(guest, "mine")
        heard = {f["payload"]["sessionKey"] for f in guest.heard if f.get("event") in ("chat", "agent")}
        assert heard == {KEY}


async def test_history_goes_on_from_a_cursor(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.guest() as guest:
        await guest.call("chat.send", message("say one", "a"))
        await final(guest, "a")
        page = await guest.call("chat.startup", {"sessionKey": KEY, "limit": 1})
        assert (page["hasMore"], page["nextOffset"], page["totalMessages"]) == (True, 1, 2)
        older = await guest.call("chat.history", {"sessionKey": KEY, "offset": 1})
        assert [m["role"] for m in older["messages"]] == ["user"]
        await guest.call("chat.send", message("say two", "b"))
        await final(guest, "b")
        news = await guest.call("chat.history", {"sessionKey": KEY, "cursor": page["deltaCursor"]})
        assert news["kind"] == "delta"
        assert [m["messageSeq"] for m in news["messages"]] == [3, 4]
        strange = await guest.call("chat.history", {"sessionKey": KEY, "cursor": "x"})
        assert len(strange["messages"]) == 4
        around = await guest.call(
            "chat.history", {"sessionKey": KEY, "messageId": news["messages"][0]["messageId"], "limit": 2}
        )
        assert [m["__openclaw"]["seq"] for m in around["messages"]] == [3, 4]


async def test_nothing_was_said_yet(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.guest() as guest:
        page = await guest.call("chat.history", {"sessionKey": "main"})
        assert (page["sessionKey"], page["messages"], page["hasMore"]) == ("agent:main:main", [], False)
        assert "sessionId" not in page


async def test_a_long_message_is_cut_and_can_be_had_whole(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.guest() as guest:
        long = "x" * 300_000
        await guest.call("chat.send", message(f"say {long}"))
        await final(guest, "k1")
        page = await guest.call("chat.history", {"sessionKey": KEY})
        row = page["messages"][1]
        assert row["__openclaw"]["truncated"] is True
        asked = {"sessionKey": KEY, "messageId": row["__openclaw"]["id"]}
        whole = await guest.call("chat.message.get", asked)
        assert whole["message"]["content"][0]["text"] == long
        missing = await guest.call("chat.message.get", {**asked, "messageId": "nobody"})
        assert missing == {"ok": False, "unavailableReason": "not_found"}


async def test_words_can_be_put_into_a_session(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.guest() as guest:
        with pytest.raises(Refused, match="session not found"):
            await guest.call("chat.inject", {"sessionKey": KEY, "message": "note"})
        await guest.call("chat.send", message("say hi"))
        await final(guest, "k1")
        put = await guest.call("chat.inject", {"sessionKey": KEY, "message": "note", "label": "Job"})
        end = await final(guest, f"inject-{put['messageId']}")
        assert text(end) == "[Job]\n\nnote"
        page = await guest.call("chat.history", {"sessionKey": KEY})
        assert page["messages"][-1]["__openclaw"]["id"] == put["messageId"]


async def test_a_picture_goes_with_a_message_and_a_program_does_not(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.guest() as guest:
        picture = {"mimeType": "image/png", "content": "aGk=", "fileName": "a.png"}
        await guest.call("chat.send", message("say ok", attachments=[picture]))
        await final(guest, "k1")
        assert gateway.acting.seen[0].images[0].media_type == "image/png"
        for bad in ({**picture, "mimeType": "application/x-sh"}, {**picture, "content": "!!"}, {"content": 5}):
            with pytest.raises(Refused):
                await guest.call("chat.send", message("x", "k2", attachments=[bad]))
        assert (await guest.call("chat.send", message("say ok", "k2")))["status"] == "started"


async def test_commands_are_obeyed_unless_they_are_words(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.guest() as guest:

        async def typed(words: str, key: str, **more: Any) -> str:
            await guest.call("chat.send", message(words, key, **more))
            return text(await final(guest, key))

        assert "fake/fake" in await typed("/status", "c1")
        assert "/stop" in await typed("/help", "c2")
        assert "Nothing is running" in await typed("/stop", "c3")
        assert "no model" in await typed("/model nope/x", "c4")
        assert "you may: everything" in await typed("/whoami", "d1")
        assert (
            await typed("/queue", "d2")
            == "Queue: steer (a message that comes while the agent works is given to it at once)."
        )
        assert "Queue: collect" in await typed("/queue collect", "d3")
        assert "/queue takes steer, followup" in await typed("/queue up", "d4")
        assert await typed("/v full", "d5") == "Verbose: full."
        assert "No tokens were used" in await typed("/usage", "d6")
        assert "summed up" in await typed("/compact the plan", "d7")
        assert "chats are not ready" in await typed("/pair", "d8")
        assert await typed("/deny", "d9") == "Nothing waits for an approval."
        assert (
            await typed("/activation always", "d10")
            == "/activation is for a chat on a platform; this is the gateway's own."
        )
        assert "fake/fake" in await typed("/model fake", "c5")
        assert "high" in await typed("/think high", "c6")
        assert (await guest.call("chat.history", {"sessionKey": KEY}))["messages"] == []
        before = await guest.call("sessions.describe", {"key": KEY})
        assert before["session"]["thinkingLevel"] == "high"
        assert "new conversation" in await typed("/new", "c7")
        after = await guest.call("sessions.describe", {"key": KEY})
        assert after["session"]["sessionId"] != before["session"]["sessionId"]
        await guest.call("chat.send", message("/status", "c8", suppressCommandInterpretation=True))
        await final(guest, "c8")
        assert "Queue: collect" in await typed("/queue collect", "c10")
        await guest.call("chat.send", message("/etc/hosts is a file", "c9"))
        await final(guest, "c9")
        assert [turn.text for turn in gateway.acting.seen] == ["/status", "/etc/hosts is a file"]
        assert gateway.acting.seen[-1].queue == "collect"


@pytest.mark.parametrize("typed", ["/new say hello", "/reset say hello", "/new\nsay hello", "/new fake/fake say hello"])
async def test_words_behind_new_are_the_first_of_the_new_conversation(tmp_path: Path, typed: str) -> None:
    async with standing(tmp_path) as gateway, gateway.guest() as guest:
        await guest.call("chat.send", message("say old", "n1"))
        await final(guest, "n1")
        before = (await guest.call("sessions.describe", {"key": KEY}))["session"]["sessionId"]
        assert (await guest.call("chat.send", message(typed, "n2")))["status"] == "started"
        assert text(await final(guest, "n2")) == "hello"
        assert [turn.text for turn in gateway.acting.seen] == ["say old", "say hello"]
        after = (await guest.call("sessions.describe", {"key": KEY}))["session"]["sessionId"]
        assert after != before
        assert "old" not in str((await guest.call("chat.history", {"sessionKey": KEY}))["messages"])
        assert (await guest.call("chat.send", message(typed, "n2")))["status"] == "ok", "asked again: not begun again"
        assert (await guest.call("sessions.describe", {"key": KEY}))["session"]["sessionId"] == after


async def test_who_may_not_begin_anew_is_told_so_and_the_words_go_nowhere(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.guest(scopes=("operator.read", "operator.write")) as guest:
        await guest.call("chat.send", message("/new say hello", "n3"))
        assert "operator.admin" in text(await final(guest, "n3"))
        assert gateway.acting.seen == []


async def test_an_answer_to_a_past_that_is_no_more_is_refused(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.guest() as guest:
        with pytest.raises(Refused, match="moved on"):
            await guest.call("chat.send", message("say x", expectedLeafEntryId="gone"))
        await guest.call("chat.send", message("say x", expectedLeafEntryId=None))
        await final(guest, "k1")


async def test_the_composer_is_told_what_it_offers(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.guest() as guest:
        offered = await guest.call("chat.metadata", {"sessionKey": KEY})
        assert [model["id"] for model in offered["models"]] == ["fake"]
        assert "status" in [command["name"] for command in offered["commands"]]
