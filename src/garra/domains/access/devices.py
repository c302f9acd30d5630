"""The register of paired devices and of those that wait for the owner. In memory to read, in `state.db` to last.

Of a token only its hash is stored. The text is handed out once, when it is made; while this process lives it is also
remembered, so that a device that knocks again with the shared secret gets the token it already has.
"""

from __future__ import annotations

import asyncio
import secrets
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import msgspec

from garra.core.devices import Device, Grant, Pending, digest, widened
from garra.core.errors import NotFound, UserError
from garra.core.scopes import covers
from garra.io.store.shelf import Shelf
from garra.sdk.ports import Clock

WAITING: Final = 64
"""So many requests wait at once; the oldest gives way."""

PENDING_MS: Final = 3_600_000
"""How long a request waits for its owner."""


class Devices:
    """Paired devices by id. `load()` once before use; every change is stored before it takes effect."""

    def __init__(self, paired: Shelf, waiting: Shelf, clock: Clock) -> None:
        self._paired = paired
        self._waiting = waiting
        self._clock = clock
        self._devices: dict[str, Device] = {}
        self._pending: dict[str, Pending] = {}
        self._tokens: dict[tuple[str, str], str] = {}
        self._turn = asyncio.Lock()

    async def load(self) -> None:
        """Read both tables."""
        self._devices = {key: msgspec.convert(row, Device) for key, row in (await self._paired.items()).items()}
        self._pending = {key: msgspec.convert(row, Pending) for key, row in (await self._waiting.items()).items()}

    def get(self, device_id: str) -> Device | None:
        return self._devices.get(device_id)

    def every(self) -> Sequence[Device]:
        """Newest first."""
        return sorted(self._devices.values(), key=lambda device: device.created_at, reverse=True)

    def pending(self) -> Sequence[Pending]:
        """Requests that still wait, newest first."""
        limit = self._clock.now_ms() - PENDING_MS
        alive = [request for request in self._pending.values() if request.at > limit]
        return sorted(alive, key=lambda request: request.at, reverse=True)

    def waiting(self, request_id: str) -> Pending:
        """Raises NotFound when no such request waits."""
        for request in self.pending():
            if request.request_id == request_id:
                return request
        raise NotFound(f"no pairing request {request_id} is waiting (it may have expired or been answered)")

    def paired(self, device_id: str) -> Device:
        """Raises NotFound when there is no such device."""
        device = self._devices.get(device_id)
        if device is None:
            raise NotFound(f"no paired device {device_id}")
        return device

    def granted(self, device_id: str, role: str) -> Grant:
        """Raises NotFound when there is no such device or it holds no such role."""
        grant = self.paired(device_id).grants.get(role)
        if grant is None:
            raise NotFound(f"device {device_id} holds no role {role}")
        return grant

    async def pair(self, asked: Pending, via: str) -> tuple[Device, str]:
        """Grant what is asked for and make a token: for a device on this machine that holds the shared secret."""
        async with self._turn:
            token = secrets.token_urlsafe(32)
            device = self._with(asked, via, digest(token))
            await self._keep(device)
            self._tokens[device.id, asked.role] = token
            return device, token

    async def token(self, device_id: str, role: str) -> str:
        """The token of a device that showed the shared secret; another one when its text is not known any more."""
        async with self._turn:
            known = self._tokens.get((device_id, role))
            grant = self.granted(device_id, role)
            if known and digest(known) in grant.hashes:
                return known
            token = secrets.token_urlsafe(32)
            await self._regrant(device_id, role, widened(grant, (), digest(token), self._clock.now_ms()))
            self._tokens[device_id, role] = token
            return token

    async def ask(self, asked: Pending) -> tuple[Pending, bool]:
        """Let it wait for the owner; True when it did not wait before. One request a device and role."""
        async with self._turn:
            for before in self.pending():
                if (before.device_id, before.role) == (asked.device_id, asked.role):
                    if covers(before.scopes, asked.scopes) and before.platform == asked.platform:
                        return before, False
                    await self._drop(before)
            request = replace(
                asked,
                request_id=str(uuid.uuid4()),
                repair=asked.device_id in self._devices,
                at=self._clock.now_ms(),
            )
            for old in self.pending()[WAITING - 1 :]:
                await self._drop(old)
            await self._waiting.set(request.request_id, msgspec.to_builtins(request), durable=True)
            self._pending[request.request_id] = request
            return request, True

    async def approve(self, request_id: str) -> Device:
        """The owner says yes. The device gets its token when it knocks again. Raises NotFound."""
        async with self._turn:
            request = self.waiting(request_id)
            device = self._with(request, "owner", "")
            await self._keep(device)
            await self._drop(request)
            return device

    async def reject(self, request_id: str) -> Pending:
        """The owner says no. Raises NotFound."""
        async with self._turn:
            request = self.waiting(request_id)
            await self._drop(request)
            return request

    async def remove(self, device_id: str) -> Device:
        """Forget it and all its tokens. Raises NotFound."""
        async with self._turn:
            device = self.paired(device_id)
            await self._paired.remove(device_id, durable=True)
            del self._devices[device_id]
            self._forget(device_id)
            return device

    async def rename(self, device_id: str, name: str) -> Device:
        """Raises NotFound, and UserError for an empty or overlong name."""
        if not 0 < len(name.strip()) <= 128:
            raise UserError("a device's name has 1 to 128 characters")
        async with self._turn:
            device = replace(self.paired(device_id), name=name.strip())
            await self._keep(device)
            return device

    async def rotate(self, device_id: str, role: str, scopes: Sequence[str] | None) -> tuple[Grant, str]:
        """End its tokens and make a new one, with the same rights or fewer. Raises NotFound, UserError."""
        async with self._turn:
            grant = self.granted(device_id, role)
            wanted = grant.scopes if scopes is None else tuple(scopes)
            if not covers(grant.scopes, wanted):
                raise UserError("a rotated token cannot hold more scopes than the device was approved for")
            token = secrets.token_urlsafe(32)
            now = self._clock.now_ms()
            fresh = Grant(wanted, (digest(token),), grant.created_at, now)
            await self._regrant(device_id, role, fresh)
            self._tokens[device_id, role] = token
            return fresh, token

    async def revoke(self, device_id: str, role: str) -> Grant:
        """End its tokens; it must be let in anew. Raises NotFound."""
        async with self._turn:
            grant = replace(self.granted(device_id, role), hashes=(), revoked_at=self._clock.now_ms())
            await self._regrant(device_id, role, grant)
            self._forget(device_id)
            return grant

    def seen(self, device_id: str) -> None:
        """It just connected. Kept in memory until its row is written for another reason."""
        device = self._devices.get(device_id)
        if device:
            self._devices[device_id] = replace(device, seen_at=self._clock.now_ms())

    def _with(self, asked: Pending, via: str, token_hash: str) -> Device:
        now = self._clock.now_ms()
        before = self._devices.get(asked.device_id)
        grants: Mapping[str, Grant] = before.grants if before else {}
        grant = widened(grants.get(asked.role), asked.scopes, token_hash, now)
        if not token_hash:
            grant = replace(grant, hashes=tuple(kept for kept in grant.hashes if kept))
        return Device(
            asked.device_id,
            asked.public_key,
            asked.client_id,
            asked.client_mode,
            asked.platform,
            asked.family,
            (before.name if before else "") or asked.name,
            {**grants, asked.role: grant},
            via,
            before.created_at if before else now,
            now,
            before.seen_at if before else None,
        )

    async def _regrant(self, device_id: str, role: str, grant: Grant) -> None:
        device = self.paired(device_id)
        await self._keep(replace(device, grants={**device.grants, role: grant}))

    async def _keep(self, device: Device) -> None:
        row: Any = msgspec.to_builtins(device)
        await self._paired.set(device.id, row, durable=True)
        self._devices[device.id] = device

    async def _drop(self, request: Pending) -> None:
        await self._waiting.remove(request.request_id)
        self._pending.pop(request.request_id, None)

    def _forget(self, device_id: str) -> None:
        for key in [key for key in self._tokens if key[0] == device_id]:
            del self._tokens[key]
