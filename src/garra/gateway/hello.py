"""hello-ok: what a connection is told when it is let in. What is the same for all is encoded once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from garra.core import frames
from garra.core.scopes import ADMIN
from garra.core.value import frozen
from garra.gateway.auth import Admission

POLICY: Final[Mapping[str, Any]] = {
    "maxPayload": frames.FRAME_BYTES,
    "maxBufferedBytes": frames.BUFFERED_BYTES,
    "tickIntervalMs": frames.TICK_MS,
    "attachments": {"maxBytes": 19_464_192, "maxImageBytes": 6_291_456},
    "allowedSessionVisibilities": ["shared", "read-only", "suggest", "draft"],
    "hasMultipleSessionSharingIdentities": False,
}


@frozen
class House:
    """What does not change while the gateway runs."""

    version: str
    boot_id: str
    methods: Sequence[str]
    events: Sequence[str]
    capabilities: Sequence[str] = ()


@frozen
class Now:
    """What is true at this moment. `session` is `sessionDefaults`; `admin` is told to admins only; `page`
    whose web page it is: "bundled" is ours, "configured" one from elsewhere, which is then not held to our version.
    """

    presence: Sequence[Mapping[str, Any]]
    health: msgspec.Raw
    versions: Mapping[str, int]
    uptime_ms: int
    config_hash: str
    session: Mapping[str, Any]
    admin: Mapping[str, Any]
    page: str = "bundled"


class Greeting:
    """Makes the payload of hello-ok."""

    def __init__(self, house: House, now: Callable[[], Now]) -> None:
        self._house = house
        self._now = now
        self._features = msgspec.Raw(
            frames.encode({"methods": house.methods, "events": house.events, "capabilities": house.capabilities})
        )
        self._policy = msgspec.Raw(frames.encode(POLICY))

    def __call__(self, admission: Admission) -> dict[str, Any]:
        who = admission.who
        now = self._now()
        snapshot: dict[str, Any] = {
            "suspension": {"phase": "accepting"},
            "presence": now.presence if who.role == "operator" else [],
            "health": now.health,
            "stateVersion": now.versions,
            "uptimeMs": now.uptime_ms,
            "appliedConfigHash": now.config_hash,
            "sessionDefaults": now.session,
        }
        if ADMIN in who.scopes:
            snapshot |= now.admin
        server = {"version": self._house.version, "buildId": self._house.version, "bootId": self._house.boot_id}
        return {
            "type": "hello-ok",
            "protocol": frames.PROTOCOL,
            "server": {**server, "connId": who.conn_id, "controlUiBuildSource": now.page},
            "features": self._features,
            "snapshot": snapshot,
            "auth": _auth(admission),
            "policy": self._policy,
        }


def _auth(admission: Admission) -> dict[str, Any]:
    auth: dict[str, Any] = {
        "method": admission.who.method,
        "role": admission.who.role,
        "scopes": admission.scopes,
    }
    if admission.device_token:
        auth |= {"deviceToken": admission.device_token, "issuedAtMs": admission.issued_at}
    return auth
