"""Secrets that the configuration only names: `{source, provider, id}`, fetched from where they are when it is loaded.

Sources: `env` a variable, `file` a file of one's own, `exec` a program, `store` the store of `garra secrets`. What
cannot be had is told in one line that says where and how; nothing stands in for it but the value that was fetched for
the very same reference before.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Any, Final

from garra.config import include
from garra.config.paths import Paths
from garra.config.variables import Kept, listed
from garra.core.errors import GarraError, NotFound, Unavailable
from garra.core.secret import Bound, Secret
from garra.core.value import frozen
from garra.io.env import Environment
from garra.io.files import atomic
from garra.io.secrets import NAME, Entry, Store

PROVIDER: Final = re.compile(r"[a-z][a-z0-9_-]{0,63}")
EXEC_ID: Final = re.compile(r"(?!(?:.*/)?\.\.?(?:/|$))[A-Za-z0-9][A-Za-z0-9._:/#-]{0,255}")
TIMEOUT_MS: Final = 5_000
BYTES: Final = 1 << 20
TOLD: Final = frozenset({"NOT_FOUND", "AMBIGUOUS_DUPLICATE_KEY"})
"""Which of a program's own words about a fault are passed on: others may hold what must not be shown."""


class References:
    """Fetches the references of one configuration, each once.

    `former` is what was fetched before; `stale` names what of that is served again since it cannot be fetched now.
    Not `deep`: programs are asked for the gateway's own secrets only.
    """

    def __init__(
        self, paths: Paths, env: Environment, tree: Any, *, former: Kept | None = None, deep: bool = True
    ) -> None:
        self._paths, self._env, self._former = paths, env, former or {}
        section = tree.get("secrets") if isinstance(tree, dict) else None
        section = section if isinstance(section, dict) else {}
        self._providers, self._defaults = _object(section.get("providers")), _object(section.get("defaults"))
        self.store = Store(paths.secrets)
        self._entries: dict[str, Entry] | None = None
        self._answers: dict[str, Any] = {}
        self._wanted: dict[str, list[str]] = {}
        for at, value in listed(tree):
            if value["source"] == "exec" and (deep or at[:1] == ("gateway",)):
                ids = self._wanted.setdefault(self._alias("exec", str(value.get("provider") or "")), [])
                ids.extend([value["id"]] if value["id"] not in ids else ())
        self.found: dict[str, Secret] = {}
        self.stale: list[str] = []

    def look(self, source: str, provider: str, name: str) -> str:
        """The secret. Raises NotFound with a line."""
        alias = self._alias(source, provider)
        key = self._key(source, alias, name)
        if key not in self.found:
            try:
                self.found[key] = Secret(self._fetched(source, alias, name))
            except GarraError as fault:
                if key not in self._former:
                    raise NotFound(f"{source}:{alias}:{name}: {fault.message}") from None
                self.found[key] = self._former[key]
                self.stale.append(f"{source}:{alias}:{name}: {fault.message}; the value fetched before serves on")
        return self.found[key].reveal()

    def secrets(self) -> dict[str, Secret]:
        """All that was fetched, and all that the store's file holds: what must never be shown."""
        try:
            stored = self._stored()
        except GarraError:
            stored = {}
        own = {f"store {name}": entry.value for name, entry in stored.items() if entry.kind == "secret" and entry.value}
        return own | self.found

    def bound(self) -> tuple[Bound, ...]:
        """The secrets of the store that may go to named hosts only."""
        try:
            stored = self._stored()
        except GarraError:
            return ()
        values = {name: self.found.get(self._key("store", alias, name)) for alias in self._stores() for name in stored}
        return tuple(
            Bound(name, secret, entry.hosts)
            for name, entry in stored.items()
            if entry.hosts and (secret := entry.value or values.get(name))
        )

    def _stores(self) -> list[str]:
        own = [alias for alias, each in self._providers.items() if _object(each).get("source") == "store"]
        return [self._alias("store", ""), *own]

    def _key(self, source: str, alias: str, name: str) -> str:
        return json.dumps([source, alias, name, self._providers.get(alias)], sort_keys=True)

    def _stored(self) -> dict[str, Entry]:
        if self._entries is None:
            self._entries = self.store.entries()
        return self._entries

    def _alias(self, source: str, provider: str) -> str:
        return provider or str(self._defaults.get(source) or "default")

    def _provider(self, source: str, alias: str) -> dict[str, Any]:
        """The provider's own settings. Raises NotFound where it must be declared and is not."""
        if not PROVIDER.fullmatch(alias):
            raise NotFound(f'"{alias}" is no name of a provider')
        found = self._providers.get(alias)
        if isinstance(found, dict) and found.get("source") == source:
            return found
        if source in ("env", "store") and alias == str(self._defaults.get(source) or "default"):
            return {}
        raise NotFound(f'declare it: secrets.providers.{alias} with source "{source}"')

    def _fetched(self, source: str, alias: str, name: str) -> str:
        provider = self._provider(source, alias)
        if source == "exec":
            text = self._run(alias, provider, name)
        elif source == "file":
            text = self._from_file(provider, name)
        elif not NAME.fullmatch(name):
            raise NotFound("its id must be capital letters, digits and _")
        elif source == "store":
            text = self.store.get(name, self._stored())
        else:
            text = self._variable(provider, name)
        if not text.strip():
            raise NotFound("it is empty there")
        return text

    def _variable(self, provider: Mapping[str, Any], name: str) -> str:
        allowed = provider.get("allowlist")
        if isinstance(allowed, list) and name not in allowed:
            raise NotFound(f"the provider's allowlist does not name {name}")
        if not self._env.get(name):
            raise NotFound(f'Missing env var "{name}"')
        return self._env[name]

    def _from_file(self, provider: Mapping[str, Any], name: str) -> str:
        path = self._paths.expand(str(provider.get("path") or ""))
        _check_file(path)
        text = atomic.read(path, _number(provider.get("maxBytes"), BYTES))
        if provider.get("mode") == "singleValue":
            return text.rstrip("\r\n")
        try:
            value = include.decode(text)
        except include.Unreadable:
            raise NotFound(f"{path} is no JSON") from None
        for part in name.split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")
            value = value.get(key) if isinstance(value, dict) else None
        if not isinstance(value, str):
            raise NotFound(f"{path} has no text at {name}")
        return value

    def _run(self, alias: str, provider: Mapping[str, Any], name: str) -> str:
        if name not in (wanted := self._wanted.get(alias, [])):
            raise NotFound("no program is asked for it here")
        if not all(EXEC_ID.fullmatch(each) for each in wanted):
            raise NotFound("its id must be letters, digits and ._:/#-, without . or .. between slashes")
        if alias not in self._answers:
            try:
                self._answers[alias] = _asked(_Caller(alias, self._env, str(self._paths.home)), provider, wanted)
            except GarraError as fault:
                self._answers[alias] = fault
        answer = self._answers[alias]
        if isinstance(answer, GarraError):
            raise answer
        value = answer.get(name)
        if not isinstance(value, str):
            code = value.get("code") if isinstance(value, dict) else None
            raise NotFound(f"the program does not give it{f' ({code})' if code in TOLD else ''}")
        return value


