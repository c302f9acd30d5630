"""device.*: paired devices, requests that wait, and tokens. Nobody hands out more rights than they hold."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from msgspec import Meta

from garra.core.devices import Device
from garra.core.errors import Forbidden
from garra.core.scopes import ADMIN, reaches
from garra.gateway import pairing
from garra.gateway.method import PAIRING, Caller, Method, missing
from garra.gateway.params import Name, Nothing, Params
from garra.gateway.server import Gateway


class Answered(Params, frozen=True):
    """A request that waits."""

    request_id: Name


class Named(Params, frozen=True):
    """A paired device."""

    device_id: Name


class Renamed(Params, frozen=True):
    """A device and its new name."""

    device_id: Name
    label: Annotated[str, Meta(min_length=1, max_length=64)]


class Rotated(Params, frozen=True):
    """A device's token and, when they shall be fewer, its scopes."""

    device_id: Name
    role: Name
    scopes: tuple[Name, ...] | None = None


class Revoked(Params, frozen=True):
    """A device's token."""

    device_id: Name
    role: Name


def within(caller: Caller, scopes: tuple[str, ...]) -> None:
    """Raises Forbidden when `scopes` go beyond what the caller holds: nobody hands out more than they have."""
    for scope in scopes:
        if not reaches(caller.scopes, scope):
            raise missing(scope)


def owns(caller: Caller, device_id: str) -> None:
    """Raises Forbidden for a device that would change another one without being an admin."""
    if caller.device_id not in (None, device_id) and not caller.may(ADMIN):
        raise Forbidden("a device may change itself only; another one takes operator.admin")


class DeviceMethods:
    """The rows, bound to one gateway."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._devices = gateway.devices

    def rows(self) -> tuple[Method, ...]:
        return (
            Method("device.pair.list", PAIRING, Nothing, self.list),
            Method("device.pair.approve", PAIRING, Answered, self.approve),
            Method("device.pair.reject", PAIRING, Answered, self.reject),
            Method("device.pair.remove", PAIRING, Named, self.remove),
            Method("device.pair.rename", PAIRING, Renamed, self.rename),
            Method("device.token.rotate", PAIRING, Rotated, self.rotate),
            Method("device.token.revoke", PAIRING, Revoked, self.revoke),
        )

    def _shown(self, device: Device) -> dict[str, Any]:
        return pairing.paired(device, connected=bool(self._gateway.hub.of_device(device.id)))

    def list(self, host: Any, caller: Caller, params: Nothing) -> dict[str, Any]:
        return {
            "pending": [pairing.waiting(request) for request in self._devices.pending()],
            "paired": [self._shown(device) for device in self._devices.every()],
        }

    async def approve(self, host: Any, caller: Caller, params: Answered) -> dict[str, Any]:
        request = self._devices.waiting(params.request_id)
        within(caller, request.scopes)
        if request.role != "operator":
            caller.require(PAIRING)
        device = await self._devices.approve(request.request_id)
        self._resolved(request.request_id, device.id, "approved")
        return {"requestId": request.request_id, "device": self._shown(device)}

    async def reject(self, host: Any, caller: Caller, params: Answered) -> dict[str, Any]:
        request = await self._devices.reject(params.request_id)
        self._resolved(request.request_id, request.device_id, "rejected")
        return {"requestId": request.request_id, "deviceId": request.device_id}

    async def remove(self, host: Any, caller: Caller, params: Named) -> dict[str, Any]:
        owns(caller, params.device_id)
        device = await self._devices.remove(params.device_id)
        self._expel(device.id)
        return {"deviceId": device.id}

    async def rename(self, host: Any, caller: Caller, params: Renamed) -> dict[str, Any]:
        owns(caller, params.device_id)
        device = await self._devices.rename(params.device_id, params.label)
        return {"deviceId": device.id, "label": device.name}

    async def rotate(self, host: Any, caller: Caller, params: Rotated) -> dict[str, Any]:
        owns(caller, params.device_id)
        grant = self._devices.granted(params.device_id, params.role)
        within(caller, grant.scopes if params.scopes is None else params.scopes)
        fresh, token = await self._devices.rotate(params.device_id, params.role, params.scopes)
        self._expel(params.device_id, params.role)
        answer = {
            "deviceId": params.device_id,
            "role": params.role,
            "scopes": fresh.scopes,
            "rotatedAtMs": fresh.rotated_at,
        }
        if caller.device_id == params.device_id:
            return {**answer, "token": token, "tokenDelivery": "in-band"}
        # Another's token is not shown: that device gets it when it knocks with the shared secret.
        return {**answer, "tokenDelivery": "withheld-cross-device"}

    async def revoke(self, host: Any, caller: Caller, params: Revoked) -> dict[str, Any]:
        owns(caller, params.device_id)
        grant = await self._devices.revoke(params.device_id, params.role)
        self._expel(params.device_id, params.role)
        return {"deviceId": params.device_id, "role": params.role, "revokedAtMs": grant.revoked_at}

    def _expel(self, device_id: str, role: str | None = None) -> None:
        """At once, but after the answer: the caller may be the device itself."""
        asyncio.get_running_loop().call_soon(self._gateway.expel, device_id, role)

    def _resolved(self, request_id: str, device_id: str, decision: str) -> None:
        payload = {"requestId": request_id, "deviceId": device_id, "decision": decision}
        self._gateway.hub.publish("device.pair.resolved", {**payload, "ts": self._gateway.clock.now_ms()})


def rows(gateway: Gateway) -> tuple[Method, ...]:
    return DeviceMethods(gateway).rows()
