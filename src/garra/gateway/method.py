"""The method table: which names a client may call, with which right, and what a method is given.

A method is a row, not a branch: `Method(name, scope, params, run)`. `gateway/methods/<domain>.py` each export
`METHODS`; the one dispatcher (`gateway.dispatch`) looks the row up, checks role and scope, parses the parameters and
calls `run(host, caller, params)`. What has no row is refused.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any, Literal, Protocol

import msgspec

from garra.core.errors import Forbidden, GarraError, UserError
from garra.core.scopes import ADMIN as ADMIN
from garra.core.scopes import APPROVALS as APPROVALS
from garra.core.scopes import PAIRING as PAIRING
from garra.core.scopes import QUESTIONS as QUESTIONS
from garra.core.scopes import READ as READ
from garra.core.scopes import TALK as TALK
from garra.core.scopes import WRITE as WRITE
from garra.core.scopes import reaches as reaches
from garra.core.value import frozen

Role = Literal["operator", "node"]

Scope = str
"""One of the names of `core.scopes`. Any other text is a right nobody but an admin holds."""


def missing(scope: Scope) -> Forbidden:
    """The error for a caller without `scope`."""
    details = {"code": "MISSING_SCOPE", "missingScope": scope, "requiredScopes": [scope]}
    return Forbidden(f"missing scope: {scope}", details=details)


@frozen
class Client:
    """What a client says about itself; never a reason for a right."""

    id: str
    mode: str
    version: str = ""
    platform: str = ""
    display_name: str = ""
    device_family: str = ""
    model_identifier: str = ""
    instance_id: str = ""
    time_zone: str = ""


@frozen
class Who:
    """One authenticated connection. Every right in it comes from the gateway's own record of the credential.

    `method` is how it proved itself: token, password, device-token, trusted-proxy, none, or internal.
    `loopback` is the address of the real peer, never what a header says, and `port` that peer's. `profile` is set for a
    paired operator.
    """

    conn_id: str
    client: Client
    role: Role = "operator"
    scopes: frozenset[str] = frozenset()
    caps: frozenset[str] = frozenset()
    commands: tuple[str, ...] = ()
    device_id: str | None = None
    profile: str | None = None
    method: str = "token"
    address: str = ""
    loopback: bool = False
    port: int = 0
    since_ms: int = 0


class Link(Protocol):
    """The connection behind a caller."""

    who: Who

    @property
    def watching(self) -> set[str]:
        """What it subscribed to; to be changed in place."""
        ...

    def send(self, event: str, payload: Any) -> None:
        """An event to this connection alone, without a number. Never blocks; dropped when the connection is gone."""
        ...

    def respond(self, request_id: str | int, payload: Any) -> None:
        """A good response."""
        ...

    def fence(self) -> None:
        """What is sent from now on waits until the other side has taken what was sent before."""
        ...


class Caller:
    """Who calls, for the length of one request."""

    __slots__ = ("link", "request_id", "who")

    def __init__(self, link: Link, request_id: str | int) -> None:
        self.link = link
        self.who = link.who
        self.request_id = request_id

    @property
    def conn_id(self) -> str:
        return self.who.conn_id

    @property
    def client(self) -> Client:
        return self.who.client

    @property
    def role(self) -> Role:
        return self.who.role

    @property
    def scopes(self) -> frozenset[str]:
        return self.who.scopes

    @property
    def caps(self) -> frozenset[str]:
        return self.who.caps

    @property
    def device_id(self) -> str | None:
        return self.who.device_id

    @property
    def loopback(self) -> bool:
        return self.who.loopback

    @property
    def watching(self) -> set[str]:
        """What this connection subscribed to (`sessions`, `session:KEY` …); it lives as long as the connection."""
        return self.link.watching

    def may(self, scope: Scope) -> bool:
        return reaches(self.who.scopes, scope)

    def require(self, scope: Scope) -> None:
        """Raises Forbidden when parameters ask for a right beyond the method's own."""
        if not self.may(scope):
            raise missing(scope)

    def send(self, event: str, payload: Any) -> None:
        """An event to this connection alone, without a number."""
        self.link.send(event, payload)

    def respond_early(self, payload: Any) -> None:
        """The first of two answers to one request, such as `{runId, status: "accepted"}` of `agent`."""
        self.link.respond(self.request_id, payload)


