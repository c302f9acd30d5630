"""Events to many: encoded once, numbered per connection, and given only to those who may hear them.

`seq` counts the broadcasts of one connection from 1; an event a slow reader did not get leaves a gap by which it knows
that it must read again. Nothing is ever sent twice. An event without a row in `EVENTS` goes to admins only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from typing import Any, Final, Literal

from garra.core import frames
from garra.core.scopes import ADMIN, APPROVALS, PAIRING, READ, reaches
from garra.core.value import record
from garra.gateway.method import Link, Scope
from garra.gateway.peers import Peer

ANYONE: Final = ""
"""The right of an event that every connection gets, nodes too."""

EVENTS: Final[Mapping[str, Scope]] = {
    "agent": READ,
    "chat": READ,
    "chat.send_timing": READ,
    "channels.pairing.requested": PAIRING,
    "channels.pairing.resolved": PAIRING,
    "config.changed": READ,
    "skills.changed": READ,
    "cron": READ,
    "device.pair.requested": PAIRING,
    "device.pair.resolved": PAIRING,
    "exec.approval.requested": APPROVALS,
    "exec.approval.resolved": APPROVALS,
    "plugin.approval.requested": APPROVALS,
    "plugin.approval.resolved": APPROVALS,
    "health": ANYONE,
    "heartbeat": ANYONE,
    "node.pair.requested": PAIRING,
    "node.pair.resolved": PAIRING,
    "plugins.changed": READ,
    "presence": READ,
    "session.approval": APPROVALS,
    "session.message": READ,
    "session.tool": READ,
    "sessions.changed": READ,
    "shutdown": ANYONE,
    "task": READ,
    "tick": ANYONE,
}

EMITTED: Final = (
    "agent",
    "channels.pairing.requested",
    "channels.pairing.resolved",
    "chat",
    "connect.challenge",
    "device.pair.requested",
    "device.pair.resolved",
    "exec.approval.requested",
    "exec.approval.resolved",
    "health",
    "plugin.approval.requested",
    "plugin.approval.resolved",
    "presence",
    "question.requested",
    "question.resolved",
    "session.approval",
    "session.message",
    "session.tool",
    "sessions.changed",
    "shutdown",
    "tick",
)
"""What the gateway itself and its methods send; hello-ok names these and what `app` adds."""

Counted = Literal["presence", "health"]


@record
class Versions:
    """How often presence and health changed; they only grow."""

    presence: int = 1
    health: int = 1


@record
class Hub:
    """All open connections, and events to them. As `gateway.parts.Broadcast`."""

    peers: dict[str, Peer] = field(default_factory=dict)
    versions: Versions = field(default_factory=Versions)
    clean: Callable[[bytes], bytes] = lambda data: data
    """Keeps the secrets that are known out of what is told."""

    def publish(
        self,
        event: str,
        payload: Any,
        *,
        scope: Scope = ANYONE,
        where: Callable[[Link], bool] | None = None,
        droppable: bool | None = None,
    ) -> None:
        """To every connection that may hear `event`, has the right `scope`, and that `where` (all, when None) picks.

        `droppable`: a reader that lags may miss it; by default that is so for what a later event repeats.
        """
        heard = [peer for peer in self.peers.values() if self._hears(peer, event, scope, where)]
        if not heard:
            return
        fleeting = passing(event, payload) if droppable is None else droppable
        head = b'{"type":"event","event":"%b","payload":' % event.encode()
        body = self.clean(frames.encode(payload))
        tail = self._state(event)
        small = len(body) < 4096
        if small:
            head += body
        for peer in heard:
            peer.seq += 1
            end = b',"seq":%d%b%b}' % (peer.seq, tail, peer.signature)
            if small:
                peer.socket.send(head, end, droppable=fleeting)
            else:
                peer.socket.send(head, body, end, droppable=fleeting)

    def watched(self, topic: str) -> bool:
        """Whether any connection subscribed to `topic`."""
        return any(peer.watches(topic) for peer in self.peers.values())

    def anybody(self, where: Callable[[Link], bool]) -> bool:
        """Whether any connection is one that `where` picks."""
        return any(where(peer) for peer in self.peers.values())

    def of_device(self, device_id: str, role: str | None = None) -> Iterable[Peer]:
        """The open connections of a device."""
        return [
            peer
            for peer in self.peers.values()
            if peer.who.device_id == device_id and (role is None or peer.who.role == role)
        ]

    @staticmethod
    def _hears(peer: Peer, event: str, scope: Scope, where: Callable[[Link], bool] | None) -> bool:
        guard = EVENTS.get(event, ADMIN)
        if guard and (peer.who.role == "node" or not reaches(peer.who.scopes, guard)):
            return False
        if scope and scope != guard and not reaches(peer.who.scopes, scope):
            return False
        return where is None or where(peer)

    def _state(self, event: str) -> bytes:
        versions = self.versions
        if event == "presence":
            versions.presence += 1
        elif event == "health":
            versions.health += 1
        else:
            return b""
        return b',"stateVersion":{"presence":%d,"health":%d}' % (versions.presence, versions.health)


def passing(event: str, payload: Any) -> bool:
    """Whether a later event says again what this one says: words as they come, progress, the time."""
    if event in ("tick", "presence", "health"):
        return True
    if not isinstance(payload, Mapping):
        return False
    if event == "chat":
        return payload.get("state") in ("delta", "status")
    return event == "agent" and payload.get("stream") in ("assistant", "thinking", "command_output")
