"""The keys: two logins that share them by hand, with faults between."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from garra.builtin.channels.matrix.text import Me

pytest.importorskip("nio")

from garra.builtin.channels.matrix.vault import NO_KEY, UNKNOWN, Vault, lock, unlock

BOT, ANN, EVE = Me("@garra:x", "BOT"), Me("@ann:x", "ANN"), Me("@eve:x", "EVE")
ROOM = "!room:x"


class Login:
    """A vault with what the server would know of it."""

    def __init__(self, folder: Path, me: Me) -> None:
        self.me, self.folder = me, folder / me.device
        self.folder.mkdir()
        self.vault = Vault(str(self.folder), me)
        content = self.vault.upload()
        assert content is not None
        self.device: Any = content["device_keys"]
        self.once: dict[str, Any] = dict(content["one_time_keys"])
        self.vault.uploaded({"one_time_key_counts": {"signed_curve25519": len(self.once)}})

    def again(self) -> None:
        """The program died and was started anew."""
        self.vault = Vault(str(self.folder), self.me)

    def know(self, *others: Login) -> None:
        users = {other.me.id for other in others}
        devices: dict[str, dict[str, Any]] = {user: {} for user in users}
        for other in others:
            devices[other.me.id][other.me.device] = other.device
        self.vault.queried(users, {"device_keys": devices})

    def keys_for(self, other: Login) -> Mapping[str, Any]:
        """The to-device event that brings `other` this login's key of the room."""
        if self.vault.missing([other.me.id]):
            name, key = other.once.popitem()
            self.vault.claimed({"one_time_keys": {other.me.id: {other.me.device: {name: key}}}})
        devices, content = self.vault.share(ROOM, [other.me.id])
        self.vault.shared(ROOM, devices)
        mine = content["messages"][other.me.id][other.me.device]
        return {"type": "m.room.encrypted", "sender": self.me.id, "content": mine}

    def says(self, text: str, event_id: str = "$1", more: Mapping[str, Any] | None = None) -> dict[str, Any]:
        content = self.vault.encrypted(ROOM, "m.room.message", {"msgtype": "m.text", "body": text, **(more or {})})
        return {"type": "m.room.encrypted", "sender": self.me.id, "event_id": event_id, "content": dict(content)}


@pytest.fixture
def both(tmp_path: Path) -> tuple[Login, Login]:
    bot, ann = Login(tmp_path, BOT), Login(tmp_path, ANN)
    bot.know(ann)
    ann.know(bot)
    return bot, ann


def sync(*events: Mapping[str, Any]) -> dict[str, Any]:
    return {"to_device": {"events": list(events)}}


def body(opened: Any) -> Any:
    assert not isinstance(opened, str), opened
    return opened["content"]["body"]


def test_a_message_is_read(both: tuple[Login, Login]) -> None:
    bot, ann = both
    key = ann.keys_for(bot)
    event = ann.says("hello", more={"m.relates_to": {"m.in_reply_to": {"event_id": "$0"}}})
    assert event["content"]["m.relates_to"] == {"m.in_reply_to": {"event_id": "$0"}}
    assert bot.vault.opened(ROOM, event) == NO_KEY
    assert bot.vault.feed(sync(key))
    opened = bot.vault.opened(ROOM, event)
    assert body(opened) == "hello"
    assert isinstance(opened, Mapping)
    assert opened["content"]["m.relates_to"] == {"m.in_reply_to": {"event_id": "$0"}}
    del event["content"]["sender_key"]
    assert body(bot.vault.opened(ROOM, event)) == "hello"


def test_a_sync_that_comes_twice_brings_its_keys_once(both: tuple[Login, Login]) -> None:
    bot, ann = both
    first, second = ann.keys_for(bot), None
    event = ann.says("one")
    assert bot.vault.feed(sync(first))
    bot.again()  # it died before the server's token was stored
    bot.know(ann)
    ann.vault.anew(ROOM)
    second = ann.keys_for(bot)
    later = ann.says("two", "$2")
    assert bot.vault.feed(sync(first, second))
    assert body(bot.vault.opened(ROOM, event)) == "one"
    assert body(bot.vault.opened(ROOM, later)) == "two"
    assert bot.vault.wedged() == {}


def test_a_death_within_a_sync_leaves_nothing_half_done(both: tuple[Login, Login]) -> None:
    bot, ann = both
    key, event = ann.keys_for(bot), ann.says("hello")
    with pytest.raises(KeyboardInterrupt), bot.vault:
        bot.vault._take(key)  # what a death in the middle of `feed` leaves
        raise KeyboardInterrupt
    bot.again()
    bot.know(ann)
    assert bot.vault.opened(ROOM, event) == NO_KEY
    assert bot.vault.feed(sync(key))
    assert body(bot.vault.opened(ROOM, event)) == "hello"