class Inside:
    """The link of a caller inside the gateway (an HTTP route, a tool): nothing is sent anywhere."""

    __slots__ = ("watching", "who")

    def __init__(self, who: Who) -> None:
        self.who = who
        self.watching: set[str] = set()

    def send(self, event: str, payload: Any) -> None:
        """Nobody listens."""

    def respond(self, request_id: str | int, payload: Any) -> None:
        """Nobody listens."""

    def fence(self) -> None:
        """Nobody listens."""


def inside(scopes: Iterable[str], name: str = "gateway") -> Caller:
    """A caller without a connection that holds `scopes`."""
    who = Who("inside", Client(name, "backend"), scopes=frozenset(scopes), method="internal", loopback=True)
    return Caller(Inside(who), "inside")


@frozen
class Reply:
    """What a method gives back when the payload alone does not say it: a failed `agent` has payload and error."""

    payload: Any
    error: GarraError | None = None


Run = Callable[[Any, Caller, Any], Awaitable[Any] | Any]
"""`run(host, caller, params)` gives the payload (anything msgspec encodes; `msgspec.Raw` is sent as it is), a Reply,
or an awaitable of either. A plain function is answered at once, without a task: use it where nothing is waited for.
It raises GarraError for what the caller should read."""


@frozen
class Method:
    """One row of the table.

    `params` is the closed shape of the parameters; None takes anything and hands over the plain value (or `{}`).
    `startup`: answers retryable UNAVAILABLE until the gateway is ready. `advertised`: named in hello-ok.
    `role`: which kind of connection may call it; `scope` counts for operators only. `twice`: answers early, then again.
    """

    name: str
    scope: Scope
    params: type[msgspec.Struct] | None
    run: Run
    startup: bool = False
    advertised: bool = True
    role: Role | Literal["any"] = "operator"
    twice: bool = False
    summary: str = ""


@frozen
class Registry:
    """The table. Deny by default. `told` are the names for a greeting, where they are known without the rows."""

    rows: Mapping[str, Method] = field(default_factory=dict)
    told: tuple[str, ...] = ()

    @classmethod
    def of(cls, *groups: Iterable[Method]) -> Registry:
        """Put groups of rows together. Raises ValueError for a name that stands there twice."""
        rows: dict[str, Method] = {}
        for method in (row for group in groups for row in group):
            if method.name in rows:
                raise ValueError(f"method {method.name} has two rows")
            rows[method.name] = method
        return cls(rows)

    def __iter__(self) -> Iterator[Method]:
        return iter(self.rows.values())

    @property
    def advertised(self) -> tuple[str, ...]:
        """The names for hello-ok, sorted."""
        return self.told or tuple(sorted(row.name for row in self if row.advertised))

    def pick(self, name: str, who: Who) -> Method:
        """The row `who` may call by `name`.

        Raises Forbidden without the right (an unknown name asks for admin, so that names cannot be guessed by
        those who may call little), UserError for an unknown name or another role's method.
        """
        row = self.rows.get(name)
        if row is None:
            if who.role == "node":
                raise UserError("unauthorized role: node")
            if ADMIN not in who.scopes:
                raise missing(ADMIN)
            raise UserError(f"unknown method: {name}")
        if row.role not in (who.role, "any"):
            raise UserError(f"unauthorized role: {who.role}")
        if who.role == "operator" and not reaches(who.scopes, row.scope):
            raise missing(row.scope)
        return row
