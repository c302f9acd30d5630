"""Recorded updates, read: `updates/*.json` are in Telegram's own shape."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from garra.builtin.channels.telegram.codec import Reader
from garra.builtin.channels.telegram.text import Me
from garra.sdk.channel import Address, Ignored, Inbound, Media

UPDATES = Path(__file__).parent / "updates"
ME = Me(700000, "garra_bot", "Garra", topics=True)
LAB = Address("telegram", "default", "-1001234567890", "group")
FORUM = "-1002222222222"
ANA = Address("telegram", "default", "1001", "direct")


def update(name: str) -> Any:
    return json.loads((UPDATES / f"{name}.json").read_text())


def read(name: str, me: Me = ME) -> Inbound | Ignored:
    return Reader("default", me).read(update(name))


SEEN: dict[str, dict[str, Any]] = {
    "direct_text": {"id": "42", "event": "message", "address": ANA, "text": "¿Qué tal? 🙂", "mentioned": False,
                    "timestamp": 1_790_000_000_000},
    "direct_command": {"text": "/status"},
    "group_plain": {"address": LAB, "text": "anyone here?", "mentioned": False},
    "group_mention": {"mentioned": True, "text": "😀 ok @Garra_Bot please look"},
    "group_mention_first": {"mentioned": True, "text": "/status"},
    "group_other_mention": {"mentioned": False, "text": "@garra_bot2 hi"},
    "group_text_mention": {"mentioned": True, "text": ", look"},
    "group_command_own": {"mentioned": True, "text": "/status now"},
    "group_command_other": {"mentioned": False, "text": "/status@other_bot"},
    "group_reply_to_bot": {"mentioned": True, "reply_to": "40", "reply_text": "I did it."},
    "group_reply_quote": {"mentioned": False, "reply_to": "39", "reply_text": "second."},
    "group_thread_of_replies": {"address": LAB, "reply_to": "39"},
    "forum_topic": {"address": Address("telegram", "default", FORUM, "group", "11"), "mentioned": False,
                    "reply_to": ""},
    "forum_general": {"address": Address("telegram", "default", FORUM, "group", "1")},
    "direct_topic": {"address": Address("telegram", "default", "1001", "direct", "77")},
    "channel_post": {"address": Address("telegram", "default", "-1003333333333", "channel"), "text": "news of today"},
    "edited": {"id": "42:edit:1790000060", "event": "edit", "text": "corrected", "timestamp": 1_790_000_060_000},
    "edited_post": {"id": "5:edit:1790000070", "event": "edit"},
    "button": {"id": "button:4382bfdwdsb323b2d9", "event": "button", "data": "approve:7", "reply_to": "50",
               "reply_text": "Run it?", "address": Address("telegram", "default", FORUM, "group", "11")},
    "button_old_message": {"event": "button", "data": "approve:8", "address": ANA, "timestamp": 0},
    "reaction": {"event": "reaction", "data": "🔥", "reply_to": "40", "address": LAB},
    "reaction_taken_back": {"event": "reaction", "data": ""},
    "hidden_link": {"text": "🙂 see here (https://b.example/x) and https://a.example"},
    "forwarded": {"text": "[forwarded from Bo] /stop"},
    "forwarded_from_channel": {"text": "[forwarded from News] news"},
    "photo": {"text": "look", "media": (Media("image", "large", "", "image/jpeg", 120_000),)},
    "photo_in_group_for_bot": {"text": "what is it?", "mentioned": True},
    "voice": {"text": "", "media": (Media("voice", "v1", "", "audio/ogg", 9000, 3),)},
    "video_note": {"media": (Media("video", "n1", "", "video/mp4", 90_000),)},
    "animation": {"media": (Media("video", "a1", "cat.mp4", "video/mp4", 5000),)},
    "document": {"media": (Media("file", "d1", "../../etc/passwd", "text/plain", 77),)},
    "sticker": {"text": "😎", "media": (Media("sticker", "st1", "", "image/webp", 20_000),)},
    "sticker_animated": {"text": "🎉", "media": ()},
    "location": {"text": "[location: 48.85, 2.29]"},
    "venue": {"text": "[place: Eiffel Tower, Champ de Mars, 48.85, 2.29]"},
    "contact": {"text": "[contact: Leo, +34600000000]"},
    "poll": {"text": "[poll: Lunch?: Yes / No]"},
    "dice": {"text": "🎲 4"},
    "joined": {"event": "membership", "data": "joined:1002"},
    "left": {"event": "membership", "data": "left:1002"},
    "migrated": {"event": "membership", "data": "migrated:-1001234567890"},
    "bot_added": {"event": "membership", "data": "bot:member", "address": LAB},
    "bot_blocked": {"event": "membership", "data": "bot:kicked", "address": ANA},
}  # fmt: skip


@pytest.mark.parametrize("name", SEEN)
def test_an_update_becomes_an_event(name: str) -> None:
    event = read(name)
    assert isinstance(event, Inbound)
    assert {key: getattr(event, key) for key in SEEN[name]} == SEEN[name]
    assert event.raw == update(name)


SENDERS = {
    "direct_text": ("1001", "Ana Ruiz", "ana", False),
    "channel_post": ("chat:-1003333333333", "News", "news", False),
    "anonymous_admin": ("chat:-1001234567890", "Lab", "", False),
    "from_a_bot": ("2002", "Other", "other_bot", True),
    "reaction_anonymous": ("chat:-1001234567890", "Lab", "", False),
}


@pytest.mark.parametrize("name", SENDERS)
def test_who_said_it_is_a_number_that_cannot_be_changed(name: str) -> None:
    event = read(name)
    assert isinstance(event, Inbound)
    sender = event.sender
    assert (sender.id, sender.name, sender.handle, sender.is_bot) == SENDERS[name]


@pytest.mark.parametrize("name", ["unknown_kind", "empty_message", "pinned", "forum_topic_made", "button_inline"])
def test_what_says_nothing_is_ignored_with_a_reason(name: str) -> None:
    event = read(name)
    assert isinstance(event, Ignored)
    assert event.reason
    assert event.id == f"update:{update(name)['update_id']}"


@pytest.mark.parametrize("odd", ["1001", " 10_01 ", "١٠٠١", 1001.0, True, None, [1001], 0, -1001])
def test_a_user_id_that_is_no_number_lets_nobody_in(odd: object) -> None:
    given = update("direct_text")
    given["message"]["from"]["id"] = odd
    event = Reader("default", ME).read(given)
    assert isinstance(event, Ignored)
    assert event.reason == "malformed"


@pytest.mark.parametrize("said", [{"sender_chat": {"id": -100123, "title": "Lab"}}, {"from": None}])
def test_in_a_private_chat_nobody_but_a_user_is_somebody(said: dict[str, object]) -> None:
    given = update("direct_text")
    given["message"].update(said)
    event = Reader("default", ME).read(given)
    assert isinstance(event, Inbound)
    assert event.sender.id == ""


def test_every_recorded_update_is_looked_at() -> None:
    told = {*SEEN, *SENDERS, "unknown_kind", "empty_message", "pinned", "forum_topic_made", "button_inline"}
    assert told == {path.stem for path in UPDATES.glob("*.json")}


def test_topics_of_direct_chats_count_only_where_the_bot_has_them() -> None:
    plain = {**update("direct_topic")}
    plain["message"] = {key: value for key, value in plain["message"].items() if key != "is_topic_message"}
    event = Reader("default", Me(700000)).read(plain)
    assert isinstance(event, Inbound)
    assert event.address.thread == ""


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from(sorted(path.stem for path in UPDATES.glob("*.json"))), st.data())
def test_no_shape_stops_the_reading(name: str, data: st.DataObject) -> None:
    broken = update(name)
    place: Any = broken
    for _ in range(data.draw(st.integers(1, 4))):
        key = data.draw(st.sampled_from(sorted(place)))
        if not isinstance(place[key], dict) or not place[key]:
            place[key] = data.draw(JSON)
            break
        place = place[key]
    else:
        place[data.draw(st.sampled_from(sorted(place)))] = data.draw(JSON)
    event = Reader("default", ME).read(broken)
    assert isinstance(event, Inbound | Ignored)
