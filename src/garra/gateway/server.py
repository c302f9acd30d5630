"""The gateway: every connection from knock to farewell, one table of methods, one hub of events."""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from dataclasses import replace
from typing import Any, Final, Literal

import msgspec
from websockets.http11 import Request as Upgrade

from garra.core import frames
from garra.core.connection import Admitted, Refused
from garra.core.devices import Device, Pending
from garra.core.errors import GarraError, Unavailable
from garra.core.frames import Connect, Request, reword
from garra.core.value import frozen
from garra.domains.access.devices import Devices
from garra.gateway import auth, pairing, presence
from garra.gateway.auth import Admission, Caught, Ears, Gatekeeper
from garra.gateway.broadcast import Hub
from garra.gateway.dispatch import Dispatcher
from garra.gateway.door import Door
from garra.gateway.health import Health
from garra.gateway.hello import Greeting
from garra.gateway.origin import Barred, approach
from garra.gateway.peers import Knocking, Peer
from garra.gateway.refusals import Turned
from garra.gateway.socket import Guest, Socket
from garra.sdk.ports import Clock, Spawn

KNOCKING: Final = 32
"""So many sockets of one address may be open before their connect."""

CROWD: Final = 512
"""So many of all addresses."""

RETRY_MS: Final = 1_000
FAREWELL_S: Final = 2.0
TICK_S: Final = frames.TICK_MS / 1000

_CONNECT: Final = msgspec.json.Decoder(Connect)


@frozen
class Open:
    """What the gateway needs once the house stands."""

    dispatch: Dispatcher
    greet: Greeting


