"""An account's settings as this channel uses them."""

from __future__ import annotations

from typing import Any

from garra.builtin.channels.webhook import signing
from garra.core.secret import Secret
from garra.core.value import frozen
from garra.sdk.channel import Account
from garra.sdk.ports import Via

PATH = "/webhook"
TEXT = 16_000
_MB = 1 << 20
_IN, _OUT = 20 * _MB, 5 * _MB


@frozen
class Settings:
    """What the other side of an account needs. `keys` sign, the newest first; `fault` says why there is none."""

    path: str
    url: str
    secrets: tuple[Secret, ...]
    fault: str
    idempotent: bool
    private: bool
    text: int
    file_in: int
    file_out: int
    via: Via

    @property
    def keys(self) -> tuple[bytes, ...]:
        return tuple(signing.key(secret.reveal()) for secret in self.secrets)


def settings(account: Account) -> Settings:
    """Read them."""
    own = account.settings
    given = {name: _secret(own.get(name)) for name in ("secret", "oldSecret")}
    fault = _fault(given)
    room = float(own.get("mediaMaxMb") or 0) * _MB
    return Settings(
        path=_path(str(own.get("path") or PATH), account.id),
        url=str(own.get("url") or ""),
        secrets=() if fault else tuple(secret for secret in given.values() if secret),
        fault=fault,
        idempotent=own.get("idempotent") is not False,
        private=own.get("allowPrivateNetwork") is True,
        text=int(own.get("textChunkLimit") or TEXT),
        file_in=int(room or _IN),
        file_out=int(room or _OUT),
        via=Via(own.get("proxy") or None, own.get("caFile") or None),
    )


def _fault(given: dict[str, Secret]) -> str:
    secret = given["secret"]
    if not secret:
        return secret.missing or "no secret: set secret to whsec_ and 32 random bytes in base64"
    for name, each in given.items():
        try:
            if each:
                signing.key(each.reveal())
        except ValueError as wrong:
            return f"{name} {wrong}; write whsec_ and 32 random bytes in base64 (openssl rand -base64 32)"
    return ""


def _path(path: str, account: str) -> str:
    """Each account has a path of its own, also where they share the key."""
    found = "/" + path.strip("/")
    return found if account == "default" else f"{found}/{account}"


def _secret(value: Any) -> Secret:
    return value if isinstance(value, Secret) else Secret(str(value or ""))
