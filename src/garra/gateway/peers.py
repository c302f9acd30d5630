"""One connection as the gateway knows it: the machine of `core.connection` on a socket, and who it turned out to be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol, assert_never

from garra.core import connection, frames
from garra.core.connection import Answer, Arrived, Beat, Close, Cut, Dispatch, Ended, Judge, Lost, Ping, Ponged
from garra.core.errors import GarraError
from garra.core.frames import Request
from garra.core.value import frozen
from garra.gateway.method import Client, Who
from garra.gateway.origin import Approach
from garra.gateway.socket import Socket

NOBODY: Final = Who("", Client("", ""))
NOTHING: Final[frozenset[str]] = frozenset()


@frozen
class Knocking:
    """What is kept of a connection until it is let in."""

    conn_id: str
    approach: Approach
    headers: Mapping[str, str]
    nonce: str


class House(Protocol):
    """What a peer asks of the gateway."""

    def judge(self, peer: Peer, request: Request) -> None:
        """Begin to judge a connect; ends in `Admitted` or `Refused`."""
        ...

    def dispatch(self, peer: Peer, request: Request) -> None:
        """Begin to carry out a request."""
        ...

    def gone(self, peer: Peer) -> None:
        """The connection ended."""
        ...


class Peer:
    """A guest on a socket, a link to its callers. `signature` is what its broadcasts carry beside their number."""

    __slots__ = (
        "_house",
        "_watching",
        "conn_id",
        "in_flight",
        "knocking",
        "seq",
        "signature",
        "socket",
        "state",
        "who",
    )

    def __init__(self, house: House, socket: Socket, knocking: Knocking, now: float) -> None:
        self._house = house
        self.socket = socket
        self.conn_id = knocking.conn_id
        self.knocking: Knocking | None = knocking
        self.state = connection.start(now)
        self.who = NOBODY
        self.seq = 0
        self.in_flight = 0
        self.signature = b""
        self._watching: set[str] | None = None

    @property
    def watching(self) -> set[str]:
        if self._watching is None:
            self._watching = set()
        return self._watching

    def watches(self, topic: str) -> bool:
        return topic in (self._watching or NOTHING)

    def take(self, event: connection.Event) -> None:
        """Let something happen to it."""
        self.state, effects = connection.step(self.state, event)
        for effect in effects:
            self._carry(effect)

    def _carry(self, effect: connection.Effect) -> None:
        match effect:
            case Dispatch(request):
                self._house.dispatch(self, request)
            case Answer(request_id, error):
                self.fail(request_id, error)
            case Close(code, reason):
                self.socket.close(code, reason)
            case Judge(request):
                self._house.judge(self, request)
            case Ping():
                self.socket.ping()
            case Cut():
                self.socket.abort()
            case _:
                assert_never(effect)

    def received(self, data: bytes) -> None:
        self.take(Arrived(frames.parse(data)))

    def ponged(self) -> None:
        self.take(Ponged())

    def slow(self) -> None:
        self.take(Ended(1008, "slow consumer"))

    def lost(self) -> None:
        self.take(Lost())
        self._house.gone(self)

    def beat(self, now: float) -> None:
        """Time went on; cheap when nothing is due."""
        if now >= self.state.due:
            self.take(Beat(now))

    def end(self, code: int, reason: str) -> None:
        """The gateway ends it."""
        self.take(Ended(code, reason))

    def welcome(self, who: Who) -> None:
        """It was let in."""
        self.who = who
        self.knocking = None
        self.socket.widen()
        if who.profile:
            self.signature = b',"recipientProfileId":%b' % frames.encode(who.profile)

    def send(self, event: str, payload: Any) -> None:
        """An event to this connection alone, without a number."""
        self.socket.send(frames.event(event, frames.encode(payload)))

    def respond(self, request_id: str | float, payload: Any) -> None:
        """A good response."""
        encoded = None if payload is None else frames.encode(payload)
        self.socket.send(frames.good(request_id, encoded), limit=frames.BUFFERED_BYTES)

    def fence(self) -> None:
        """What is sent from now on waits until the client has read what was sent before; see `Socket.fence`."""
        self.socket.fence()

    def fail(self, request_id: str | float, error: GarraError, payload: Any = None) -> None:
        """A bad response."""
        encoded = None if payload is None else frames.encode(payload)
        self.socket.send(frames.bad(request_id, error, encoded), limit=frames.BUFFERED_BYTES)
