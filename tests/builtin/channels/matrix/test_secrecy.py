"""Encryption beside a server that says what it likes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("nio")

from garra.builtin.channels.matrix.api import Api, Refused
from garra.builtin.channels.matrix.secrecy import Secrecy, opening
from garra.builtin.channels.matrix.text import Me
from garra.io.files.root import Root
from garra.io.http import GuardedHttp

ME = Me("@garra:x", "DEVICE")
ROOM = "!room:x"
EVENT = {
    "type": "m.room.encrypted",
    "event_id": "$1",
    "sender": "@ann:x",
    "content": {"algorithm": "m.megolm.v1.aes-sha2", "session_id": "s", "sender_key": "k", "ciphertext": "c"},
}


class Server(Api):
    """The keys' part of a homeserver."""

    def __init__(self) -> None:
        super().__init__(GuardedHttp(), "http://127.0.0.1:1")
        self.devices: dict[str, Any] = {}
        self.uploads = 0
        self.full = False

    async def call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, Any] | None = None,
        *,
        wait: float = 30.0,
    ) -> dict[str, Any]:
        asked = dict(body or {})
        if path == "/keys/query":
            if "nobody" in asked["device_keys"]:
                raise Refused(path, "nobody is no user id", 400, errcode="M_INVALID_PARAM")
            return {"device_keys": {user: self.devices.get(user, {}) for user in asked["device_keys"]}}
        if path == "/keys/upload":
            self.uploads += 1
            if self.full:
                raise Refused(path, "One time key already exists", 400)
            self.devices.setdefault(ME.id, {ME.device: asked["device_keys"]} if "device_keys" in asked else {})
            return {"one_time_key_counts": {"signed_curve25519": 50}}
        return {}


async def opened(server: Server, folder: Path) -> Secrecy:
    found = await opening(server, ME, Root(folder))
    assert isinstance(found, Secrecy)
    return found


async def test_it_goes_on_as_the_same_device(tmp_path: Path) -> None:
    server = Server()
    await opened(server, tmp_path)
    await opened(server, tmp_path)
    assert server.uploads == 1
    assert (tmp_path / "DEVICE.db").exists()


async def test_a_device_of_another_program_is_told_and_left_alone(tmp_path: Path) -> None:
    server = Server()
    server.devices = {ME.id: {ME.device: {"keys": {"curve25519:DEVICE": "theirs"}}}}
    assert "belongs to another program" in str(await opening(server, ME, Root(tmp_path)))
    assert server.uploads == 0
    assert "no device" in str(await opening(server, Me("@garra:x"), Root(tmp_path)))


async def test_what_cannot_be_read_is_kept_over_a_restart(tmp_path: Path) -> None:
    server = Server()
    first = await opened(server, tmp_path)
    why = await first.opened(ROOM, EVENT)
    assert isinstance(why, str)
    assert await first.keep(ROOM, EVENT, why)
    assert not await first.keep(ROOM, EVENT, why)
    again = await opened(server, tmp_path)
    assert not await again.keep(ROOM, EVENT, why)
    assert await again.late() == []
    await again.forget(EVENT)
    assert await (await opened(server, tmp_path)).keep(ROOM, EVENT, why)


async def test_a_name_that_is_none_stops_nobody(tmp_path: Path) -> None:
    secrecy = await opened(Server(), tmp_path)
    assert isinstance(await secrecy.opened(ROOM, {**EVENT, "sender": "nobody"}), str)
    sealed = await secrecy.encrypted(ROOM, ["nobody", "@ann:x", ME.id], "m.room.message", {"body": "hello"})
    assert "hello" not in str(sealed)
    await secrecy.member(ROOM)
    other = await secrecy.encrypted(ROOM, [ME.id], "m.room.message", {"body": "hello"})
    assert other["session_id"] != sealed["session_id"]
    assert await secrecy.locked() == {ROOM}


async def test_keys_whose_names_were_given_before_stop_nothing(tmp_path: Path) -> None:
    server = Server()
    secrecy = await opened(server, tmp_path)
    server.full = True
    await secrecy.feed({"device_one_time_keys_count": {"signed_curve25519": 10}})
    await secrecy.feed({})
    assert server.uploads == 2
