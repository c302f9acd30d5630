"""The protocol as JSON Schema, made from the registry: what clients are generated from.

`emit` gives one document: `frames` (request, response, event), `methods` (scope, params, whether it answers twice),
`events`, and `$defs` for the shapes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from garra.core.frames import PROTOCOL
from garra.gateway.broadcast import EMITTED, EVENTS
from garra.gateway.method import Method, Registry

DRAFT = "https://json-schema.org/draft/2020-12/schema"
REF = "#/$defs/{name}"


class Request(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """What a client asks. `params` is the method's own shape."""

    type: Literal["req"]
    id: Annotated[str, Meta(min_length=1)]
    method: Annotated[str, Meta(min_length=1)]
    params: Any = None
    traceparent: str | None = None
    expected_profile_id: Annotated[str, Meta(max_length=128)] | None = None


class Error(Struct, frozen=True, rename="camel"):
    """Why a request failed; codes are stable."""

    code: str
    message: str
    details: Any = None
    retryable: bool = False
    retry_after_ms: int | None = None


class Response(Struct, frozen=True, rename="camel"):
    """The answer to the request of the same id. A failed `agent` has payload and error."""

    type: Literal["res"]
    id: str | int
    ok: bool
    payload: Any = None
    error: Error | None = None


class Event(Struct, frozen=True, rename="camel"):
    """Something happened. `seq` counts the broadcasts of this connection from 1."""

    type: Literal["event"]
    event: Annotated[str, Meta(min_length=1)]
    payload: Any = None
    seq: Annotated[int, Meta(ge=0)] | None = None
    state_version: dict[str, int] | None = None
    recipient_profile_id: str | None = None


def emit(registry: Registry, events: Iterable[str] = EMITTED) -> dict[str, Any]:
    """The whole protocol as one JSON Schema document."""
    rows = sorted(registry, key=lambda row: row.name)
    shapes: list[type[Struct]] = [Request, Response, Event, Error, *(row.params for row in rows if row.params)]
    unique = list(dict.fromkeys(shapes))
    refs, defs = msgspec.json.schema_components(unique, ref_template=REF)
    at = dict(zip(unique, refs, strict=True))
    return {
        "$schema": DRAFT,
        "$id": "protocol.schema.json",
        "title": "Garra gateway protocol",
        "protocol": PROTOCOL,
        "frames": {"request": at[Request], "response": at[Response], "event": at[Event]},
        "methods": {row.name: _method(row, at) for row in rows},
        "events": {name: {"scope": EVENTS.get(name, "")} for name in sorted(events)},
        "oneOf": [at[Request], at[Response], at[Event]],
        "$defs": defs,
    }


def _method(row: Method, at: dict[type[Struct], dict[str, Any]]) -> dict[str, Any]:
    about: dict[str, Any] = {
        "scope": row.scope,
        "role": row.role,
        "params": at[row.params] if row.params else {},
        "advertised": row.advertised,
        "startup": row.startup,
        "answersTwice": row.twice,
    }
    doc = row.summary or (row.run.__doc__ or "").strip().partition("\n")[0]
    return {**about, "description": doc} if doc else about
