"""`messages.*`, `send` and their commands, over a real socket, on real boxes."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from garra.core.errors import GarraError
from garra.domains.delivery.courier import Courier, Route
from garra.domains.delivery.desk import Desk, Running
from garra.domains.delivery.draft import Draft, Form
from garra.domains.delivery.inbox import Inbox
from garra.domains.delivery.ledger import Ledger
from garra.domains.delivery.media import MediaRoot
from garra.domains.delivery.outbox import Outbox
from garra.domains.delivery.pace import Pace
from garra.domains.delivery.timeline import Timeline
from garra.faces.cli import message, messages, status
from garra.io.clock import SystemClock
from garra.io.store.db import Database
from garra.io.tasks import Tasks
from garra.sdk.channel import Address, Limits, Outbound, Pulse, Receive, SendFailed
from tests.domains.delivery.parts import inbound
from tests.gateway.house import TOKEN, Refused
from tests.gateway.standing import Standing, standing

LIMITS = Limits(text=4096, per_second=0, file_out=1000)


class Wire:
    """A platform that takes everything, or fails as it is told."""

    limits = LIMITS

    def __init__(self) -> None:
        self.got: list[Outbound] = []
        self.fault: SendFailed | None = None

    async def run(self, receive: Receive, pulse: Pulse) -> None:
        """Nothing comes in."""

    async def send(self, message: Outbound) -> str:
        if self.fault is not None:
            raise self.fault
        self.got.append(message)
        return str(len(self.got))


@dataclass
class Post:
    """A gateway with one account of a channel called `test`."""

    gateway: Standing
    desk: Desk
    wire: Wire
    folder: Path

    async def call(self, method: str, params: dict[str, Any]) -> Any:
        async with self.gateway.guest() as guest:
            return await guest.call(method, params)

    async def command(self, run: Callable[[Sequence[str]], int], *words: str) -> int:
        """A command of the command line, in a thread of its own."""
        return await asyncio.to_thread(run, [*words, "--url", self.gateway.url, "--token", TOKEN])


def drafting(key: str, to: Address, text: str) -> Sequence[Draft]:
    return [Draft(key, to, (Form("plain", text),))]


@pytest.fixture
async def post(tmp_path: Path) -> AsyncIterator[Post]:
    async with posted(tmp_path) as made:
        yield made


@asynccontextmanager
async def posted(folder: Path) -> AsyncIterator[Post]:
    db, clock, wire = Database(folder / "boxes.db"), SystemClock(), Wire()
    inbox, outbox, timeline = Inbox(db, clock), Outbox(db, clock), Timeline(db, clock)
    ledger, media = Ledger(db, inbox, outbox, timeline), MediaRoot(folder / "media", clock)
    desk = Desk(inbox, outbox, timeline, ledger, media, lambda: [Running("test", "main", LIMITS)], drafting)
    async with Tasks() as tasks, standing(folder) as gateway:
        courier = Courier(wire, Route("test", "main", outbox, Pace(LIMITS, clock), clock, tasks))
        tasks(courier.run(), "courier")
        courier.up()
        gateway.host.more["delivery"] = desk
        yield Post(gateway, desk, wire, folder)
    await db.close()


async def test_send_goes_through_the_outbox_once_for_its_key(post: Post) -> None:
    asked = {"to": "test:7", "message": "hello", "idempotencyKey": "k1", "threadId": 5, "replyToId": "3"}
    first = await post.call("send", asked)
    assert (first["state"], first["messageId"], first["channel"], first["chatId"]) == ("sent", "1", "test", "7")
    assert first["ids"] == ["send:k1"]
    assert await post.call("send", asked) == first
    (sent,) = post.wire.got
    assert (sent.text, sent.reply_to, sent.address.thread) == ("hello", "3", "5")


async def test_send_says_why_it_did_not_go(post: Post) -> None:
    post.wire.fault = SendFailed("gone", "403 bot was blocked")
    with pytest.raises(Refused, match="it was not delivered: the chat is gone") as caught:
        await post.call("send", {"to": "test:7", "message": "x", "idempotencyKey": "k"})
    assert caught.value.error["code"] == "UNAVAILABLE"
    with pytest.raises(Refused, match="there is no irc account"):
        await post.call("send", {"to": "7", "channel": "irc", "message": "x", "idempotencyKey": "k2"})
    with pytest.raises(Refused, match="mediaUrl"):
        await post.call("send", {"to": "test:7", "mediaUrl": "file:///etc/passwd", "idempotencyKey": "k3"})


async def test_send_takes_files_into_the_media_folder(post: Post) -> None:
    file = {"fileName": "../a.txt", "mimeType": "text/plain", "content": base64.b64encode(b"words").decode()}
    await post.call("send", {"to": "test:7", "attachments": [file], "idempotencyKey": "k"})
    (sent,) = post.wire.got
    path = await post.desk.media.path(sent.files[0].path)
    assert path.read_bytes() == b"words"
    assert path.is_relative_to(post.folder / "media" / "test")
    with pytest.raises(Refused, match="no base64"):
        bad = {"fileName": "a", "content": "***"}
        await post.call("send", {"to": "test:7", "attachments": [bad], "idempotencyKey": "k2"})


async def test_a_message_whose_account_is_gone_says_why_it_waits(post: Post) -> None:
    gone = Address("test", "old", "7", "direct")
    await post.desk.outbox.put([Draft("left", gone, (Form("plain", "x"),))])
    (row,) = (await post.call("messages.list", {"state": "pending"}))["messages"]
    assert row["reason"] == "there is no account test/old that can send; see garra channels list"
    assert (await post.call("messages.get", {"id": "left"}))["message"]["reason"] == row["reason"]


async def test_a_list_of_a_channel_that_is_none_says_so(post: Post) -> None:
    await post.desk.inbox.accept(inbound(text="why?"))
    with pytest.raises(Refused, match=r"there is no channel 'tset' here; did you mean test\?"):
        await post.call("messages.list", {"channel": "tset"})
    only = await post.call("messages.list", {"channel": "test"})
    assert (len(only["messages"]), len(only["unfinished"])) == (1, 1)


async def test_the_originals_own_action_is_understood(post: Post) -> None:
    asked = {"channel": "test", "action": "send", "idempotencyKey": "k", "agentId": "main", "senderIsOwner": True}
    options = {"target": "7", "to": "test:7", "message": "x", "silent": False, "dryRun": True, "pin": False}
    assert await post.call("message.action", asked | {"params": options}) == {
        "dryRun": True,
        "channel": "test",
        "accountId": "main",
        "to": "7",
    }
    assert post.wire.got == []
    sent = await post.call("message.action", asked | {"params": options | {"dryRun": False}})
    assert sent["messageId"] == "1"
    with pytest.raises(Refused, match="is not known here"):
        await post.call("message.action", asked | {"action": "poll", "params": {}})


async def test_messages_are_listed_shown_retried_and_dropped(post: Post) -> None:
    row_id = (await post.desk.inbox.accept(inbound(text="why?"))).row_id
    await post.desk.inbox.bury(row_id, "no model answers")
    listed = await post.call("messages.list", {"state": "dead"})
    assert listed["unfinished"] == [{"channel": "test", "accountId": "main", "in.dead": 1}]
    (row,) = listed["messages"]
    assert (row["id"], row["reason"], row["sender"]) == (row_id, "no model answers", {"id": "u1", "name": "Ann"})
    found = await post.call("messages.get", {"id": row_id[:-4]})
    assert [station["station"] for station in found["timeline"]] == ["received", "dead"]
    assert (await post.call("messages.retry", {"id": row_id}))["message"]["state"] == "pending"
    assert (await post.call("messages.drop", {"id": row_id}))["message"]["state"] == "done"
    with pytest.raises(Refused, match="cannot be tried again"):
        await post.call("messages.retry", {"id": row_id})
    with pytest.raises(Refused, match="no such message"):
        await post.call("messages.get", {"id": "nothing"})


async def test_status_tells_what_waits_and_what_did_not_get_there(
    post: Post, capfd: pytest.CaptureFixture[str]
) -> None:
    row_id = (await post.desk.inbox.accept(inbound(text="why?"))).row_id
    await post.desk.inbox.bury(row_id, "no model answers")
    await post.desk.inbox.accept(inbound("2", text="and this?"))
    told = (await post.call("status", {}))["messages"]
    assert told == {"waiting": 1, "working": 0, "sending": 0, "unsure": 0, "dead": 1}
    assert await post.command(status.run) == 0
    assert "Messages  1 waiting, 1 given up (garra messages list)" in capfd.readouterr().out


async def test_who_may_only_read_sends_and_changes_nothing(post: Post) -> None:
    async with post.gateway.guest(scopes=["operator.read"]) as guest:
        await guest.call("messages.list", {})
        for method, params in (
            ("send", {"to": "test:7", "message": "x", "idempotencyKey": "k"}),
            ("messages.retry", {"id": "x"}),
            ("messages.drop", {"id": "x"}),
            ("message.action", {"action": "send", "params": {}, "idempotencyKey": "k"}),
        ):
            with pytest.raises(Refused, match=r"missing scope: operator\.write"):
                await guest.call(method, params)


async def test_without_channels_the_answer_says_how_to_get_one(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.guest() as guest:
        with pytest.raises(Refused, match="garra channels add"):
            await guest.call("messages.list", {})


async def test_the_commands_tell_a_messages_story(post: Post, capfd: pytest.CaptureFixture[str]) -> None:
    row_id = (await post.desk.inbox.accept(inbound(text="why\x1b[31m?"))).row_id
    await post.desk.inbox.bury(row_id, "no model answers")
    assert await post.command(messages.run, "list") == 0
    shown = capfd.readouterr().out
    assert f"\n{row_id[:18]} " in shown
    assert shown.startswith("test (main): 1 in dead\n")
    assert "dead: no model answers\nAll of one: garra messages show ID." in shown
    assert "\x1b[31m" not in shown
    assert await post.command(messages.run, "show", row_id) == 0
    story = capfd.readouterr().out
    assert "Came in: test:7 from Ann" in story
    assert "dead: given up; its owner may retry or drop it" in story
    assert "no model answers" in story
    assert "received  stored on disk" in story
    assert await post.command(messages.run, "retry", row_id) == 0
    assert await post.command(messages.run, "drop", row_id, "--json") == 0
    out = capfd.readouterr().out
    assert f"{row_id} is tried again." in out
    assert json.loads(out.split("\n", 1)[1])["message"]["state"] == "done"


async def test_the_send_command_says_what_became_of_it(post: Post, capfd: pytest.CaptureFixture[str]) -> None:
    file = post.folder / "note.txt"
    file.write_text("words")
    send = ("send", "--to", "test:7", "-m", "-hello", "--media", str(file))
    assert await post.command(message.run, *send, "--dry-run") == 0
    assert await post.command(message.run, *send) == 0
    would, *sent = capfd.readouterr().out.splitlines()
    assert would == "It would go to test (main), chat 7."
    (told,) = sent
    assert told.startswith("Sent to test chat 7. Its story: garra messages show send:")
    assert await post.command(messages.run, "show", told.rpartition(" ")[2]) == 0
    assert "the platform confirmed it" in capfd.readouterr().out
    assert (post.wire.got[0].text, post.wire.got[0].files[0].name) == ("-hello", "note.txt")
    post.wire.fault = SendFailed("unsure", "cut")
    assert await post.command(message.run, "send", "--to", "test:8", "-m", "x", "--key", "u") == 0
    assert "never confirmed: garra messages show send:u" in capfd.readouterr().out
    with pytest.raises(GarraError, match="nothing to send"):
        await post.command(message.run, "send", "--to", "test:8")
    with pytest.raises(GarraError, match="cannot be read"):
        await post.command(message.run, "send", "--to", "test:8", "--media", str(post.folder / "none"))
