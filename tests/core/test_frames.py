"""The three frames, byte by byte."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from garra.core import frames
from garra.core.errors import Forbidden, Unavailable, UserError
from garra.core.frames import Connect, Request, Stray

CONNECT: dict[str, Any] = {
    "minProtocol": 4,
    "maxProtocol": 4,
    "client": {"id": "cli", "version": "1", "platform": "linux", "mode": "cli"},
}


def read(value: Any) -> frames.Frame:
    return frames.parse(json.dumps(value).encode())


@pytest.mark.req("GW-01")
def test_a_request_is_a_closed_object_with_an_id_and_a_method() -> None:
    found = read({"type": "req", "id": "1", "method": "health", "params": {"a": [1]}, "traceparent": 7})
    assert isinstance(found, Request)
    assert (found.id, found.method, bytes(found.params)) == ("1", "health", b'{"a": [1]}')
    assert isinstance(read({"type": "req", "id": "1", "method": "health"}), Request)


@pytest.mark.req("GW-01")
@pytest.mark.parametrize(
    ("value", "request_id", "fault"),
    [
        ({"type": "req", "id": "1", "method": "m", "extra": 1}, "1", "at root: unexpected property 'extra'"),
        ({"type": "req", "id": "", "method": "m"}, "", "at /id: must NOT have fewer than 1 characters"),
        ({"type": "req", "method": "m"}, "invalid", "must have required property 'id'"),
        ({"type": "req", "id": 7, "method": "m"}, 7, "at /id: must be string"),
        ({"type": "req", "id": True, "method": "m"}, "invalid", "at /id: must be string"),
        ({"type": "event", "id": "1", "method": "m"}, "1", "at /type: must be equal to one of the allowed values"),
        ([], "invalid", "must be object"),
        ("text", "invalid", "must be object"),
        (
            {"type": "req", "id": "1", "method": "m", "expectedProfileId": "x" * 129},
            "1",
            "at /expectedProfileId: must NOT have more than 128 characters",
        ),
    ],
)
def test_json_that_is_no_request_says_what_is_wrong(value: Any, request_id: Any, fault: str) -> None:
    assert read(value) == Stray(request_id, fault)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"\xff",
        b'{"type":"\xff"}',
        b"[" * 100_000,
        b'{"type":"req","id":"1","method":"m","params":' + b"[" * 9_000,
    ],
)
def test_what_is_no_json_is_nothing(data: bytes) -> None:
    assert frames.parse(data) is None


@given(st.binary(max_size=200))
def test_reading_never_raises(data: bytes) -> None:
    assert isinstance(frames.parse(data), frames.Request | frames.Stray | None)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (
            {"client": {**CONNECT["client"], "id": "nobody"}},
            "at /client/id: must be equal to one of the allowed values",
        ),
        ({"client": {**CONNECT["client"], "mode": "operator"}}, "at /client/mode: must be equal to one of the"),
        ({"client": {"id": "cli"}}, "at /client: must have required property 'version'"),
        ({"client": {**CONNECT["client"], "x": 1}}, "at /client: unexpected property 'x'"),
        ({"minProtocol": 0}, "at /minProtocol: must be >= 1"),
        ({"scopes": ["a", 1]}, "at /scopes/1: must be string"),
        ({"permissions": {"a": 1}}, "at /permissions/*: must be boolean"),
        ({"locale": 1}, "at /locale: must be string or null"),
        ({"device": {"id": "x"}}, "at /device: must have required property 'publicKey'"),
        ({"nonsense": 1}, "at root: unexpected property 'nonsense'"),
    ],
)
def test_connect_is_closed_and_its_faults_name_the_path(change: dict[str, Any], fault: str) -> None:
    with pytest.raises(msgspec.ValidationError) as raised:
        msgspec.json.decode(json.dumps({**CONNECT, **change}), type=Connect)
    assert fault in frames.reword(str(raised.value))


def test_a_fault_in_words_of_its_own_is_kept() -> None:
    assert frames.reword("Invalid RFC3339 date - at `$.at`") == "at /at: invalid RFC3339 date"


def test_responses() -> None:
    assert json.loads(frames.good("1", b'{"a":1}')) == {"type": "res", "id": "1", "ok": True, "payload": {"a": 1}}
    assert json.loads(frames.good(7, None)) == {"type": "res", "id": 7, "ok": True}
    error = UserError("no")
    assert json.loads(frames.bad("1", error)) == {
        "type": "res",
        "id": "1",
        "ok": False,
        "error": {"code": "INVALID_REQUEST", "message": "no"},
    }
    both = json.loads(frames.bad("1", error, b'{"runId":"r"}'))
    assert both["payload"] == {"runId": "r"}
    assert both["error"]["message"] == "no"


@pytest.mark.req("GW-18")
def test_error_shapes() -> None:
    assert frames.shape(Forbidden("missing scope: x", details={"code": "MISSING_SCOPE"})) == {
        "code": "FORBIDDEN",
        "message": "missing scope: x",
        "details": {"code": "MISSING_SCOPE"},
    }
    assert frames.shape(Unavailable("later", details={"retryAfterMs": 5}, retryable=True)) == {
        "code": "UNAVAILABLE",
        "message": "later",
        "details": {"retryAfterMs": 5},
        "retryable": True,
        "retryAfterMs": 5,
    }


def test_events_and_reasons() -> None:
    assert frames.encode({"a": msgspec.Raw(b"[1]")}) == b'{"a":[1]}'
    assert json.loads(frames.event("tick", b'{"ts":1}', b',"seq":3')) == {
        "type": "event",
        "event": "tick",
        "payload": {"ts": 1},
        "seq": 3,
    }
    assert frames.reason("é" * 100) == "é" * 61
