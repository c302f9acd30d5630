"""The three frames of the wire protocol, version 4, as values: request, response, event. JSON text, closed objects.

The field lists and the wording of faults are OpenClaw's, because its clients read them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Raw, Struct, field

from garra.core.errors import GarraError
from garra.core.patterns import later
from garra.core.value import frozen

PROTOCOL: Final = 4
PREAUTH_BYTES: Final = 65_536
FRAME_BYTES: Final = 26_214_400
BUFFERED_BYTES: Final = 52_428_800
TICK_MS: Final = 30_000
REASON_BYTES: Final = 123
"""A close frame holds two bytes of code and this much text."""

Name = Annotated[str, Meta(min_length=1)]

CLIENT_IDS = Literal[
    "webchat-ui",
    "openclaw-control-ui",
    "openclaw-browser-copilot",
    "openclaw-tui",
    "webchat",
    "cli",
    "gateway-client",
    "openclaw-macos",
    "openclaw-linux",
    "openclaw-ios",
    "openclaw-watchos",
    "openclaw-android",
    "node-host",
    "openclaw-worker",
    "test",
    "fingerprint",
    "openclaw-probe",
]
CLIENT_MODES = Literal["webchat", "cli", "ui", "backend", "node", "worker", "probe", "test"]


class Request(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """What a client asks. `params` is parsed by the method's own shape."""

    type: Literal["req"]
    id: Name
    method: Name
    params: Raw = Raw()
    traceparent: Raw = Raw()
    expected_profile_id: Annotated[str, Meta(max_length=128)] | None = None


class ClientInfo(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """What a client says about itself."""

    id: CLIENT_IDS
    version: Name
    platform: Name
    mode: CLIENT_MODES
    display_name: str | None = None
    device_family: str | None = None
    model_identifier: str | None = None
    instance_id: str | None = None
    build_id: str | None = None
    time_zone: str | None = None


class AuthInfo(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """What a client shows to be let in."""

    token: str | None = None
    password: str | None = None
    device_token: str | None = None
    bootstrap_token: str | None = None


class DeviceInfo(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A device's key and its signature over the challenge; texts are base64url without padding."""

    id: Name
    public_key: Name
    signature: Name
    signed_at: int
    nonce: str


class CatalogInfo(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """For which session the browser wants the model catalog."""

    session_key: Name
    agent_id: str | None = None


class Connect(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The parameters of the first request."""

    min_protocol: Annotated[int, Meta(ge=1)]
    max_protocol: Annotated[int, Meta(ge=1)]
    client: ClientInfo
    role: Name = "operator"
    scopes: tuple[Name, ...] = ()
    caps: tuple[Name, ...] = ()
    commands: tuple[Name, ...] = ()
    permissions: Mapping[str, bool] = field(default_factory=dict)
    path_env: str | None = None
    auth: AuthInfo = AuthInfo()
    device: DeviceInfo | None = None
    locale: str | None = None
    user_agent: str | None = None
    model_catalog: CatalogInfo | None = None


@frozen
class Stray:
    """JSON that is no request; `id` is what it carries as one, for the answer."""

    id: str | int | float
    fault: str


Frame = Request | Stray | None
"""A frame as it was read; None is no JSON at all."""

_REQUEST: Final = msgspec.json.Decoder(Request)
_ENCODER: Final = msgspec.json.Encoder()
_AT: Final = later(r"^(?P<what>.*?)(?: - at `(?P<key>key in )?\$(?P<path>[^`]*)`)?$", re.DOTALL)
_STEP: Final = later(r"\.([^.\[\]]+)|\[([^\]]*)\]")
_KINDS: Final = {
    "str": "string",
    "int": "integer",
    "float": "number",
    "bool": "boolean",
    "object": "object",
    "array": "array",
    "null": "null",
}


def parse(data: bytes) -> Frame:
    """Read one frame. Never raises: what is no request is a Stray, what is no JSON is None."""
    try:
        return _REQUEST.decode(data)
    except (msgspec.DecodeError, RecursionError) as fault:
        return _stray(data, fault)


def _stray(data: bytes, fault: Exception) -> Stray | None:
    try:
        value = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):
        return None
    found = value.get("id") if isinstance(value, dict) else None
    named = found if isinstance(found, str | int | float) and not isinstance(found, bool) else "invalid"
    return Stray(named, reword(str(fault)))


def reword(fault: str) -> str:
    """msgspec's fault in the words clients know: `at /path: must …`."""
    match = _AT.match(fault)
    assert match
    what, path = match["what"], _pointer(match["path"] or "")
    quoted = what.split("`")[1] if "`" in what else ""
    if "missing required field" in what:
        return f"{f'at {path}: ' if path else ''}must have required property '{quoted}'"
    if "unknown field" in what:
        return f"at {path or 'root'}: unexpected property '{quoted}'"
    return f"{f'at {path}: ' if path else ''}{_wish(what, quoted)}"


def _wish(what: str, quoted: str) -> str:
    if "enum value" in what:
        return "must be equal to one of the allowed values"
    if "of length >= " in what:
        return f"must NOT have fewer than {what.rsplit(' ', 1)[1]} characters"
    if "of length <= " in what:
        return f"must NOT have more than {what.rsplit(' ', 1)[1]} characters"
    if "` >= " in what or "` <= " in what:
        return f"must be {what.split('` ', 1)[1]}"
    if ", got " in what:
        return "must be " + " or ".join(_KINDS.get(kind, kind) for kind in quoted.split(" | "))
    return what[:1].lower() + what[1:]


def _pointer(path: str) -> str:
    return "".join(f"/{name or index}" for name, index in _STEP.findall(path)).replace("/...", "/*")


def shape(error: GarraError) -> dict[str, Any]:
    """The wire form of an error: `{code, message, details?, retryable?, retryAfterMs?}`."""
    out: dict[str, Any] = {"code": error.code, "message": error.message}
    if error.details:
        out["details"] = error.details
    if error.retryable:
        out["retryable"] = True
    wait = (error.details or {}).get("retryAfterMs")
    if wait is not None:
        out["retryAfterMs"] = wait
    return out


def encode(value: Any) -> bytes:
    """JSON of a payload. Raises TypeError, ValueError or UnicodeEncodeError for what JSON cannot hold."""
    return _ENCODER.encode(value)


def good(request_id: str | float, payload: bytes | None) -> bytes:
    """A response that says yes; `payload` is JSON, None leaves it out."""
    rest = b"" if payload is None else b',"payload":' + payload
    return b'{"type":"res","id":%b,"ok":true%b}' % (_ENCODER.encode(request_id), rest)


def bad(request_id: str | float, error: GarraError, payload: bytes | None = None) -> bytes:
    """A response that says no; a failed `agent` carries its payload too."""
    rest = b"" if payload is None else b',"payload":' + payload
    head = b'{"type":"res","id":%b,"ok":false%b' % (_ENCODER.encode(request_id), rest)
    return head + b',"error":' + _ENCODER.encode(shape(error)) + b"}"


def event(name: str, payload: bytes, extra: bytes = b"") -> bytes:
    """An event; `extra` is what follows the payload, such as `,"seq":1`."""
    return b'{"type":"event","event":"%b","payload":%b%b}' % (name.encode(), payload, extra)


def reason(text: str) -> str:
    """A close reason cut to what a close frame holds, never inside a character."""
    return text.encode()[:REASON_BYTES].decode(errors="ignore")
