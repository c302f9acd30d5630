"""The channel over a server that plays Telegram: topics, files, buttons, edits, webhooks, moved chats, faults."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from garra.builtin.channels.telegram.channel import Telegram
from garra.builtin.channels.telegram.polling import FIRST_S, HOLD_S, STALE_MS, Poller, position
from garra.core.secret import Secret
from garra.io.clock import SystemClock
from garra.io.files.root import Root
from garra.io.http import GuardedHttp
from garra.io.tasks import Tasks
from garra.sdk.channel import (
    Account,
    Address,
    Button,
    File,
    Ignored,
    Inbound,
    LinkLost,
    LinkRefused,
    Media,
    Ports,
    SendFailed,
)
from garra.testing.channels import Heard, MemoryCursor, outbound
from garra.testing.telegram import Fault, TelegramServer

DM = Address("telegram", "default", "1001", "direct")
TOPIC = Address("telegram", "default", "-100", "group", "11")
GENERAL = Address("telegram", "default", "-100", "group", "1")


@dataclass
class Place:
    """A server, and what a channel is granted."""

    server: TelegramServer
    http: GuardedHttp
    tasks: Tasks
    folder: Path

    def channel(self, cursor: MemoryCursor | None = None, **settings: Any) -> Telegram:
        own = {"botToken": Secret(self.server.token), "apiRoot": self.server.url, **settings}
        ports = Ports(self.http, SystemClock(), self.tasks, cursor or MemoryCursor(), Root(self.folder))
        return Telegram(Account("default", own), ports)


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    http = GuardedHttp()
    async with TelegramServer() as server, Tasks() as tasks:
        yield Place(server, http, tasks, tmp_path)
    await http.close()


@asynccontextmanager
async def running(channel: Telegram, heard: Heard) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.ensure_future(channel.run(heard.receive, heard))
    try:
        yield task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError, LinkLost, LinkRefused):
            await task


def last(place: Place, method: str) -> dict[str, Any]:
    return dict(place.server.asked(method)[-1].params)


# ---- sending


async def test_a_topic_is_answered_in_it_and_the_general_one_is_not_named(place: Place) -> None:
    channel = place.channel()
    await channel.send(outbound(TOPIC, "one"))
    assert last(place, "sendMessage")["message_thread_id"] == 11
    await channel.send(outbound(GENERAL, "two"))
    assert "message_thread_id" not in last(place, "sendMessage")
    await channel.type(GENERAL)
    assert last(place, "sendChatAction") == {"chat_id": -100, "action": "typing", "message_thread_id": 1}


async def test_words_anchor_buttons_and_quiet(place: Place) -> None:
    buttons = ((Button("Yes", "y:1"), Button("No", "n:1")),)
    message = outbound(DM, "<b>ok?</b>", format="telegram-html", reply_to="40", buttons=buttons, silent=True)
    await place.channel(linkPreview=False).send(message)
    assert last(place, "sendMessage") == {
        "text": "<b>ok?</b>",
        "parse_mode": "HTML",
        "link_preview_options": {"is_disabled": True},
        "chat_id": 1001,
        "reply_parameters": {"message_id": 40, "allow_sending_without_reply": True},
        "disable_notification": True,
        "reply_markup": {
            "inline_keyboard": [[{"text": "Yes", "callback_data": "y:1"}, {"text": "No", "callback_data": "n:1"}]]
        },
    }


async def test_buttons_that_cannot_be_or_are_not_wanted(place: Place) -> None:
    long = outbound(DM, "x", buttons=((Button("a", "é" * 40),),))
    with pytest.raises(SendFailed) as failed:
        await place.channel().send(long)
    assert failed.value.fault == "refused"
    await place.channel(capabilities={"inlineButtons": "group"}).send(outbound(DM, "x", buttons=((Button("a", "b"),),)))
    assert "reply_markup" not in last(place, "sendMessage")


def file(place: Place, name: str, kind: Any, data: bytes = b"data") -> File:
    (place.folder / name).write_bytes(data)
    return File(kind, name, name, "application/x-test", len(data))


async def test_one_file_carries_its_words(place: Place) -> None:
    await place.channel().send(outbound(TOPIC, "see", files=(file(place, "a.png", "image", b"\x89PNG\r\n--\r\n"),)))
    call = place.server.asked("sendPhoto")[0]
    assert call.params == {"chat_id": -100, "message_thread_id": 11, "caption": "see"}
    assert call.files == {"photo": ("a.png", b"\x89PNG\r\n--\r\n")}


@pytest.mark.parametrize(
    ("kind", "method"),
    [("voice", "sendVoice"), ("audio", "sendAudio"), ("video", "sendVideo"), ("file", "sendDocument")],
)
async def test_each_kind_of_file_goes_its_way(place: Place, kind: Any, method: str) -> None:
    await place.channel().send(outbound(DM, "", files=(file(place, "f", kind),)))
    assert len(place.server.asked(method)) == 1


async def test_pictures_make_an_album_and_long_words_follow(place: Place) -> None:
    files = (*(file(place, f"{n}.png", "image") for n in range(3)), file(place, "d.txt", "file"))
    await place.channel().send(outbound(DM, "w" * 2000, files=files))
    assert [call.method for call in place.server.calls] == ["sendMediaGroup", "sendDocument", "sendMessage"]
    album = place.server.asked("sendMediaGroup")[0]
    assert [one["media"] for one in album.params["media"]] == ["attach://file0", "attach://file1", "attach://file2"]
    assert len(album.files) == 3


async def test_a_second_try_repeats_no_file_that_went(place: Place) -> None:
    channel = place.channel()
    message = outbound(DM, "w" * 2000, files=(file(place, "d.txt", "file"),))
    place.server.fail("sendMessage", Fault(429, "Too Many Requests", retry_after=1))
    with pytest.raises(SendFailed):
        await channel.send(message)
    await channel.send(message)
    assert [call.method for call in place.server.calls] == ["sendDocument", "sendMessage", "sendMessage"]


async def test_a_picture_telegram_will_not_show_goes_as_a_file(place: Place) -> None:
    place.server.fail("sendPhoto", Fault(400, "Bad Request: PHOTO_INVALID_DIMENSIONS"))
    await place.channel().send(outbound(DM, "see", files=(file(place, "a.png", "image"),)))
    assert place.server.asked("sendDocument")[0].files["document"][0] == "a.png"


@pytest.mark.req("ONE-11")
async def test_files_over_the_limit_do_not_leave(place: Place) -> None:
    big = File("file", "big", "big", "text/plain", 51 << 20)
    with pytest.raises(SendFailed) as failed:
        await place.channel().send(outbound(DM, "", files=(big,)))
    assert failed.value.fault == "too_large"
    missing = File("file", "../outside", "x", "text/plain", 1)
    with pytest.raises(SendFailed) as failed:
        await place.channel().send(outbound(DM, "", files=(missing,)))
    assert failed.value.fault == "refused"
    assert place.server.calls == []
    limits = place.channel().limits
    assert (limits.file_in, limits.file_out) == (20 << 20, 50 << 20)
    assert (limits.per_second, limits.per_chat_s, limits.per_group_minute) == (30, 1, 20)


FAULTS = [
    (Fault(400, "Bad Request: can't parse entities: Unsupported start tag"), "format"),
    (Fault(400, "Bad Request: message is too long"), "too_long"),
    (Fault(400, "Bad Request: chat not found"), "gone"),
    (Fault(400, "Bad Request: message thread not found"), "gone"),
    (Fault(400, "Bad Request: TOPIC_CLOSED"), "refused"),
    (Fault(403, "Forbidden: bot was kicked from the supergroup chat"), "gone"),
    (Fault(403, "Forbidden: something else"), "refused"),
    (Fault(413, "Request Entity Too Large"), "too_large"),
    (Fault(429, "Too Many Requests: retry after 7", retry_after=7), "passing"),
    (Fault(502, "Bad Gateway"), "passing"),
    (Fault(404, "Not Found"), "auth"),
    (Fault(kind="cut_before"), "unsure"),
]


@pytest.mark.parametrize(("fault", "meant"), FAULTS, ids=lambda value: getattr(value, "words", value))
async def test_what_a_refusal_means(place: Place, fault: Fault, meant: str) -> None:
    place.server.fail("sendMessage", fault)
    with pytest.raises(SendFailed) as failed:
        await place.channel().send(outbound(DM, "x"))
    assert failed.value.fault == meant
    assert failed.value.retry_after_s == fault.retry_after


async def test_no_connection_means_nothing_was_sent(place: Place) -> None:
    channel = place.channel(apiRoot="http://127.0.0.1:9")
    with pytest.raises(SendFailed) as failed:
        await channel.send(outbound(DM, "x"))
    assert failed.value.fault == "passing"


async def test_a_group_that_became_a_supergroup_is_found_again(place: Place) -> None:
    channel = place.channel()
    old = Address("telegram", "default", "-5", "group")
    place.server.fail("sendMessage", Fault(400, "Bad Request: group chat was upgraded", migrate_to=-1005))
    await channel.send(outbound(old, "one"))
    await channel.send(outbound(old, "two", "out:2"))
    assert place.server.shown(-1005) == ["one", "two"]
    assert [call.params["chat_id"] for call in place.server.asked("sendMessage")] == [-5, -1005, -1005]


async def test_where_a_group_moved_to_is_known_after_a_restart_too(place: Place) -> None:
    cursor, heard = MemoryCursor(), Heard()
    notice = {**place.server.message(1001, ""), "migrate_to_chat_id": -1006}
    notice["chat"] = {"id": -6, "type": "group", "title": "Lab"}
    place.server.fail("sendMessage", Fault(400, "Bad Request: group chat was upgraded", migrate_to=-1005))
    before = place.channel(cursor)
    async with running(before, heard):
        await before.send(outbound(Address("telegram", "default", "-5", "group"), "one"))
        place.server.push({"message": notice})
        place.server.say(1001, "hi")
        await heard.until(lambda h: len(h.events) == 2)
    again, later = place.channel(cursor), Heard()
    async with running(again, later):
        for chat in ("-5", "-6"):
            await again.send(outbound(Address("telegram", "default", chat, "group"), "two", f"out:{chat}"))
        place.server.say(1001, "there?")
        await later.until(lambda h: "there?" in h.said)
    assert (place.server.shown(-1005), place.server.shown(-1006)) == (["one", "two"], ["two"])
    assert later.said.count("hi") <= 1
    assert again.inspect()["movedChats"] == 2


@pytest.mark.parametrize(("wanted", "heard_of"), [(None, ["own"]), ("own", ["own"]), ("all", ["own", "other"])])
async def test_reactions_to_what_the_bot_said(place: Place, wanted: str | None, heard_of: list[str]) -> None:
    settings: dict[str, Any] = {"reactionNotifications": wanted} if wanted else {}
    channel, heard = place.channel(None, **settings), Heard()
    async with running(channel, heard):
        number = await channel.send(outbound(DM, "one"))
        for message in (int(number), int(number) + 500):
            who = {"chat": {"id": 1001, "type": "private"}, "user": {"id": 1001, "first_name": "Ana"}}
            new = [{"type": "emoji", "emoji": "🔥"}]
            reaction = {**who, "message_id": message, "date": 1, "old_reaction": [], "new_reaction": new}
            place.server.push({"message_reaction": reaction})
        await heard.until(lambda h: len(h.events) == 2)
    told = [name for name, event in zip(("own", "other"), heard.events, strict=True) if isinstance(event, Inbound)]
    assert told == heard_of


async def test_edits_deletes_and_reactions(place: Place) -> None:
    channel = place.channel()
    number = await channel.send(outbound(DM, "one"))
    await channel.edit(number, outbound(DM, "two"))
    await channel.edit(number, outbound(DM, "two"))  # the same again is fine
    assert place.server.shown(1001) == ["two"]
    await channel.react(DM, number, "👍")
    await channel.react(DM, number, "")
    shown = [call.params["reaction"] for call in place.server.asked("setMessageReaction")]
    assert shown == [[{"type": "emoji", "emoji": "👍"}], []]
    await channel.delete(DM, number)
    await channel.delete(DM, number)
    with pytest.raises(SendFailed) as failed:
        await channel.edit(number, outbound(DM, "three"))
    assert failed.value.fault == "gone"


async def test_the_words_under_a_picture_are_edited_too(place: Place) -> None:
    place.server.fail("editMessageText", Fault(400, "Bad Request: there is no text in the message to edit"))
    await place.channel().edit("7", outbound(DM, "new"))
    assert last(place, "editMessageCaption")["caption"] == "new"


async def test_writing_to_a_person_first(place: Place) -> None:
    assert await place.channel().open_direct("1001") == DM
    with pytest.raises(SendFailed):
        await place.channel().open_direct("@ana")


# ---- receiving


async def test_files_are_fetched_within_their_limit(place: Place) -> None:
    channel = place.channel()
    place.server.files["f1"] = b"x" * 5000
    got = b"".join([chunk async for chunk in channel.fetch(Media("file", "f1"), 10_000)])
    assert got == b"x" * 5000
    for media, limit, fault in (
        (Media("file", "f1"), 100, "too_large"),
        (Media("file", "f1", size=21 << 20), 1 << 30, "too_large"),
        (Media("file", "nope"), 100, "refused"),
    ):
        with pytest.raises(SendFailed) as failed:
            [chunk async for chunk in channel.fetch(media, limit)]
        assert failed.value.fault == fault


async def test_a_button_is_answered_once_its_press_is_stored(place: Place) -> None:
    heard = Heard(before=lambda _: stored.append(len(place.server.asked("answerCallbackQuery"))))
    stored: list[int] = []
    press = {"id": "q1", "from": {"id": 1001}, "data": "y:1", "message": place.server.message(1001, "sure?")}
    async with running(place.channel(), heard):
        place.server.push({"callback_query": press})
        await heard.until(lambda h: len(h.events) == 1)
        for _ in range(100):
            if place.server.asked("answerCallbackQuery"):
                break
            await asyncio.sleep(0.02)
    assert stored == [0]
    assert last(place, "answerCallbackQuery") == {"callback_query_id": "q1"}


async def test_polls_hold_only_after_the_first(place: Place) -> None:
    heard = Heard()
    async with running(place.channel(), heard):
        place.server.say(1001, "a")
        await heard.until(lambda h: h.said == ["a"])
        place.server.say(1001, "b")
        await heard.until(lambda h: h.said == ["a", "b"])
    first, second = (call.params for call in place.server.asked("getUpdates")[:2])
    assert first["timeout"] == 0
    assert "offset" not in first
    assert second["timeout"] == HOLD_S
    assert FIRST_S > HOLD_S
    assert "message_reaction" in first["allowed_updates"]


async def test_a_press_without_an_id_stops_nothing_behind_it(place: Place) -> None:
    heard = Heard()
    async with running(place.channel(), heard):
        odd: tuple[Any, ...] = ({"data": "x"}, "x", [1], {"id": {}})
        for each in odd:
            place.server.push({"callback_query": each})
        place.server.say(1001, "behind")
        await heard.until(lambda h: h.said[-1:] == ["behind"])
    assert heard.said.count("behind") == 1


@pytest.mark.parametrize("odd", [True, {"a": 1}, ["x"], [{"message": {}}], [{"update_id": "7"}]])
async def test_an_answer_that_is_no_list_of_updates_is_a_lost_link(place: Place, odd: object) -> None:
    channel = place.channel()

    async def answer(*_: object, **__: object) -> object:
        return odd

    async def take(_: object) -> None: ...

    poller = Poller(channel._api, MemoryCursor(), SystemClock(), (), take)
    with pytest.MonkeyPatch.context() as patch, pytest.raises(LinkLost, match="no list of numbered updates"):
        patch.setattr(channel._api, "call", answer)
        await poller.run(1, Heard())


async def test_a_webhook_that_was_left_is_taken_away(place: Place) -> None:
    place.server.hook = "https://old.example/hook"
    heard = Heard()
    async with running(place.channel(), heard):
        place.server.say(1001, "kept")
        await heard.until(lambda h: h.said == ["kept"])
    assert place.server.hook == ""
    assert last(place, "deleteWebhook") == {"drop_pending_updates": False}
    assert "webhook" in heard.notes[0]


async def test_another_reader_is_told_as_such(place: Place) -> None:
    place.server.fail("getUpdates", Fault(409, "Conflict: terminated by other getUpdates request"))
    async with running(place.channel(), Heard()) as task:
        with pytest.raises(LinkLost, match="another program reads"):
            await task


async def test_a_server_that_says_when_is_heard(place: Place) -> None:
    place.server.fail("getUpdates", Fault(429, "Too Many Requests", retry_after=9))
    async with running(place.channel(), Heard()) as task:
        with pytest.raises(LinkLost) as lost:
            await task
    assert lost.value.details == {"retryAfterS": 9}


@pytest.mark.parametrize("settings", [{"botToken": Secret("")}, {"botToken": ""}])
async def test_without_a_token_it_does_not_try(place: Place, settings: dict[str, Any]) -> None:
    async with running(place.channel(**settings), Heard()) as task:
        with pytest.raises(LinkRefused, match="BotFather"):
            await task
    assert place.server.calls == []


async def test_an_api_root_with_the_token_behind_it_is_mended(place: Place) -> None:
    channel = place.channel(apiRoot=f"{place.server.url}/bot{place.server.token}/")
    await channel.send(outbound(DM, "x"))
    assert place.server.shown(1001) == ["x"]


def test_a_position_of_another_bot_or_of_long_ago_is_none() -> None:
    now = 1_800_000_000_000
    assert position(f"7:55:{now - 1000}", 7, now).offset == 55
    assert position(f"8:55:{now - 1000}", 7, now).offset == 0
    assert position(f"7:55:{now - STALE_MS}", 7, now).offset == 0
    assert position("rubbish", 7, now).offset == 0
    assert position(None, 7, now).offset == 0


async def test_the_menu_holds_the_owners_commands_too(place: Place) -> None:
    own = [{"command": "/Backup", "description": "Git backup"}, {"command": "no good!", "description": "x"}]
    heard = Heard()
    async with running(place.channel(customCommands=own), heard):
        for _ in range(200):
            if place.server.asked("setMyCommands"):
                break
            await asyncio.sleep(0.02)
    listed = {one["command"] for one in last(place, "setMyCommands")["commands"]}
    assert {"backup", "stop", "new"} <= listed
    assert not any(" " in name for name in listed)


# ---- webhook

SECRET = "s3cret-of-the-hook"
HOOK: dict[str, Any] = {"webhookUrl": "https://bot.example/telegram-webhook", "webhookSecret": Secret(SECRET)}
KNOWN = {"x-telegram-bot-api-secret-token": SECRET}


async def test_called_by_telegram(place: Place) -> None:
    channel, heard = place.channel(**HOOK), Heard()
    assert channel.path == "/telegram-webhook"
    body = json.dumps({"update_id": 1, "message": place.server.message(1001, "by hook")}).encode()
    assert (await channel.called("POST", KNOWN, body, heard.receive)).status == 503  # not up yet: Telegram tries again
    async with running(channel, heard):
        await heard.until(lambda h: h.beats > 0)
        assert place.server.hook == HOOK["webhookUrl"]
        assert last(place, "setWebhook")["secret_token"] == SECRET
        assert (await channel.called("POST", KNOWN, body, heard.receive)).status == 200
        assert heard.said == ["by hook"]
        wrong = {"x-telegram-bot-api-secret-token": "guess"}
        assert (await channel.called("POST", wrong, body, heard.receive)).status == 401
        assert (await channel.called("POST", {}, body, heard.receive)).status == 401
        assert (await channel.called("GET", KNOWN, body, heard.receive)).status == 405
        assert (await channel.called("POST", KNOWN, b"{", heard.receive)).status == 400
        assert (await channel.called("POST", KNOWN, b"[]", heard.receive)).status == 400
    assert len(heard.events) == 1
    assert place.server.asked("getUpdates") == []


async def test_a_call_is_confirmed_only_when_it_is_stored(place: Place) -> None:
    def refuse(event: Inbound | Ignored) -> None:
        raise OSError("disk full")

    channel, heard = place.channel(**HOOK), Heard()
    async with running(channel, heard):
        await heard.until(lambda h: h.beats > 0)
        body = json.dumps({"update_id": 1, "message": place.server.message(1001, "x")}).encode()
        with pytest.raises(OSError, match="disk full"):
            await channel.called("POST", KNOWN, body, Heard(before=refuse).receive)


async def test_a_webhook_needs_its_secret(place: Place) -> None:
    async with running(place.channel(webhookUrl=HOOK["webhookUrl"]), Heard()) as task:
        with pytest.raises(LinkRefused, match="webhookSecret"):
            await task
