"""Who we are on the homeserver: by a token given, by one kept from a login before, or by a new login."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from garra.builtin.channels.matrix import faults
from garra.builtin.channels.matrix.api import Api, Refused, at
from garra.builtin.channels.matrix.settings import Settings
from garra.builtin.channels.matrix.text import Me
from garra.core.errors import ToolFailed
from garra.core.secret import Secret
from garra.sdk.channel import LinkRefused
from garra.sdk.ports import Files

KEPT = "login.json"


class Login:
    """The login of one account. A token made by a password is kept below `state`, readable by us alone."""

    def __init__(self, api: Api, own: Settings, state: Files | None) -> None:
        self._api, self._own, self._state = api, own, state

    async def enter(self) -> Me:
        """Have a token that the server takes, and tell whose it is. Raises LinkLost or LinkRefused."""
        own = self._own
        if not own.homeserver.startswith(("http://", "https://")):
            raise LinkRefused("homeserver is no address: write it like https://matrix.example.org")
        try:
            if own.token:
                self._api.token = own.token
                return await self._me()
            return await self._kept()
        except Refused as refused:
            raise faults.link_fault(refused) from None

    async def _kept(self) -> Me:
        own, device = self._own, self._own.device
        if not own.user or not own.password:
            missing = own.token.missing or own.password.missing
            raise LinkRefused(missing or "no login: set accessToken, or userId and password")
        found = await self._read()
        if found and (found.get("homeserver"), found.get("user")) == (own.homeserver, own.user):
            self._api.token = Secret(str(found.get("token") or ""))
            try:
                return await self._me()
            except Refused as refused:
                if refused.errcode not in faults.TOKEN:
                    raise
                # a device that was not removed goes on with its keys; one that was needs new ones
                device = str(found.get("device") or "") if refused.soft else own.device
        return await self._anew(device)

    async def _anew(self, device: str) -> Me:
        own = self._own
        self._api.token = Secret("")
        asked: dict[str, Any] = {
            "type": "m.login.password",
            "identifier": {"type": "m.id.user", "user": own.user},
            "password": own.password.reveal(),
            "initial_device_display_name": own.device_name,
        }
        found = await self._api.call("POST", "/login", asked | ({"device_id": device} if device else {}))
        token = str(found.get("access_token") or "")
        if not token:
            raise LinkRefused("the homeserver let us in without a token")
        await self._write(
            {"homeserver": own.homeserver, "user": own.user, "device": found["device_id"], "token": token}
        )
        self._api.token = Secret(token)
        return await self._me()

    async def _me(self) -> Me:
        found = await self._api.call("GET", "/account/whoami")
        user = str(found.get("user_id") or "")
        if not user or (self._own.user and self._own.user != user):
            raise LinkRefused(f"the login is {user or 'nobody'}'s, and userId is {self._own.user}")
        try:
            name = str((await self._api.call("GET", at("profile", user, "displayname"))).get("displayname") or "")
        except Refused as refused:
            if refused.status != 404:
                raise
            name = ""
        return Me(user, str(found.get("device_id") or ""), name)

    async def _read(self) -> dict[str, Any] | None:
        if self._state is None:
            return None
        try:
            found = msgspec.json.decode(await asyncio.to_thread(self._state.read, KEPT, 1 << 16))
        except (ToolFailed, msgspec.DecodeError):
            return None
        return found if isinstance(found, dict) else None

    async def _write(self, login: dict[str, Any]) -> None:
        if self._state is not None:
            await asyncio.to_thread(self._state.write, KEPT, msgspec.json.encode(login))
