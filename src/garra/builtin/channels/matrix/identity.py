"""The account's identity across its devices: by it, clients see that the bot's login was signed by its owner.

Three keys are made once. Their seeds are on the disk before the server knows them.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Mapping
from typing import Any

import msgspec

from garra.builtin.channels.matrix.api import Api, Refused
from garra.builtin.channels.matrix.settings import Settings
from garra.builtin.channels.matrix.text import Me
from garra.core.errors import ToolFailed
from garra.core.value import frozen
from garra.sdk.ports import Files

KEPT = "identity.json"
_USES = ("master", "self_signing", "user_signing")


@frozen
class Identity:
    """The seeds of the three keys, in base64, and the devices that were signed by them."""

    user: str
    seeds: Mapping[str, str]
    signed: tuple[str, ...] = ()


class Signer:
    """Signs this login for its account."""

    def __init__(self, api: Api, own: Settings, me: Me, state: Files) -> None:
        self._api, self._own, self._me, self._state = api, own, me, state

    async def sign(self) -> str:
        """Have this device signed; gives a line for the owner where that cannot be. Raises Refused."""
        kept = await self._read()
        if kept is not None and self._me.device in kept.signed:
            return ""
        me = self._me
        found = await self._api.call("POST", "/keys/query", {"device_keys": {me.id: []}})
        master = (found.get("master_keys") or {}).get(me.id)
        if master is None:
            kept = kept or Identity(me.id, await asyncio.to_thread(seeds))
            await self._write(kept)
            await self._publish(await asyncio.to_thread(public, kept))
        elif kept is None or (await asyncio.to_thread(key, kept.seeds["master"])) not in str(master.get("keys")):
            return "the account's identity was made by another client; verify this login there, so that others trust it"
        device = found["device_keys"][me.id][me.device]
        signed = await asyncio.to_thread(sealed, kept, "self_signing", device)
        answer = await self._api.call("POST", "/keys/signatures/upload", {me.id: {me.device: signed}})
        if answer.get("failures"):
            return "the homeserver did not take the signature of this login"
        await self._write(Identity(me.id, kept.seeds, (*kept.signed, me.device)))
        return ""

    async def _publish(self, keys: Mapping[str, Any]) -> None:
        """Give the keys to the server, which may want the password for it."""
        try:
            await self._api.call("POST", "/keys/device_signing/upload", keys)
        except Refused as refused:
            if not refused.session or not self._own.password:
                raise
            proof = {
                "type": "m.login.password",
                "identifier": {"type": "m.id.user", "user": self._me.id},
                "password": self._own.password.reveal(),
                "session": refused.session,
            }
            await self._api.call("POST", "/keys/device_signing/upload", {**keys, "auth": proof})

    async def _read(self) -> Identity | None:
        try:
            data = await asyncio.to_thread(self._state.read, KEPT, 1 << 16)
            found = msgspec.json.decode(data, type=Identity)
        except (ToolFailed, msgspec.DecodeError):
            return None
        return found if found.user == self._me.id else None

    async def _write(self, identity: Identity) -> None:
        await asyncio.to_thread(self._state.write, KEPT, msgspec.json.encode(identity))


def seeds() -> Mapping[str, str]:
    """Three new keys."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415 - only here

    return {use: _text(Ed25519PrivateKey.generate().private_bytes_raw()) for use in _USES}


def key(seed: str) -> str:
    """The public key of a seed."""
    return _text(_private(seed).public_key().public_bytes_raw())


def public(identity: Identity) -> Mapping[str, Any]:
    """The three keys as the server takes them; the master key signs the others."""
    made: dict[str, Any] = {}
    for use in _USES:
        name = key(identity.seeds[use])
        made[use] = {"user_id": identity.user, "usage": [use], "keys": {f"ed25519:{name}": name}}
    signed = {use: sealed(identity, "master", made[use]) for use in _USES[1:]}
    return {f"{use}_key": value for use, value in (made | signed).items()}


def sealed(identity: Identity, use: str, value: Mapping[str, Any]) -> Mapping[str, Any]:
    """`value` with a signature by one of the keys, and no other."""
    bare = {name: part for name, part in value.items() if name not in {"signatures", "unsigned"}}
    text = json.dumps(bare, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    signature = _text(_private(identity.seeds[use]).sign(text.encode()))
    return {**bare, "signatures": {identity.user: {f"ed25519:{key(identity.seeds[use])}": signature}}}


def _private(seed: str) -> Any:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415 - only here

    return Ed25519PrivateKey.from_private_bytes(base64.b64decode(seed + "=="))


def _text(data: bytes) -> str:
    """Base64 without its padding, as Matrix writes it."""
    return base64.b64encode(data).decode().rstrip("=")
