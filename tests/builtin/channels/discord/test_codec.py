"""Events read: `events/*.json` are in the shape of Discord's documentation, dispatch by dispatch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from garra.builtin.channels.discord.codec import Event, Me, Reader, Room
from garra.builtin.channels.discord.outgoing import Style as Shown
from garra.builtin.channels.discord.outgoing import nonce, posts, rows
from garra.builtin.channels.discord.position import CHATS, Last, Position, at_ms, later, position, sent_ms
from garra.sdk.channel import Address, Button, Ignored, Inbound, Media, SendFailed
from garra.testing.channels import outbound

EVENTS = Path(__file__).parent / "events"
BOT, NELLY, CHAT, GUILD = "900000000000000001", "80351110224678912", "290926798999357250", "290926798626357999"
ME = Me(BOT, frozenset({"41771983423143937"}))
DIRECT = Address("discord", "default", CHAT, "direct")
ROOM = Address("discord", "default", CHAT, "channel", guild=GUILD, roles=("41771983423143936",))


def event(name: str) -> Event:
    found = json.loads((EVENTS / f"{name}.json").read_text())
    return Event(found["t"], found["d"], "event:x:7")


def read(name: str, room: Room | None = None, reactions: str = "own") -> Inbound | Ignored:
    return Reader("default", reactions).read(event(name), ME, room)


def file(kind: Any, number: int, name: str, mime: str, size: int) -> Media:
    url = f"https://cdn.discordapp.com/attachments/1/2/{name.rsplit('/', 1)[-1]}?ex=1"
    return Media(kind, f"{CHAT} 1390000000000000042 13900000000000001{number:02d} {url}", name, mime, size)


SEEN: dict[str, dict[str, Any]] = {
    "direct_text": {"id": "1390000000000000042", "event": "message", "address": DIRECT, "text": "¿Qué tal? 🙂",
                    "mentioned": False, "timestamp": 1_751_472_224_951, "own": False},
    "guild_plain": {"address": ROOM, "text": "anyone here?", "mentioned": False},
    "guild_mention": {"mentioned": True, "text": "/status"},
    "guild_mention_inside": {"mentioned": True, "text": "ask @garra or @nelly :party:"},
    "guild_everyone": {"mentioned": False, "text": "@everyone lunch"},
    "guild_role": {"mentioned": True, "text": "look"},
    "guild_other_role": {"mentioned": False, "text": "<@&41771983423143999> look"},
    "reply_to_bot": {"mentioned": True, "reply_to": "1390000000000000040", "reply_text": "I did it."},
    "reply_to_gone": {"mentioned": False, "reply_to": "1390000000000000040", "reply_text": ""},
    "forwarded": {"text": "[forwarded] /stop", "reply_to": ""},
    "files": {"text": "look", "media": (file("image", 1, "cat.png", "image/png", 120_000),
                                         file("file", 2, "../../etc/passwd", "text/plain", 77))},
    "voice": {"text": "", "media": (file("voice", 3, "voice-message.ogg", "audio/ogg", 9000),)},
    "sticker": {"text": "[sticker: Wave]"},
    "poll": {"text": "[poll: Lunch?: yes / no]"},
    "from_a_bot": {"text": "Level up\nNelly is 5"},
    "own": {"own": True},
    "joined": {"event": "membership", "data": f"joined:{NELLY}"},
    "edited": {"id": "1390000000000000042:edit:1751481141203", "event": "edit", "text": "corrected",
               "timestamp": 1_751_481_141_203},
    "deleted": {"event": "other", "data": "deleted", "reply_to": "1390000000000000042", "id": "event:x:7"},
    "reaction": {"event": "reaction", "data": "🔥", "reply_to": "1390000000000000040", "id": "event:x:7"},
    "reaction_taken_back": {"event": "reaction", "data": ""},
    "button": {"id": "button:1390000000000000060", "event": "button", "data": "approve:7", "mentioned": True,
               "reply_to": "1390000000000000050", "reply_text": "Run it?", "address": ROOM},
    "button_direct": {"event": "button", "data": "approve:8", "address": DIRECT},
}  # fmt: skip


@pytest.mark.parametrize("name", SEEN)
def test_what_an_event_says(name: str) -> None:
    found = read(name)
    assert isinstance(found, Inbound)
    assert {key: getattr(found, key) for key in SEEN[name]} == SEEN[name]
    assert "unique_interaction_token" not in repr(found)


IGNORED = {
    "pinned": "service",
    "empty": "ingest-null",
    "preview_made": "service",
    "reaction_to_others": "reaction-not-wanted",
    "slash": "ingest-null",
    "no_such_id": "malformed",
    "odd_id": "malformed",
    "unknown": "ingest-null",
}


@pytest.mark.parametrize("name", IGNORED)
def test_what_is_of_no_use(name: str) -> None:
    found = read(name)
    assert isinstance(found, Ignored)
    assert found.reason == IGNORED[name]
    assert "unique_interaction_token" not in repr(found)


def test_every_event_here_is_looked_at() -> None:
    assert {path.stem for path in EVENTS.glob("*.json")} == SEEN.keys() | IGNORED.keys() | {"webhook"}


def test_who_said_it() -> None:
    said, bot, hook = read("guild_plain"), read("from_a_bot"), read("webhook")
    assert isinstance(said, Inbound)
    assert isinstance(bot, Inbound)
    assert isinstance(hook, Inbound)
    assert (said.sender.id, said.sender.name, said.sender.handle) == (NELLY, "NELLY", "nelly")
    assert (bot.sender.id, bot.sender.is_bot) == ("159985870458322944", True)
    assert (hook.sender.id, hook.sender.is_bot) == ("webhook:223704706495545344", True)


def test_a_thread_is_a_chat_below_its_channel_and_a_category_is_no_chat() -> None:
    thread = read("guild_plain", Room(CHAT, 11, "400", GUILD))
    channel = read("guild_plain", Room(CHAT, 0, "400", GUILD))
    assert thread.address is not None
    assert channel.address is not None
    assert (thread.address.chat, thread.address.parent) == (CHAT, "400")
    assert channel.address.parent == ""
    every = read("reaction_to_others", reactions="all")
    assert isinstance(every, Inbound)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=10,
)
NAMES = ["MESSAGE_CREATE", "MESSAGE_UPDATE", "MESSAGE_DELETE", "MESSAGE_REACTION_ADD", "INTERACTION_CREATE", "X"]


@given(st.sampled_from(NAMES), JSON, st.sampled_from(sorted(SEEN)), st.text(max_size=12))
def test_nothing_that_comes_stops_the_reading(kind: str, odd: Any, name: str, key: str) -> None:
    reader = Reader("default")
    assert isinstance(reader.read(Event(kind, odd, "m"), ME, None), Inbound | Ignored)
    known = event(name)
    for wrong in (key, "author", "channel_id", "mentions", "member", "message_reference", "attachments", "emoji"):
        assert isinstance(reader.read(Event(known.name, {**known.body, wrong: odd}, "m"), ME, None), Inbound | Ignored)


# ---- the position


def test_a_position_is_kept_and_what_is_none_is_the_beginning() -> None:
    here = Position(
        "9", "Garra", "garra", "s1", "wss://x", 7, 5, "50", "40", ("77",), {"1": Last("50", "77")}, {"n": "50"}
    )
    assert position(here.text()) == here
    for odd in (None, "", "{", "[]", '"x"', '{"seq": 1, "what": 2}', '{"chats": {"1": []}}', '{"chats": 3}'):
        assert position(odd) == Position()
    assert here.resumes(5)
    assert not here.resumes(6)
    assert not here.ended().resumes(5)


def test_the_longest_silent_chats_are_forgotten() -> None:
    here = Position()
    for number in range(CHATS + 10):
        here = here.heard(str(number), Last(str(1000 + number)))
    here = here.heard("10", Last("5"))
    assert len(here.chats) == CHATS
    assert here.chats["10"].message == "1010"
    assert here.newest == str(1000 + CHATS + 9)


def test_another_bot_begins_anew() -> None:
    ready = {"user": {"id": "9", "username": "garra"}, "session_id": "s2", "resume_gateway_url": "wss://y"}
    before = Position("9", newest="50", chats={"1": Last("50")})
    assert before.begun(ready, 3).since == "50"
    assert before.begun(ready, 3).chats
    other = before.begun({**ready, "user": {"id": "8", "username": "other"}, "guilds": [{"id": "77"}]}, 3)
    assert (other.bot, other.since, other.chats, other.due) == ("8", "", {}, ("77",))


def test_ids_tell_when_they_were_made() -> None:
    assert sent_ms("175928847299117063") == 1_462_015_105_796
    assert sent_ms(at_ms(1_800_000_000_000)) == 1_800_000_000_000
    assert later("10", "9")
    assert later("1", "")
    assert not later("", "1")


# ---- what is sent


def test_a_message_calls_nobody_and_is_known_when_it_comes_twice() -> None:
    message = outbound(DIRECT, "@everyone <@1>", reply_to="40", silent=True)
    (post,) = posts(message, Shown())
    assert post.body == {
        "content": "@everyone <@1>",
        "allowed_mentions": {"parse": [], "replied_user": False},
        "nonce": nonce("out:1", 0),
        "enforce_nonce": True,
        "flags": 4 | 4096,
        "message_reference": {"message_id": "40", "fail_if_not_exists": False},
    }
    assert len(post.nonce) <= 25
    assert posts(message, Shown(previews=True))[0].body["flags"] == 4096
    assert "message_reference" not in post.alone().body
    assert nonce("out:1", 0) != nonce("out:1", 1)


def test_buttons_stand_in_rows_of_five() -> None:
    many = tuple(Button(f"b{number}", f"d{number}") for number in range(7))
    assert [len(row["components"]) for row in rows((many,))] == [5, 2]
    for wrong in ((many,) * 3, ((Button("x", ""),),), ((Button("x", "d" * 101),),)):
        with pytest.raises(SendFailed) as failed:
            rows(wrong)
        assert failed.value.fault == "refused"
    assert "components" not in posts(outbound(DIRECT, "x", buttons=(many,)), Shown(buttons=False))[0].body
