"""The account's identity: made once, kept, proved by the password where the server asks for it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from garra.builtin.channels.matrix.api import Api, Refused
from garra.builtin.channels.matrix.identity import KEPT, Signer
from garra.builtin.channels.matrix.settings import settings
from garra.builtin.channels.matrix.text import Me
from garra.core.secret import Secret
from garra.io.files.root import Root
from garra.io.http import GuardedHttp
from garra.sdk.channel import Account

ME = Me("@garra:x", "DEVICE")
DEVICE = {"user_id": ME.id, "device_id": ME.device, "keys": {"ed25519:DEVICE": "k"}, "signatures": {ME.id: {"a": "b"}}}


class Server(Api):
    """What a homeserver says of identities."""

    def __init__(self) -> None:
        super().__init__(GuardedHttp(), "http://127.0.0.1:1")
        self.master: Any = None
        self.wants_password = False
        self.said: list[tuple[str, Any]] = []

    async def call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, Any] | None = None,
        *,
        wait: float = 30.0,
    ) -> dict[str, Any]:
        self.said.append((path.rpartition("/keys/")[2], body))
        if path == "/keys/query":
            masters = {} if self.master is None else {ME.id: self.master}
            return {"master_keys": masters, "device_keys": {ME.id: {ME.device: DEVICE}}}
        if path == "/keys/device_signing/upload":
            if self.wants_password and "auth" not in (body or {}):
                raise Refused(path, "401", 401, session="the-session")
            self.master = (body or {})["master_key"]
        return {}


def signer(server: Server, folder: Path, **own: Any) -> Signer:
    return Signer(server, settings(Account("default", {"homeserver": "https://x", **own})), ME, Root(folder))


async def test_it_is_made_once(tmp_path: Path) -> None:
    server = Server()
    for _ in range(2):
        assert await signer(server, tmp_path).sign() == ""
    assert [what for what, _ in server.said] == ["query", "device_signing/upload", "signatures/upload"]
    signed = server.said[2][1][ME.id][ME.device]
    keys = server.said[1][1]
    assert list(signed["signatures"][ME.id]) == list(keys["self_signing_key"]["keys"])
    assert list(keys["self_signing_key"]["signatures"][ME.id]) == list(keys["master_key"]["keys"])


async def test_a_death_on_the_way_goes_on_with_the_same_keys(tmp_path: Path) -> None:
    server = Server()
    server.wants_password = True
    with pytest.raises(Refused):
        await signer(server, tmp_path).sign()
    kept = (tmp_path / KEPT).read_bytes()
    password = Secret("the-word")
    assert await signer(server, tmp_path, password=password).sign() == ""
    proof = server.said[-2][1]["auth"]
    assert (proof["password"], proof["session"]) == ("the-word", "the-session")
    assert (tmp_path / KEPT).read_bytes()[: len(kept) - 20] == kept[: len(kept) - 20]


async def test_what_another_client_made_is_left_alone(tmp_path: Path) -> None:
    server = Server()
    server.master = {"keys": {"ed25519:theirs": "theirs"}}
    assert "verify this login there" in await signer(server, tmp_path).sign()
    assert [what for what, _ in server.said] == ["query"]
