"""Who is here: the gateway itself and every device that is connected, as rows for people to look at."""

from __future__ import annotations

import platform
import socket
from collections.abc import Iterable
from typing import Any, Final

from garra.core.value import frozen
from garra.gateway.peers import Peer

ROWS: Final = 100
"""So many connections are shown, the newest ones."""


@frozen
class Self:
    """The gateway's own row."""

    host: str
    version: str
    platform: str
    family: str
    instance_id: str

    def row(self, now_ms: int) -> dict[str, Any]:
        return {
            "host": self.host,
            "version": self.version,
            "platform": self.platform,
            "deviceFamily": self.family,
            "mode": "gateway",
            "reason": "self",
            "instanceId": self.instance_id,
            "text": f"Gateway: {self.host} · app {self.version} · mode gateway · reason self",
            "ts": now_ms,
        }


def own(version: str, instance_id: str) -> Self:
    """This machine and process."""
    system = platform.uname()
    return Self(socket.gethostname(), version, f"{system.system.lower()} {system.release}", system.system, instance_id)


def shown(peer: Peer) -> bool:
    """Whether a connection has a row: devices have, passing calls of the command line have not."""
    return peer.who.device_id is not None


def rows(me: Self, peers: Iterable[Peer], now_ms: int) -> list[dict[str, Any]]:
    """The gateway's row, then the connections', newest first."""
    found = sorted((peer for peer in peers if shown(peer)), key=lambda peer: peer.who.since_ms, reverse=True)
    return [me.row(now_ms), *(_row(peer) for peer in found[:ROWS])]


def _row(peer: Peer) -> dict[str, Any]:
    who, client = peer.who, peer.who.client
    row: dict[str, Any] = {
        "clientId": client.id,
        "mode": client.mode,
        "onlineSince": who.since_ms,
        "roles": [who.role],
        "scopes": sorted(who.scopes),
        "ts": who.since_ms,
        "text": f"Node: {client.display_name or 'unknown'} · mode {client.mode}",
        "host": client.display_name or client.id,
        "version": client.version,
        "platform": client.platform,
        "deviceId": who.device_id,
        "reason": "connect",
    }
    optional = {
        "deviceFamily": client.device_family,
        "instanceId": client.instance_id,
        "timeZone": client.time_zone,
        "modelIdentifier": client.model_identifier,
    }
    if who.profile:
        row["user"] = {"id": who.profile, "identity": {"type": "profile", "id": who.profile}}
    return row | {key: value for key, value in optional.items() if value}