def test_keys_the_server_has_are_on_the_disk_before(tmp_path: Path) -> None:
    bot, ann = Login(tmp_path, BOT), Login(tmp_path, ANN)
    bot.vault.feed({"device_one_time_keys_count": {"signed_curve25519": 0}})
    content = bot.vault.upload()
    assert content is not None
    bot.once = dict(content["one_time_keys"])
    bot.again()  # it died before it heard that the server has them
    bot.know(ann)
    ann.know(bot)
    key, event = ann.keys_for(bot), ann.says("hello")
    assert bot.vault.feed(sync(key))
    assert body(bot.vault.opened(ROOM, event)) == "hello"


def test_a_message_passed_off_as_another_persons_is_not_believed(tmp_path: Path) -> None:
    bot, ann, eve = (Login(tmp_path, me) for me in (BOT, ANN, EVE))
    bot.know(ann, eve)
    eve.know(bot)
    assert bot.vault.feed(sync(eve.keys_for(bot)))
    event = eve.says("I am Ann")
    assert body(bot.vault.opened(ROOM, event)) == "I am Ann"
    assert bot.vault.opened(ROOM, {**event, "sender": ANN.id}) == UNKNOWN


def test_a_message_is_good_for_its_room_and_once(both: tuple[Login, Login]) -> None:
    bot, ann = both
    assert bot.vault.feed(sync(ann.keys_for(bot)))
    event = ann.says("pay Eve", "$1")
    assert body(bot.vault.opened(ROOM, event)) == "pay Eve"
    assert body(bot.vault.opened(ROOM, event)) == "pay Eve"
    assert bot.vault.opened(ROOM, {**event, "event_id": "$2"}) == "it repeats another message"
    assert bot.vault.opened("!other:x", event) == NO_KEY


def test_who_gets_the_key_of_a_room(both: tuple[Login, Login]) -> None:
    bot, ann = both
    assert not ann.vault.ready(ROOM, [BOT.id])
    ann.keys_for(bot)
    ann.says("hello")
    assert ann.vault.ready(ROOM, [BOT.id, ANN.id])
    assert not ann.vault.ready(ROOM, [ANN.id]), "somebody left"
    ann.vault.anew(ROOM)
    assert not ann.vault.ready(ROOM, [BOT.id])


def test_a_device_of_another_program_is_left_alone(both: tuple[Login, Login]) -> None:
    bot, ann = both
    assert bot.vault.agrees(bot.device)
    assert not bot.vault.agrees(ann.device)
    assert bot.vault.agrees(None)
    content = bot.vault.upload()
    assert content is not None
    assert content["device_keys"]["keys"] == bot.device["keys"]


@pytest.mark.parametrize(
    "event",
    [
        {"type": "m.room.encrypted", "sender": "@ann:x", "content": {}},
        {"type": "m.room.encrypted", "content": {"algorithm": "m.olm.v1.curve25519-aes-sha2", "ciphertext": 7}},
        {"type": "m.room_key.withheld", "content": None},
        {"type": None},
        {},
    ],
)
def test_a_misshapen_key_stops_nothing(both: tuple[Login, Login], event: dict[str, Any]) -> None:
    bot, ann = both
    key = ann.keys_for(bot)
    spoilt = {
        **key,
        "content": {
            **key["content"],
            "ciphertext": {bot.device["keys"]["curve25519:BOT"]: {"type": 0, "body": "AAAA"}},
        },
    }
    assert bot.vault.feed(sync(event, spoilt, key))
    assert body(bot.vault.opened(ROOM, ann.says("hello"))) == "hello"


def test_a_person_with_misshapen_devices_harms_nobody_else(tmp_path: Path) -> None:
    bot, ann = Login(tmp_path, BOT), Login(tmp_path, ANN)
    ann.know(bot)
    spoilt = {"EVE": {"user_id": EVE.id, "device_id": "EVE", "keys": {"ed25519:EVE": "!", "curve25519:EVE": "!"}}}
    bot.vault.queried([EVE.id, ANN.id], {"device_keys": {EVE.id: spoilt, ANN.id: {"ANN": ann.device}}})
    assert bot.vault.asking([EVE.id, ANN.id]) == []
    assert bot.vault.feed(sync(ann.keys_for(bot)))
    assert body(bot.vault.opened(ROOM, ann.says("hello"))) == "hello"


def test_why_a_key_was_not_given_is_told(both: tuple[Login, Login]) -> None:
    bot, ann = both
    ann.keys_for(bot)
    event = ann.says("hello")
    told = {"session_id": event["content"]["session_id"], "code": "m.unverified", "room_id": ROOM}
    bot.vault.feed(sync({"type": "m.room_key.withheld", "sender": ANN.id, "content": told}))
    assert "m.unverified" in str(bot.vault.opened(ROOM, event))


def test_rooms_once_seen_encrypted_stay_so(both: tuple[Login, Login]) -> None:
    bot, _ = both
    bot.vault.lock(ROOM)
    bot.vault.lock(ROOM)
    bot.again()
    assert bot.vault.locked() == {ROOM}


def test_files() -> None:
    sealed, keys = lock(b"the figures")
    assert sealed != b"the figures"
    assert unlock(sealed, keys) == b"the figures"
    with pytest.raises(ValueError, match="SHA"):
        unlock(sealed + b"x", keys)