@frozen
class _Caller:
    """What a program that gives secrets is started with, as far as it is not its own settings."""

    alias: str
    env: Environment
    home: str


def _asked(caller: _Caller, provider: Mapping[str, Any], wanted: list[str]) -> dict[str, Any]:
    """What a program answers: texts by id, faults as objects. Raises Unavailable. What it prints is never quoted."""
    command = str(provider.get("command") or "")
    check_program(command, provider.get("trustedDirs"))
    door = importlib.import_module("garra.io.process.door")
    passed = {name: caller.env[name] for name in _texts(provider.get("passEnv")) if name in caller.env}
    built = {**passed, **{key: str(value) for key, value in _object(provider.get("env")).items()}}
    start = door.Start((command, *_texts(provider.get("args"))), caller.home, built, stdin=True, stderr="drop")
    given = json.dumps({"protocolVersion": 1, "provider": caller.alias, "ids": wanted}).encode()
    seconds = _number(provider.get("timeoutMs"), TIMEOUT_MS) / 1000
    room = _number(provider.get("maxOutputBytes"), BYTES)
    ended = importlib.import_module("garra.io.process.short").once(start, given=given, timeout_s=seconds, limit=room)
    if ended.code is None:
        raise Unavailable(f"{command} did not answer within {seconds:g} s", retryable=True)
    if ended.code != 0 or ended.truncated:
        why = f"printed more than {room} bytes" if ended.truncated else f"ended with {ended.code}"
        raise Unavailable(f"{command} {why}", retryable=True)
    return _answer(command, ended.output, wanted, plain=provider.get("jsonOnly") is False)


def _answer(command: str, output: bytes, wanted: list[str], *, plain: bool) -> dict[str, Any]:
    text = output.decode("utf-8", "replace")
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if isinstance(found, dict) and found.get("protocolVersion") == 1:
        return {**_object(found.get("errors")), **_object(found.get("values"))}
    if plain and len(wanted) == 1:
        return {wanted[0]: text.rstrip("\r\n")}
    hint = "; for one plain value set jsonOnly to false" if not plain else "; a plain answer can be for one id only"
    raise Unavailable(f"{command} does not answer as a provider of secrets does{hint}")


def check_program(command: str, trusted: Any = None) -> None:
    """Raises Unavailable unless only its owner, which is us or root, can change the program."""
    path = FilePath(command)
    if not path.is_absolute():
        raise Unavailable("its command must be an absolute path")
    try:
        found = path.lstat()
    except OSError as fault:
        raise Unavailable(f"{command}: {fault.strerror}") from None
    if not stat.S_ISREG(found.st_mode):
        raise Unavailable(f"{command} is no plain file: give the path that it leads to")
    if found.st_mode & 0o022 or found.st_uid not in (0, os.getuid()):
        raise Unavailable(f"{command} can be changed by others: chmod go-w it, or choose another")
    folders = [FilePath(text) for text in _texts(trusted)]
    if folders and not any(path.is_relative_to(folder) for folder in folders):
        raise Unavailable(f"{command} is in none of the provider's trustedDirs")


def _check_file(path: FilePath) -> None:
    """Raises Unavailable unless it is ours alone."""
    try:
        found = path.lstat()
    except OSError as fault:
        raise Unavailable(f"{path}: {fault.strerror}") from None
    if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
        raise Unavailable(f"{path} must be a plain file with one name")
    if found.st_mode & 0o077 or found.st_uid not in (0, os.getuid()):
        raise Unavailable(f"{path} can be read by others: chmod 600 it")


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _texts(value: Any) -> list[str]:
    return [str(each) for each in value] if isinstance(value, list) else []


def _number(value: Any, usual: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else usual