class Gateway:
    """Connections. Until `open` it tells each connect to come again; `close` ends them all."""

    def __init__(self, door: Door, devices: Devices, clock: Clock, spawn: Spawn, *, version: str) -> None:
        self.door = door
        self.devices = devices
        self.clock = clock
        self.spawn = spawn
        self.hub = Hub()
        self.me = presence.own(version, str(uuid.uuid4()))
        self.health = Health(clock, spawn, lambda raw: self.hub.publish("health", raw))
        self.phase: Literal["starting", "ready", "draining"] = "starting"
        self._open: Open | None = None
        self._keeper = Gatekeeper(lambda: self.door, devices, clock, Ears(self._requested, self._paired))
        self._knocking: set[Peer] = set()
        self._by_address: Counter[str] = Counter()
        self._ticked = clock.monotonic()
        self._present = False
        self._empty = asyncio.Event()

    def open(self, dispatch: Dispatcher, greet: Greeting) -> None:
        """From now on connects are judged and requests carried out."""
        self._open = Open(dispatch, greet)
        self.phase = "ready"

    @property
    def ready(self) -> bool:
        return self.phase == "ready"

    def enter(self, socket: Socket, upgrade: Upgrade) -> Guest | tuple[int, str]:
        """Whether a socket may be upgraded: the Host is ours, the address is no crowd."""
        headers = joined(upgrade)
        found = approach(socket.address, headers, self.door.grounds)
        if isinstance(found, Barred):
            return found.status, found.text + "\n"
        if self.phase == "draining":
            return 503, "The gateway is stopping\n"
        if self._by_address[found.address] >= KNOCKING or len(self._knocking) >= CROWD:
            return 503, "Too many unauthenticated sockets"
        knocking = Knocking(str(uuid.uuid4()), replace(found, port=socket.port), headers, str(uuid.uuid4()))
        peer = Peer(self, socket, knocking, self.clock.monotonic())
        self._knocking.add(peer)
        self._by_address[found.address] += 1
        self._empty.clear()
        return peer

    def seated(self, guest: Guest) -> None:
        """Send the challenge."""
        if isinstance(guest, Peer) and guest.knocking:
            payload = {"nonce": guest.knocking.nonce, "ts": self.clock.now_ms(), "capabilities": []}
            guest.send("connect.challenge", payload)

    def judge(self, peer: Peer, request: Request) -> None:
        self.spawn(self._judge(peer, request), "connect")

    async def _judge(self, peer: Peer, request: Request) -> None:
        try:
            admission = await self._admit(peer, request)
        except Turned as turned:
            peer.take(Refused(request.id, turned.error, turned.code, turned.reason))
            return
        except GarraError as fault:
            peer.take(Refused(request.id, fault, 1011, fault.message))
            return
        if peer.state.phase == "connecting" and self._open:
            self._welcome(peer, request, admission, self._open)

    async def _admit(self, peer: Peer, request: Request) -> Admission:
        if self.phase == "starting":
            raise auth.starting(RETRY_MS)
        if self.phase == "draining" or peer.knocking is None:
            raise Turned(Unavailable("the gateway is stopping", retryable=True), 1012, "service restart")
        try:
            connect = _CONNECT.decode(bytes(request.params) or b"{}")
        except (msgspec.DecodeError, RecursionError) as fault:
            raise auth.malformed(reword(str(fault))) from None
        door, knocking = self.door, peer.knocking
        caught = Caught(connect, knocking.approach, knocking.headers, knocking.nonce, peer.conn_id)
        admission = await self._keeper.admit(caught)
        if self.door is not door:  # the secret changed while this was judged: let it be judged again
            raise Turned(Unavailable("gateway auth changed", retryable=True), 4001)
        return admission

    def _welcome(self, peer: Peer, request: Request, admission: Admission, house: Open) -> None:
        self._seat(peer)
        peer.welcome(admission.who)
        self.hub.peers[peer.conn_id] = peer
        peer.respond(request.id, house.greet(admission))
        peer.socket.ping()  # who answers it can be waited for: see `Socket.fence`
        peer.take(Admitted(self.clock.monotonic()))
        self._present |= presence.shown(peer)

    def _seat(self, peer: Peer) -> None:
        if peer in self._knocking and peer.knocking:
            self._knocking.discard(peer)
            address = peer.knocking.approach.address
            self._by_address[address] -= 1
            if self._by_address[address] <= 0:
                del self._by_address[address]

    def dispatch(self, peer: Peer, request: Request) -> None:
        if self._open:
            self._open.dispatch(peer, request)

    def gone(self, peer: Peer) -> None:
        self._seat(peer)
        if self.hub.peers.pop(peer.conn_id, None):
            self._present |= presence.shown(peer)
        if not self.hub.peers and not self._knocking:
            self._empty.set()

    def rows(self) -> list[dict[str, Any]]:
        """Who is here."""
        return presence.rows(self.me, self.hub.peers.values(), self.clock.now_ms())

    async def pulse(self) -> None:
        """Run as a task: time, for all connections."""
        while True:
            await self.clock.sleep(1.0)
            self.beat()

    def beat(self) -> None:
        """What time makes due: handshakes that took too long, pings, ticks, news of who is here."""
        now = self.clock.monotonic()
        for peer in (*self._knocking, *self.hub.peers.values()):
            peer.beat(now)
        if self._present:
            self._present = False
            self.hub.publish("presence", {"presence": self.rows()})
        if now - self._ticked >= TICK_S:
            self._ticked = now
            self.hub.publish("tick", {"ts": self.clock.now_ms()})

    def change(self, door: Door) -> None:
        """Other settings count from now on; who came in by a secret that is no more is shown out."""
        before, self.door = self.door, door
        if (before.mode, before.secret) != (door.mode, door.secret):
            for peer in [p for p in self.hub.peers.values() if p.who.method != "device-token"]:
                peer.end(4001, "gateway auth changed")

    def expel(self, device_id: str, role: str | None = None) -> None:
        """A device's rights ended: so do its connections."""
        for peer in self.hub.of_device(device_id, role):
            peer.end(4001, "device removed")

    def _requested(self, request: Pending) -> None:
        self.hub.publish("device.pair.requested", pairing.waiting(request))

    def _paired(self, device: Device) -> None:
        payload = {"requestId": str(uuid.uuid4()), "deviceId": device.id, "decision": "approved"}
        self.hub.publish("device.pair.resolved", {**payload, "ts": self.clock.now_ms()})

    async def close(self, reason: str = "gateway stopping") -> None:
        """Say goodbye to all, and wait until they are gone, or two seconds."""
        self.phase = "draining"
        self.hub.publish("shutdown", {"reason": reason})
        for peer in (*self._knocking, *self.hub.peers.values()):
            peer.end(1012, "service restart")
        if self.hub.peers or self._knocking:
            try:
                async with asyncio.timeout(FAREWELL_S):
                    await self._empty.wait()
            except TimeoutError:
                for peer in (*self._knocking, *self.hub.peers.values()):
                    peer.socket.abort()


def joined(upgrade: Upgrade) -> dict[str, str]:
    """Headers by lower-case name; a repeated one is joined, so that no second Host hides behind a good one."""
    headers: dict[str, str] = {}
    for name, value in upgrade.headers.raw_items():
        key = name.lower()
        headers[key] = f"{headers[key]}, {value}" if key in headers else value
    return headers
