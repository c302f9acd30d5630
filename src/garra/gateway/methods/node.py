"""node.*: which nodes are paired and connected. What a node offers stays unused until its owner approves it."""

from __future__ import annotations

from typing import Any

from garra.core.devices import Device
from garra.core.errors import NotFound
from garra.gateway import pairing
from garra.gateway.method import PAIRING, READ, Caller, Method
from garra.gateway.params import Name, Nothing, Params
from garra.gateway.server import Gateway


class Named(Params, frozen=True):
    """One node."""

    node_id: Name


def row(gateway: Gateway, device: Device) -> dict[str, Any]:
    """A node as it stands: no command of it can be called."""
    here = next(iter(gateway.hub.of_device(device.id, "node")), None)
    found = {
        "nodeId": device.id,
        "displayName": device.name,
        "platform": device.platform,
        "deviceFamily": device.family,
        "clientId": device.client_id,
        "clientMode": device.client_mode,
        "version": here.who.client.version if here else "",
        "caps": [],
        "commands": [],
        "sessionHost": False,
        "approvalState": "pending-approval",
        "pendingDeclaredCaps": sorted(here.who.caps) if here else [],
        "pendingDeclaredCommands": sorted(here.who.commands) if here else [],
        "lastSeenAtMs": device.seen_at,
        "approvedAtMs": device.approved_at,
        "paired": True,
        "connected": here is not None,
    }
    return {key: value for key, value in found.items() if value not in ("", None)}


def rows(gateway: Gateway) -> tuple[Method, ...]:
    """The rows, bound to one gateway."""

    def nodes() -> list[dict[str, Any]]:
        return [row(gateway, device) for device in gateway.devices.every() if "node" in device.grants]

    def listed(host: Any, caller: Caller, params: Nothing) -> dict[str, Any]:
        return {"ts": gateway.clock.now_ms(), "nodes": nodes()}

    def described(host: Any, caller: Caller, params: Named) -> dict[str, Any]:
        for found in nodes():
            if found["nodeId"] == params.node_id:
                return {"ts": gateway.clock.now_ms(), **found}
        raise NotFound(f"no node {params.node_id} is paired")

    def waiting(host: Any, caller: Caller, params: Nothing) -> dict[str, Any]:
        asked = [pairing.waiting(request) for request in gateway.devices.pending() if request.role == "node"]
        return {"pending": [{**found, "nodeId": found["deviceId"]} for found in asked], "paired": nodes()}

    return (
        Method("node.list", READ, Nothing, listed),
        Method("node.describe", READ, Named, described),
        Method("node.pair.list", PAIRING, Nothing, waiting),
    )
