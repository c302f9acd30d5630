"""The channel over a homeserver of one bot."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from garra.builtin.channels.matrix.channel import Matrix
from garra.core.secret import Secret
from garra.io.clock import SystemClock
from garra.io.files.root import Root
from garra.io.http import GuardedHttp
from garra.io.tasks import Tasks
from garra.sdk.channel import Account, Address, File, Ignored, Inbound, LinkLost, LinkRefused, Media, Ports, SendFailed
from garra.testing.channels import Heard, MemoryCursor, outbound
from garra.testing.matrix import MatrixFault, MatrixServer

ANN = "@ann:example.org"


@dataclass
class House:
    server: MatrixServer
    http: GuardedHttp
    tasks: Tasks
    folder: Path
    cursor: MemoryCursor

    def channel(self, **own: Any) -> Matrix:
        base = {"homeserver": self.server.url, "accessToken": Secret(self.server.token), "encryption": False}
        media, state = Root(self.folder / "media"), Root(self.folder / "state")
        ports = Ports(self.http, SystemClock(), self.tasks, self.cursor, media, None, state)
        return Matrix(Account("default", {**base, **own}), ports)

    @asynccontextmanager
    async def running(self, heard: Heard | None = None, **own: Any) -> AsyncIterator[tuple[Matrix, Heard]]:
        channel, heard = self.channel(**own), heard or Heard()
        task = asyncio.ensure_future(channel.run(heard.receive, heard))
        try:
            await heard.until(lambda h: bool(h.beats) or task.done())
            if task.done():
                task.result()
            yield channel, heard
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError, LinkLost, LinkRefused, OSError):
                await task


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    http, tasks = GuardedHttp(), Tasks()
    for name in ("media", "state"):
        (tmp_path / name).mkdir()
    async with MatrixServer() as server:
        yield House(server, http, tasks, tmp_path, MemoryCursor())
    await tasks.close()
    await http.close()


def here(house: House, **more: Any) -> Address:
    return Address("matrix", "default", house.server.room(ANN).id, "direct", **more)


# ---- reading


async def test_what_was_said_before_the_first_start_is_history(house: House) -> None:
    room = house.server.room(ANN)
    house.server.push(room.id, ANN, "m.room.message", {"msgtype": "m.text", "body": "old"})
    async with house.running() as (_, heard):
        await house.server.say(ANN, "new")
        await heard.until(lambda h: "new" in h.said)
    assert heard.said == ["new"]


async def test_what_the_server_left_out_is_fetched_in_order(house: House) -> None:
    async with house.running() as (_, heard):
        await house.server.say(ANN, "first")
        await heard.until(lambda h: h.said == ["first"])
    house.server.shown_most = 2
    for number in range(250):
        await house.server.say(ANN, f"m{number}")
    async with house.running() as (_, heard):
        await heard.until(lambda h: "m249" in h.said)
    fresh = [text for text in heard.said if text != "first"]
    assert fresh == [f"m{number}" for number in range(250)]


@pytest.mark.req("CH-20")
async def test_the_token_moves_behind_all_of_a_sync_or_not_at_all(house: House) -> None:
    async with house.running() as (_, heard):
        await house.server.say(ANN, "zero")
        await heard.until(lambda h: h.said == ["zero"])
    before = house.cursor.value

    def refuse(event: Inbound | Ignored) -> None:
        if isinstance(event, Inbound) and event.text == "two":
            raise OSError("disk full")

    for text in ("one", "two", "three"):
        await house.server.say(ANN, text)
    broken = Heard(before=refuse)
    task = asyncio.ensure_future(house.channel().run(broken.receive, broken))
    with pytest.raises(OSError):
        await asyncio.wait_for(task, 10)
    assert "two" not in broken.said
    assert house.cursor.value == before
    async with house.running() as (_, heard):
        await heard.until(lambda h: h.said[-3:] == ["one", "two", "three"])


async def test_what_comes_in_one_sync_is_stored_together_and_in_its_order(house: House) -> None:
    async with house.running() as (_, heard):
        await house.server.say(ANN, "first")
        await heard.until(lambda h: h.said == ["first"])
    for number in range(5):
        await house.server.say(ANN, f"m{number}")
    taken: list[str] = []
    waiting, most = 0, 0

    async def receive(event: Inbound | Ignored) -> None:
        nonlocal waiting, most
        waiting += 1
        most = max(most, waiting)
        if isinstance(event, Inbound):
            taken.append(event.text)
        await asyncio.sleep(0.01)
        waiting -= 1

    heard = Heard()
    task = asyncio.ensure_future(house.channel().run(receive, heard))
    async with asyncio.timeout(10):
        while len(taken) < 5:  # noqa: ASYNC110 - the test looks at what it was not told of
            await asyncio.sleep(0.01)
    task.cancel()
    assert taken == [f"m{number}" for number in range(5)]
    assert most == 5


async def test_a_token_the_server_lost_is_told_and_reading_goes_on(house: House) -> None:
    async with house.running() as (_, heard):
        await house.server.say(ANN, "one")
        await heard.until(lambda h: h.said == ["one"])
    house.server.fail("sync", MatrixFault(400, "M_UNKNOWN", "Invalid stream token"))
    async with house.running() as (_, heard):
        await house.server.say(ANN, "two")
        await heard.until(lambda h: h.said == ["two"])
        assert any("no longer knows" in line for line in heard.notes)


async def test_an_answer_brings_the_words_it_answers(house: House) -> None:
    async with house.running() as (channel, heard):
        sent = await channel.send(outbound(here(house), "I said so"))
        await house.server.say(ANN, "why?", None, **{"m.relates_to": {"m.in_reply_to": {"event_id": sent}}})
        await heard.until(lambda h: "why?" in h.said)
    event = next(one for one in heard.events if isinstance(one, Inbound) and one.text == "why?")
    assert (event.reply_to, event.reply_text, event.mentioned) == (sent, "I said so", True)


async def test_own_events_are_own_and_own_changes_are_nothing(house: House) -> None:
    async with house.running() as (channel, heard):
        sent = await channel.send(outbound(here(house), "one"))
        await channel.edit(sent, outbound(here(house), "one, changed"))
        await channel.react(here(house), sent, "👀")
        await house.server.say(ANN, "after")
        await heard.until(lambda h: "after" in h.said)
    mine = [event for event in heard.events if isinstance(event, Inbound) and event.sender.id == house.server.me]
    assert [(event.event, event.own) for event in mine] == [("message", True)]


@pytest.mark.parametrize(("wanted", "heard_of"), [("own", ["own"]), ("all", ["own", "other"]), ("off", [])])
async def test_which_reactions_are_heard(house: House, wanted: str, heard_of: list[str]) -> None:
    async with house.running(reactionNotifications=wanted) as (channel, heard):
        sent = await channel.send(outbound(here(house), "mine"))
        theirs = await house.server.say(ANN, "theirs")
        for target, key in ((sent, "own"), (theirs["event_id"], "other")):
            about = {"rel_type": "m.annotation", "event_id": target, "key": key}
            house.server.push(house.server.room(ANN).id, ANN, "m.reaction", {"m.relates_to": about})
        await house.server.say(ANN, "after")
        await heard.until(lambda h: "after" in h.said)
    assert [one.data for one in heard.events if isinstance(one, Inbound) and one.event == "reaction"] == heard_of


async def test_a_third_person_makes_it_a_group(house: House) -> None:
    room = house.server.room(ANN)
    async with house.running() as (_, heard):
        await house.server.say(ANN, "alone")
        await heard.until(lambda h: "alone" in h.said)
        joined = {"membership": "join", "displayname": "Bob"}
        house.server.push(room.id, "@bob:example.org", "m.room.member", joined, state_key="@bob:example.org")
        await house.server.say(ANN, "not alone", room)
        await heard.until(lambda h: "not alone" in h.said)
    kinds = {event.text: event.address.kind for event in heard.events if isinstance(event, Inbound) and event.text}
    assert kinds == {"alone": "direct", "not alone": "group"}


async def test_a_room_with_rules_of_its_own_is_no_direct_chat(house: House) -> None:
    async with house.running(groups={house.server.room(ANN).id: {}}) as (_, heard):
        await house.server.say(ANN, "hello")
        await heard.until(lambda h: "hello" in h.said)
    event = next(one for one in heard.events if isinstance(one, Inbound))
    assert event.address.kind == "group"


async def test_an_encrypted_message_is_not_lost_in_silence(house: House) -> None:
    async with house.running() as (channel, heard):
        room = house.server.room(ANN)
        room.encrypted = True
        house.server.push(room.id, ANN, "m.room.encrypted", {"ciphertext": "x", "algorithm": "m.megolm.v1.aes-sha2"})
        await heard.until(lambda h: bool(h.events))
        assert any("encryption is off" in line for line in heard.notes)
        with pytest.raises(SendFailed) as failed:
            await channel.send(outbound(here(house), "in clear?"))
    assert failed.value.fault == "refused"
    assert house.server.sent(room) == []


async def test_an_encrypted_room_waits_for_the_link(house: House) -> None:
    house.server.room(ANN).encrypted = True
    with pytest.raises(SendFailed) as failed:
        await house.channel(encryption=True).send(outbound(here(house), "in clear?"))
    assert failed.value.fault == "passing"
    assert house.server.shown(ANN) == []


# ---- invitations

MODES: list[tuple[dict[str, Any], bool, bool]] = [
    ({}, True, True),
    ({}, False, False),
    ({"groups": {"!new:example.org": {}}}, False, True),
    ({"dmPolicy": "disabled"}, True, False),
    ({"dmPolicy": "allowlist", "allowFrom": ["@bob:example.org"]}, True, False),
    ({"dmPolicy": "allowlist", "allowFrom": [ANN]}, True, True),
    ({"autoJoin": "off"}, True, False),
    ({"autoJoin": "always"}, False, True),
    ({"autoJoin": "allowlist"}, True, False),
    ({"autoJoin": "allowlist", "autoJoinAllowlist": ["!new:example.org"]}, False, True),
    ({"autoJoin": "allowlist", "autoJoinAllowlist": ["#new:example.org"]}, False, True),
    ({"autoJoin": "allowlist", "autoJoinAllowlist": ["*"]}, False, True),
    ({"autoJoin": "whatever"}, True, False),
]


@pytest.mark.parametrize(("own", "direct", "accepted"), MODES)
async def test_which_invitations_are_accepted(house: House, own: dict[str, Any], direct: bool, accepted: bool) -> None:
    async with house.running(**own) as (_, heard):
        house.server.invite(ANN, "!new:example.org", direct=direct)
        await heard.until(lambda h: bool(h.notes) or bool(house.server.asked("join")))
        if not accepted:
            house.server.invited.clear()
    assert bool(house.server.asked("join")) is accepted
    assert bool(heard.notes) is not accepted


async def test_what_was_said_between_invitation_and_entering_is_read(house: House) -> None:
    house.server.invite(ANN, "!new:example.org", direct=True)
    house.server.push("!new:example.org", ANN, "m.room.message", {"msgtype": "m.text", "body": "are you coming?"})
    async with house.running() as (_, heard):
        await heard.until(lambda h: "are you coming?" in h.said)
    assert json.loads(house.cursor.history[0])["open"][0]["room"] == "!new:example.org"


# ---- sending


async def test_a_second_try_is_the_same_message(house: House) -> None:
    channel = house.channel()
    house.server.fail("send", MatrixFault(kind="cut_after"))
    with pytest.raises(SendFailed) as failed:
        await channel.send(outbound(here(house), "once"))
    assert failed.value.fault == "unsure"
    assert channel.limits.idempotent
    sent = await house.channel().send(outbound(here(house), "once"))
    assert house.server.shown(ANN) == ["once"]
    assert sent == house.server.sent(house.server.room(ANN))[0]["event_id"]


async def test_a_server_that_wants_time_says_how_much(house: House) -> None:
    house.server.fail("send", MatrixFault(429, "M_LIMIT_EXCEEDED", "Too Many Requests", "status", 2500))
    with pytest.raises(SendFailed) as failed:
        await house.channel().send(outbound(here(house), "hello"))
    assert (failed.value.fault, failed.value.retry_after_s) == ("passing", 2.5)


@pytest.mark.parametrize(
    ("fault", "means"),
    [
        (MatrixFault(413, "M_TOO_LARGE", "event too large"), "too_long"),
        (MatrixFault(404, "M_NOT_FOUND", "Unknown room"), "gone"),
        (MatrixFault(502, "", "Bad Gateway"), "unsure"),
        (MatrixFault(400, "M_BAD_JSON", "no"), "refused"),
    ],
)
async def test_what_a_refusal_means(house: House, fault: MatrixFault, means: str) -> None:
    house.server.fail("send", fault)
    with pytest.raises(SendFailed) as failed:
        await house.channel().send(outbound(here(house), "hello"))
    assert failed.value.fault == means


async def test_reactions_change_and_go_also_after_a_restart(house: House) -> None:
    room = house.server.room(ANN)

    def shown() -> list[str]:
        return [one["content"]["m.relates_to"]["key"] for one in room.events if one["type"] == "m.reaction"]

    async with house.running() as (channel, _):
        theirs = (await house.server.say(ANN, "hello"))["event_id"]
        await channel.react(here(house), theirs, "👀")
        await channel.react(here(house), theirs, "✅")
        assert shown() == ["✅"]
    async with house.running() as (channel, _):
        await channel.react(here(house), theirs, "")
        assert shown() == []


async def test_changes_redactions_and_the_typing_sign(house: House) -> None:
    async with house.running() as (channel, _):
        sent = await channel.send(outbound(here(house), "one"))
        await channel.edit(sent, outbound(here(house), "two"))
        await channel.edit(sent, outbound(here(house), "two"))
        assert house.server.shown(ANN) == ["one", "* two"]
        await channel.delete(here(house), sent)
        await channel.type(here(house))
    assert house.server.shown(ANN) == ["* two"]
    assert house.server.asked("typing")[0].body["typing"] is True


async def test_files_go_up_and_down(house: House) -> None:
    (house.folder / "media" / "a.txt").write_bytes(b"figures")
    file = File("file", "a.txt", "a.txt", "text/plain", 7)
    channel = house.channel(mediaMaxMb=0.001)
    await channel.send(outbound(here(house), "look", files=(file,)))
    shown = house.server.sent(house.server.room(ANN))
    assert [one["content"]["msgtype"] for one in shown] == ["m.file", "m.text"]
    url = shown[0]["content"]["url"]
    assert house.server.files[url] == b"figures"
    assert b"".join([chunk async for chunk in channel.fetch(Media("file", url), 100)]) == b"figures"
    for media, limit, fault in (
        (Media("file", url), 3, "too_large"),
        (Media("file", url, size=99), 10, "too_large"),
        (Media("file", "mxc://example.org/none"), 10, "gone"),
        (Media("file", "https://elsewhere"), 10, "refused"),
        (Media("file", '{"url": "mxc://example.org/x"}'), 10, "gone"),
    ):
        with pytest.raises(SendFailed) as failed:
            await anext(channel.fetch(media, limit))
        assert failed.value.fault == fault
    with pytest.raises(SendFailed) as failed:
        await channel.send(outbound(here(house), "", files=(File("file", "b", "b", "x/y", 5000),)))
    assert failed.value.fault == "too_large"


async def test_a_person_is_written_to_first_in_the_room_there_is(house: House) -> None:
    channel = house.channel()
    made = await channel.open_direct("matrix:@carl:example.org")
    assert (await channel.open_direct("@carl:example.org")).chat == made.chat
    assert len(house.server.asked("createRoom")) == 1
    assert house.server.direct == {"@carl:example.org": [made.chat]}
    with pytest.raises(SendFailed):
        await channel.open_direct("carl")


# ---- logging in


async def test_a_password_is_used_once_and_its_token_kept(house: House) -> None:
    own: dict[str, Any] = {
        "accessToken": None,
        "userId": house.server.me,
        "password": Secret("the-password"),
        "deviceName": "Claw",
    }
    for _ in range(2):
        async with house.running(**own) as (channel, _):
            assert "the-password" not in repr(channel.inspect())
    assert len(house.server.asked("login")) == 1
    assert house.server.asked("login")[0].body["initial_device_display_name"] == "Claw"
    kept = house.folder / "state" / "login.json"
    assert "the-password" not in kept.read_text()

    house.server.token, house.server.soft = "expired", True
    async with house.running(**own):
        pass
    assert house.server.asked("login")[1].body["device_id"] == "MADE"
    house.server.token, house.server.soft = "removed", False
    async with house.running(**own):
        pass
    assert "device_id" not in house.server.asked("login")[2].body


@pytest.mark.parametrize(
    ("own", "words"),
    [
        ({"accessToken": None}, "set accessToken, or userId and password"),
        ({"homeserver": "example.org"}, "https://"),
        ({"userId": "@other:example.org"}, "userId is @other"),
        ({"accessToken": None, "userId": "@garra:example.org", "password": Secret("wrong-word")}, "Look at userId"),
    ],
)
async def test_a_login_that_cannot_be_is_refused_in_words(house: House, own: dict[str, Any], words: str) -> None:
    heard = Heard()
    with pytest.raises(LinkRefused) as refused:
        await asyncio.wait_for(house.channel(**own).run(heard.receive, heard), 10)
    assert words in str(refused.value)
    assert "wrong-word" not in str(refused.value)


async def test_a_crowded_homeserver_is_waited_for(house: House) -> None:
    house.server.fail("whoami", MatrixFault(429, "M_LIMIT_EXCEEDED", "Too Many Requests", "status", 5000))
    heard = Heard()
    with pytest.raises(LinkLost) as lost:
        await asyncio.wait_for(house.channel().run(heard.receive, heard), 10)
    assert lost.value.details == {"retryAfterS": 5.0}
