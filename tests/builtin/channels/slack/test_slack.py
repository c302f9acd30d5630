"""The channel over a server that plays Slack: connections, repeated envelopes, outages, files, buttons, faults."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from garra.builtin.channels.slack.channel import Slack
from garra.core.secret import Secret
from garra.io.clock import SystemClock
from garra.io.files.root import Root
from garra.io.http import GuardedHttp
from garra.io.tasks import Tasks
from garra.sdk.channel import (
    Account,
    Address,
    File,
    Ignored,
    Inbound,
    LinkLost,
    LinkRefused,
    Media,
    Outbound,
    Ports,
    SendFailed,
)
from garra.testing.channels import Heard, MemoryCursor, outbound
from garra.testing.slack import Fault, SlackServer

ROOM, ANN = "C500", "U1001"
IN_ROOM = Address("slack", "default", ROOM, "channel", team="T1")
DIRECT = Address("slack", "default", f"D{ANN}", "direct")


@dataclass
class Place:
    """A server, and what a channel is granted."""

    server: SlackServer
    http: GuardedHttp
    tasks: Tasks
    folder: Path

    def channel(self, cursor: MemoryCursor | None = None, **settings: Any) -> Slack:
        own = {
            "botToken": Secret(self.server.bot_token),
            "appToken": Secret(self.server.app_token),
            "apiRoot": self.server.url,
            **settings,
        }
        ports = Ports(self.http, SystemClock(), self.tasks, cursor or MemoryCursor(), Root(self.folder), self.http)
        return Slack(Account("default", own), ports)


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    http = GuardedHttp()
    async with SlackServer() as server, Tasks() as tasks:
        yield Place(server, http, tasks, tmp_path)
    await http.close()


@asynccontextmanager
async def running(channel: Slack, heard: Heard) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.ensure_future(channel.run(heard.receive, heard))
    try:
        yield task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError, LinkLost, LinkRefused, OSError):
            await task


def said(heard: Heard) -> list[str]:
    return [event.text for event in heard.events if isinstance(event, Inbound)]


def named() -> Heard:
    """Hears nothing before it knows who we are: an event is kept under the name of who heard it."""
    heard = Heard()

    def before(event: Inbound | Ignored) -> None:
        assert heard.me is not None

    heard.before = before
    return heard


# ---- receiving


async def test_an_envelope_is_confirmed_once_it_is_stored(place: Place) -> None:
    gate = asyncio.Event()

    class Slow(Heard):
        async def receive(self, event: Inbound | Ignored) -> None:
            await gate.wait()
            await super().receive(event)

    place.server.retry_s = 0.1
    heard = Slow()
    async with running(place.channel(), heard):
        await place.server.until(lambda: place.server.sockets)
        place.server.say(ANN, "hello")
        await place.server.until(lambda: any(one["retry_attempt"] > 2 for one in place.server.waiting.values()))
        assert place.server.confirmed == []
        gate.set()
        await place.server.until(lambda: not place.server.waiting)
    assert said(heard) == ["hello"]


async def test_a_mention_that_comes_twice_is_one(place: Place) -> None:
    heard = Heard()
    async with running(place.channel(), heard):
        await place.server.until(lambda: place.server.sockets)
        message = place.server.say(ANN, "<@U0BOT> hello", ROOM)
        place.server.happens({**message, "type": "app_mention", "channel": ROOM})
        await place.server.until(lambda: len(place.server.confirmed) == 2)
    (event,) = heard.events
    assert isinstance(event, Inbound)
    assert (event.text, event.mentioned, event.address) == ("hello", True, IN_ROOM)


async def test_names_and_kinds_are_asked_once_and_done_without(place: Place) -> None:
    place.server.users[ANN] = {"name": "ann", "real_name": "Ann A", "profile": {"display_name": "Ann"}}
    place.server.channels["G7"] = {"id": "G7", "is_mpim": True}
    heard = Heard()
    async with running(place.channel(), heard):
        await place.server.until(lambda: place.server.sockets)
        for text in ("one", "two"):
            place.server.say(ANN, text)
        place.server.say("U404", "three")
        place.server.happens({"type": "app_mention", "user": ANN, "text": "four", "ts": "9.000001", "channel": "G7"})
        await heard.until(lambda h: len(said(h)) == 4)
    events = [event for event in heard.events if isinstance(event, Inbound)]
    assert [(event.sender.name, event.sender.handle) for event in events[1:3]] == [("Ann", "ann"), ("", "")]
    assert events[3].address.kind == "group"
    assert len(place.server.asked("users.info")) == 2


@pytest.mark.parametrize("reason", ["warning", "refresh_requested"])
async def test_a_new_connection_stands_before_the_old_one_goes(place: Place, reason: str) -> None:
    heard = Heard()
    async with running(place.channel(), heard):
        await heard.until(lambda h: h.me is not None)
        place.server.say(ANN, "one")
        old = place.server.sockets[0]
        await old.send(f'{{"type": "disconnect", "reason": "{reason}"}}')
        await place.server.until(lambda: place.server.opened == 2 and old not in place.server.sockets)
        place.server.say(ANN, "two")
        await heard.until(lambda h: said(h) == ["one", "two"])
    assert not place.server.waiting


async def test_another_program_with_the_same_token_is_told_of(place: Place) -> None:
    place.server.others = 1
    heard = Heard()
    async with running(place.channel(), heard):
        await heard.until(lambda h: bool(h.notes))
    assert "2 connections" in heard.notes[0]


async def test_socket_mode_that_is_off_stops_the_account(place: Place) -> None:
    heard = Heard()
    async with running(place.channel(), heard) as task:
        await heard.until(lambda h: h.me is not None)
        await place.server.tell({"type": "disconnect", "reason": "link_disabled"})
        with pytest.raises(LinkRefused, match="Socket Mode"):
            await asyncio.wait_for(task, 10)
    place.server.broken = "link_disabled"
    with pytest.raises(LinkRefused, match="Socket Mode"):
        await place.channel().run(heard.receive, heard)
    place.server.broken = "warning"
    with pytest.raises(LinkLost):
        await place.channel().run(heard.receive, heard)


@pytest.mark.parametrize("word", ["invalid_auth", "token_revoked", "account_inactive", "missing_scope"])
@pytest.mark.parametrize("method", ["auth.test", "apps.connections.open"])
async def test_a_credential_that_is_no_good_stops_the_account(place: Place, word: str, method: str) -> None:
    place.server.fail(method, Fault(word, needed="connections:write"))
    with pytest.raises(LinkRefused, match=word) as refused:
        await place.channel().run(Heard().receive, Heard())
    assert "xapp-" not in str(refused.value).replace("xapp-…", "")


async def test_what_passes_is_lost(place: Place) -> None:
    place.server.fail("apps.connections.open", Fault("ratelimited", status=429, retry_after=40))
    with pytest.raises(LinkLost) as lost:
        await place.channel().run(Heard().receive, Heard())
    assert lost.value.details == {"retryAfterS": 40}
    place.server.fail("auth.test", Fault(kind="status", status=503))
    with pytest.raises(LinkLost):
        await place.channel().run(Heard().receive, Heard())
    for missing, words in (("botToken", "no bot token"), ("appToken", "no app token")):
        without: dict[str, Any] = {missing: Secret("")}
        with pytest.raises(LinkRefused, match=words):
            await place.channel(**without).run(Heard().receive, Heard())
    own = {"botToken": Secret("xoxb-test-token"), "appToken": Secret("xapp-test-token"), "apiRoot": place.server.url}
    ports = Ports(place.http, SystemClock(), place.tasks, MemoryCursor())
    with pytest.raises(LinkRefused, match="HTTP"):
        await Slack(Account("default", own), ports).run(Heard().receive, Heard())


async def test_what_an_outage_swallowed_is_asked_for_in_order(place: Place) -> None:
    heard, cursor = Heard(), MemoryCursor()
    async with running(place.channel(cursor), heard):
        await heard.until(lambda h: h.me is not None)
        root = place.server.say(ANN, "one", ROOM)
        place.server.say(ANN, "in the thread", ROOM, thread_ts=root["ts"])
        await heard.until(lambda h: len(said(h)) == 2)
        await place.server.until(lambda: len(place.server.confirmed) == 2)
    for number in range(205):
        place.server.miss(ANN, f"missed {number}", ROOM)
    place.server.miss(ANN, "missed in the thread", ROOM, thread_ts=root["ts"])
    begun = place.server.miss(ANN, "a thread begins", ROOM, reply_count=1)
    place.server.miss(ANN, "and goes on", ROOM, thread_ts=begun["ts"])
    again = named()
    async with running(place.channel(cursor), again):
        await again.until(lambda h: len(said(h)) == 208)
    texts = said(again)
    assert [text for text in texts if text[:8] == "missed 0" or text[7:].isdecimal()] == [
        f"missed {number}" for number in range(205)
    ]
    assert set(texts[205:]) == {"missed in the thread", "a thread begins", "and goes on"}
    last = [event for event in again.events if isinstance(event, Inbound) and event.text == "and goes on"]
    assert last[0].address == replace(IN_ROOM, thread=begun["ts"])
    third = Heard()
    async with running(place.channel(cursor), third):
        await third.until(lambda h: h.me is not None)
        place.server.say(ANN, "now")
        await third.until(lambda h: "now" in said(h))
    assert said(third) == ["now"]


async def test_what_comes_together_is_stored_together_and_confirmed_in_its_order(place: Place) -> None:
    heard = Heard()
    async with running(place.channel(), heard):
        await heard.until(lambda h: h.me is not None)
        for number in range(20):
            place.server.say(ANN, f"m{number}")
        await place.server.until(lambda: len(place.server.confirmed) == 20)
    assert said(heard) == [f"m{number}" for number in range(20)]
    assert len(set(place.server.confirmed)) == 20


async def test_a_chat_that_is_shut_has_nothing_and_a_pause_is_waited_for(place: Place) -> None:
    heard, cursor = Heard(), MemoryCursor()
    async with running(place.channel(cursor), heard):
        await heard.until(lambda h: h.me is not None)
        place.server.say(ANN, "one", ROOM)
        place.server.say(ANN, "two")
        await heard.until(lambda h: len(said(h)) == 2)
        await place.server.until(lambda: len(place.server.confirmed) == 2)
    place.server.miss(ANN, "three")
    place.server.fail("conversations.history", Fault("not_in_channel"))
    place.server.fail("conversations.history", Fault("ratelimited", status=429, retry_after=0))
    async with running(place.channel(cursor), heard):
        await heard.until(lambda h: said(h) == ["one", "two", "three"])
    place.server.fail("conversations.history", Fault("ratelimited", status=429, retry_after=600))
    with pytest.raises(LinkLost):
        await place.channel(cursor).run(heard.receive, heard)


# ---- sending


async def test_a_try_after_a_lost_answer_finds_the_message(place: Place) -> None:
    channel = place.channel()
    for kind in ("cut_after", "cut_before"):
        message = outbound(DIRECT, kind, f"out:{kind}")
        place.server.fail("chat.postMessage", Fault(kind=kind))
        with pytest.raises(SendFailed) as failed:
            await channel.send(message)
        assert failed.value.fault == "unsure"
        place.server.fail("conversations.history", Fault("ratelimited", status=429, retry_after=9))
        with pytest.raises(SendFailed) as failed:
            await channel.send(message)
        assert (failed.value.fault, failed.value.retry_after_s) == ("passing", 9)
        number = await channel.send(message)
        assert number == place.server.messages[DIRECT.chat][-1]["ts"]
        assert await channel.send(message) == number
    assert place.server.shown(DIRECT.chat) == ["cut_after", "cut_before"]


async def test_another_process_finds_what_the_first_had_half_sent(place: Place) -> None:
    thread = replace(IN_ROOM, thread="9.000001")
    number = await place.channel().send(outbound(thread, "once"))
    heard, channel = Heard(), place.channel()
    async with running(channel, heard):
        await heard.until(lambda h: h.me is not None)
        assert await channel.send(outbound(thread, "once")) == number
        place.server.fail("conversations.replies", Fault("missing_scope"))
        await channel.send(outbound(thread, "other", "out:2"))
    assert place.server.shown(ROOM) == ["once", "other"]


async def test_edits_deletes_reactions_and_status(place: Place) -> None:
    channel = place.channel()
    number = await channel.send(outbound(DIRECT, "one"))
    await channel.edit(number, outbound(DIRECT, "two"))
    assert place.server.shown(DIRECT.chat) == ["two"]
    for emoji in ("👀", "👍", ""):
        await channel.react(DIRECT, number, emoji)
    place.server.fail("reactions.add", Fault("already_reacted"))
    await channel.react(DIRECT, number, "🔥")
    shown = [(call.method, call.params["name"]) for call in place.server.calls if "reactions" in call.method]
    assert shown == [
        ("reactions.add", "eyes"),
        ("reactions.add", "+1"),
        ("reactions.remove", "eyes"),
        ("reactions.remove", "+1"),
        ("reactions.add", "fire"),
    ]
    await channel.type(DIRECT)
    await channel.type(replace(DIRECT, thread="9.000001"))
    assert [call.params["thread_ts"] for call in place.server.asked("assistant.threads.setStatus")] == ["9.000001"]
    await channel.delete(DIRECT, number)
    await channel.delete(DIRECT, number)
    with pytest.raises(SendFailed) as failed:
        await channel.edit(number, outbound(DIRECT, "three"))
    assert failed.value.fault == "gone"


async def test_writing_to_a_person_first(place: Place) -> None:
    channel = place.channel()
    assert await channel.open_direct(ANN) == DIRECT
    await channel.send(outbound(Address("slack", "default", f"user:{ANN}", "direct"), "hello"))
    await channel.send(outbound(Address("slack", "default", f"channel:{ROOM}", "channel"), "hello", "out:2"))
    assert place.server.shown(DIRECT.chat) == place.server.shown(ROOM) == ["hello"]
    assert len(place.server.asked("conversations.open")) == 1
    for wrong in ("@ann", "../x", ""):
        with pytest.raises(SendFailed):
            await channel.open_direct(wrong)
        with pytest.raises(SendFailed):
            await channel.send(outbound(Address("slack", "default", wrong, "direct"), "x"))


FAULTS = [
    (Fault("msg_too_long"), "too_long"),
    (Fault("not_in_channel"), "gone"),
    (Fault("is_archived"), "gone"),
    (Fault("missing_scope", needed="chat:write"), "refused"),
    (Fault("some_new_word"), "refused"),
    (Fault("invalid_auth"), "auth"),
    (Fault("account_inactive"), "auth"),
    (Fault("fatal_error"), "unsure"),
    (Fault("service_unavailable", status=503), "passing"),
    (Fault(kind="status", status=502), "unsure"),
    (Fault("ratelimited", status=429, retry_after=7), "passing"),
    (Fault(kind="cut_before"), "unsure"),
]


@pytest.mark.parametrize(("fault", "meant"), FAULTS, ids=lambda value: getattr(value, "word", value))
async def test_what_a_refusal_means(place: Place, fault: Fault, meant: str) -> None:
    place.server.fail("chat.postMessage", fault)
    with pytest.raises(SendFailed) as failed:
        await place.channel().send(outbound(DIRECT, "x"))
    assert failed.value.fault == meant
    assert failed.value.retry_after_s == fault.retry_after
    assert fault.needed in str(failed.value)


async def test_no_connection_means_nothing_was_sent(place: Place) -> None:
    with pytest.raises(SendFailed) as failed:
        await place.channel(apiRoot="http://127.0.0.1:9/api").send(outbound(DIRECT, "x"))
    assert failed.value.fault == "passing"


# ---- files


def file(place: Place, name: str, data: bytes = b"data") -> File:
    (place.folder / name).write_bytes(data)
    return File("file", name, name, "text/plain", len(data))


def files(place: Place) -> Outbound:
    return outbound(
        replace(IN_ROOM, thread="9.000001"), "see", files=(file(place, "a.txt", b"A"), file(place, "b.txt"))
    )


async def test_files_go_after_the_words_and_all_at_once(place: Place) -> None:
    number = await place.channel().send(files(place))
    assert place.server.shown(ROOM) == ["see", ""]
    assert number == place.server.messages[ROOM][0]["ts"]
    (call,) = place.server.asked("files.completeUploadExternal")
    assert (call.params["channel_id"], call.params["thread_ts"]) == (ROOM, "9.000001")
    assert [one["title"] for one in call.params["files"]] == ["a.txt", "b.txt"]
    assert sorted(place.server.uploads.values()) == [b"A", b"data"]
    alone = await place.channel().send(outbound(IN_ROOM, "", "out:2", files=(file(place, "c.txt"),)))
    assert alone.startswith("file:F")


@pytest.mark.parametrize(("kind", "calls"), [("cut_after", 1), ("cut_before", 2)])
async def test_files_that_may_be_shown_already_are_not_shown_twice(place: Place, kind: str, calls: int) -> None:
    channel = place.channel()
    place.server.fail("files.completeUploadExternal", Fault(kind=kind))
    with pytest.raises(SendFailed) as failed:
        await channel.send(files(place))
    assert failed.value.fault == "unsure"
    await channel.send(files(place))
    assert len(place.server.asked("files.completeUploadExternal")) == calls
    assert len(place.server.uploads) == 2
    assert place.server.shown(ROOM) == ["see", ""]


async def test_files_that_do_not_leave(place: Place) -> None:
    big, outside = File("file", "big", "big", "x/y", 21 << 20), File("file", "../o", "x", "x/y", 1)
    for one, fault in ((big, "too_large"), (outside, "refused")):
        with pytest.raises(SendFailed) as failed:
            await place.channel().send(outbound(IN_ROOM, "", files=(one,)))
        assert failed.value.fault == fault
    with pytest.raises(SendFailed) as failed:
        await place.channel().send(outbound(IN_ROOM, " "))
    assert failed.value.fault == "refused"
    assert place.server.calls == []


async def fetched(channel: Slack, media: Media, limit: int = 1 << 20) -> bytes:
    return b"".join([chunk async for chunk in channel.fetch(media, limit)])


async def test_a_file_is_fetched_with_the_credential_and_from_slack_alone(place: Place) -> None:
    root = place.server.root
    place.server.uploads["F1"] = b"bytes"
    place.server.files["F1"] = {"id": "F1", "url_private": f"{root}/files/F1"}
    channel = place.channel()
    assert await fetched(channel, Media("file", f"F1 {root}/files/F1")) == b"bytes"
    assert await fetched(channel, Media("file", "F1 ")) == b"bytes"
    cases = [
        (Media("file", f"F2 {root}/files/F2"), 99, "gone"),
        (Media("file", "F404 "), 99, "gone"),
        (Media("file", f"F1 {root}/files/F1"), 2, "too_large"),
        (Media("file", f"F1 {root}/files/F1", size=99), 10, "too_large"),
        (Media("file", "F1 https://evil.example/x"), 99, "refused"),
        (Media("file", "F1 https://slack.com.evil.example/x"), 99, "refused"),
        (Media("file", "F1 http://files.slack.com/x"), 99, "refused"),
    ]
    for media, limit, fault in cases:
        with pytest.raises(SendFailed) as failed:
            await fetched(channel, media, limit)
        assert failed.value.fault == fault
    with pytest.raises(SendFailed, match="files:read"):
        await fetched(place.channel(botToken=Secret("xoxb-other")), Media("file", f"F1 {root}/files/F1"))
