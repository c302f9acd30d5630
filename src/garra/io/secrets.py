"""The store of secrets: one file that only its owner may read, or the system's keyring, by names.

The file is `{version, entries: {NAME: {kind, value, hosts, updatedAt}}}`; an entry that is kept in the keyring says so
(`keyring: true`) and has no value here.
"""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any, Final, Literal

from garra.core.errors import NotFound, Unavailable, UserError
from garra.core.secret import Secret
from garra.core.value import frozen
from garra.io import lock
from garra.io.files import atomic

NAME: Final = re.compile(r"[A-Z][A-Z0-9_]{0,127}")
LARGEST: Final = 65_536
"""Bytes of one value."""
FILE_BYTES: Final = 16 << 20
SERVICE: Final = "garra"
"""Under which name the keyring keeps ours."""
WAIT_S: Final = 10.0

_SECRET = re.compile(r"(?:KEY|TOKEN|PASSWORD|PASSWD|PASSPHRASE|SECRET|CREDENTIALS?)$")

Kind = Literal["secret", "env"]


@frozen
class Entry:
    """One entry. `hosts` are the only ones it may be sent to, where there are any. `kind` env is no secret."""

    value: Secret = field(default_factory=lambda: Secret(""))
    kind: Kind = "secret"
    hosts: tuple[str, ...] = ()
    updated_at: int = 0
    keyring: bool = False


def kind_of(name: str) -> Kind:
    """What a name is usually for."""
    return "secret" if _SECRET.search(name) else "env"


def check(name: str, value: str, kind: Kind) -> None:
    """Raises UserError for what cannot be stored."""
    if not NAME.fullmatch(name):
        raise UserError(f"{name!r} is no name for a secret: capital letters, digits and _, as in OPENAI_API_KEY")
    if kind == "secret" and not value.strip():
        raise UserError(f"{name} would be empty: nothing was stored")
    if len(value.encode()) > LARGEST:
        raise UserError(f"{name} is too long: at most {LARGEST} bytes")
    if "__OPENCLAW_REDACTED__" in value or set(value) == {"*"}:
        raise UserError(f"{name}: what was given is what is shown in place of a secret, not the secret")


def exact(host: str) -> str:
    """A host as it is compared. Raises UserError for what is none, or more than one."""
    text = host.strip().rstrip(".").lower()
    try:
        text = text.encode("idna").decode()
    except UnicodeError:
        text = ""
    if not re.fullmatch(r"[a-z0-9-]+(?:\.[a-z0-9-]+)*", text):
        raise UserError(f"{host!r} is no host: write one name, such as api.example.com, without scheme, port or *")
    return text


class Store:
    """The store at `path`. All calls block. `ring` is the keyring, loaded when an entry is in it."""

    def __init__(self, path: Path, ring: Callable[[], Any] | None = None) -> None:
        self.path = path
        self._ring = ring or keyring

    def entries(self) -> dict[str, Entry]:
        """What there is; those in the keyring without their values. Raises Unavailable for a broken file."""
        try:
            if self.path.stat().st_mode & 0o077:  # restored from a copy, perhaps
                self.path.chmod(atomic.FILE_MODE)
            found = json.loads(atomic.read(self.path, FILE_BYTES))
        except FileNotFoundError:
            return {}
        except ValueError:
            raise Unavailable(f"{self.path} is no JSON: bring it back from a copy, or remove it") from None
        listed = found.get("entries") if isinstance(found, dict) else None
        if not isinstance(listed, dict):
            raise Unavailable(f"{self.path} has no entries: bring it back from a copy, or remove it")
        return {str(name): _entry(raw) for name, raw in listed.items() if isinstance(raw, dict)}

    def get(self, name: str, entries: Mapping[str, Entry] | None = None) -> str:
        """The value. Raises NotFound, and Unavailable where the keyring does not give it."""
        entry = (self.entries() if entries is None else entries).get(name)
        if entry is None:
            raise NotFound(f'the store has no "{name}"; `garra secrets set {name}` puts it there')
        if not entry.keyring:
            return entry.value.reveal()
        text = _asked(lambda ring: ring.get_password(SERVICE, name), self._ring)
        if not text:
            raise NotFound(f'the keyring has no "{name}" any more; `garra secrets set {name} --keyring` puts it there')
        return str(text)

    def set(self, name: str, value: str, entry: Entry) -> None:
        """Put it there, in the keyring where `entry.keyring` says so. Raises UserError, Unavailable."""
        check(name, value, entry.kind)
        if entry.keyring:
            _asked(lambda ring: ring.set_password(SERVICE, name, value), self._ring)

        def put(listed: dict[str, Entry]) -> None:
            listed[name] = replace(entry, value=Secret("" if entry.keyring else value))

        self._change(put)

    def bind(self, name: str, hosts: Sequence[str]) -> None:
        """From now on it may go to these hosts only; to any where there are none. Raises NotFound."""

        def put(listed: dict[str, Entry]) -> None:
            if name not in listed:
                raise NotFound(f'the store has no "{name}"')
            listed[name] = replace(listed[name], hosts=tuple(hosts))

        self._change(put)

    def remove(self, names: Sequence[str]) -> list[str]:
        """Remove those that are there; gives their names."""
        gone: list[str] = []

        def drop(listed: dict[str, Entry]) -> None:
            for name in names:
                if (entry := listed.pop(name, None)) is not None:
                    gone.append(name)
                    if entry.keyring:
                        self._forget(name)

        self._change(drop)
        return gone

    def _forget(self, name: str) -> None:
        _asked(lambda ring: ring.delete_password(SERVICE, name), self._ring)

    def _change(self, make: Callable[[dict[str, Entry]], None]) -> None:
        with lock.acquire(self.path.with_name(self.path.name + ".lock"), {}, WAIT_S):
            listed = self.entries()
            make(listed)
            body = {"version": 1, "entries": {name: _raw(entry) for name, entry in sorted(listed.items())}}
            with atomic.writing(self.path):
                atomic.write(self.path, json.dumps(body, indent=2, ensure_ascii=False).encode())


def keyring() -> Any:
    """The system's keyring. Raises Unavailable where its library is not installed."""
    try:
        return importlib.import_module("keyring")
    except ImportError:
        how = "run `garra plugins install keyring`"
        raise Unavailable(f"the system's keyring needs packages that are not installed: {how}") from None


def _asked(ask: Callable[[Any], Any], ring: Callable[[], Any]) -> Any:
    """What the keyring answers. Its faults are its own classes, of which none is known before it is loaded."""
    module = ring()
    faults = getattr(getattr(module, "errors", None), "KeyringError", OSError)
    try:
        return ask(module)
    except (faults, OSError, RuntimeError) as fault:
        raise Unavailable(f"the system's keyring refused: {type(fault).__name__}; is it unlocked?") from None


def _entry(raw: Mapping[str, Any]) -> Entry:
    hosts = raw.get("hosts")
    kind: Kind = "env" if raw.get("kind") == "env" else "secret"
    stamp = raw.get("updatedAt")
    return Entry(
        Secret(str(raw.get("value") or "")),
        kind,
        tuple(str(host) for host in hosts) if isinstance(hosts, list) else (),
        stamp if isinstance(stamp, int) else 0,
        raw.get("keyring") is True,
    )


def _raw(entry: Entry) -> dict[str, Any]:
    where: dict[str, Any] = {"keyring": True} if entry.keyring else {"value": entry.value.reveal()}
    return {"kind": entry.kind, **where, "hosts": list(entry.hosts), "updatedAt": entry.updated_at}
