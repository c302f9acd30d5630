"""Which accounts a channel has, from its part of the configuration and the schema in its manifest. Pure.

In the schema, `secret` marks a credential: it becomes a `Secret`, and accounts do not inherit it. `env` names the
variable the default account reads it from, `file` the key of a file that holds it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from garra.core.errors import UserError
from garra.core.schema import faults
from garra.core.secret import Secret
from garra.sdk.channel import Account

DEFAULT = "default"
HOST_KEYS = frozenset(
    {
        "ackReaction", "allowFrom", "contextVisibility", "defaultTo", "direct", "dmHistoryLimit", "dmPolicy", "dms",
        "errorPolicy", "groupAllowFrom", "groupPolicy", "groups", "heartbeatVisibility", "historyLimit", "joinIntro",
        "mentionPatterns", "name", "replyToMode", "responsePrefix", "streaming",
    }
)  # fmt: skip
"""What the host reads itself, message by message: changing it needs no new link."""


class LinkKey(NamedTuple):
    """An account of a channel."""

    channel: str
    account: str

    def __str__(self) -> str:
        return f"{self.channel}/{self.account}"


@dataclass(frozen=True, slots=True)
class Setup:
    """One account as configured. `fault` says in one line why it cannot be started; `enabled`: the owner wants it.

    `configured`: it has its credentials. `sources` says where each came from: config, env or file. `label` is what
    people call the channel, `name` what the owner calls the account.
    """

    channel: str
    account: Account
    enabled: bool = True
    configured: bool = True
    fault: str = ""
    name: str = ""
    label: str = ""
    sources: Mapping[str, str] = field(default_factory=dict)

    @property
    def transport(self) -> tuple[Any, ...]:
        """What the link depends on."""
        own = {key: value for key, value in self.account.settings.items() if key not in HOST_KEYS}
        return self.key, own, self.enabled, self.configured, self.fault

    @property
    def key(self) -> LinkKey:
        return LinkKey(self.channel, self.account.id)


@dataclass(frozen=True, slots=True)
class Outside:
    """Where credentials come from besides the configuration; `read` gives a file's text or raises UserError."""

    env: Mapping[str, str] = field(default_factory=dict)
    read: Callable[[str], str] = lambda _: ""


def setups(channel: str, section: Mapping[str, Any], schema: Mapping[str, Any], outside: Outside) -> list[Setup]:
    """The accounts of a channel whose part of the resolved configuration is `section`."""
    marked = {key: part for key, part in (schema.get("properties") or {}).items() if part.get("secret")}
    found = [_setup(channel, name, section, schema, _Marked(marked, outside)) for name in names(section, marked)]
    return [_unshared(setup, found[:at], marked) for at, setup in enumerate(found)]


def names(section: Mapping[str, Any], marked: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The accounts' names. The channel's own keys are an account too when they hold a credential, or alone."""
    listed = [str(name) for name in section.get("accounts") or {}]
    own = any(section.get(key) or section.get(part.get("file", "")) for key, part in marked.items())
    return listed if listed and (not own or DEFAULT in listed) else [DEFAULT, *listed]


@dataclass(frozen=True, slots=True)
class _Marked:
    """The credentials of a channel, and where they may come from."""

    keys: Mapping[str, Mapping[str, Any]]
    outside: Outside

    def inherited(self) -> set[str]:
        """The keys an account has from nobody but itself."""
        return {
            "accounts",
            "defaultAccount",
            "name",
            *self.keys,
            *(part.get("file", "") for part in self.keys.values()),
        }

    def text(self, key: str, settings: Mapping[str, Any], name: str) -> tuple[str, str]:
        """A credential and where it came from. Raises UserError for a file that cannot be read."""
        part = self.keys[key]
        value = settings.get(key)
        if isinstance(value, Secret) and value:
            return value.reveal(), "config"
        if isinstance(value, str) and value.strip():
            return value.strip(), "config"
        if file := settings.get(part.get("file", "")):
            return self.outside.read(str(file)).strip(), "file"
        found = self.outside.env.get(str(part.get("env"))) if name == DEFAULT else None
        return (found.strip(), "env") if found else ("", "none")


def _setup(channel: str, name: str, section: Mapping[str, Any], schema: Mapping[str, Any], marked: _Marked) -> Setup:
    own = (section.get("accounts") or {}).get(name) or {}
    alone = {key: value for key, value in section.items() if key not in marked.inherited()}
    base = {key: value for key, value in section.items() if key != "accounts"} if name == DEFAULT else alone
    settings = {**base, **own}
    enabled = section.get("enabled") is not False and own.get("enabled") is not False
    fault, sources = _schema_fault(channel, name, settings, schema), {}
    for key in marked.keys:
        try:
            text, sources[key] = marked.text(key, settings, name)
            settings[key] = Secret(text)
        except UserError as error:
            fault, sources[key], settings[key] = error.message, "file", Secret("")
    configured = not marked.keys or any(sources[key] != "none" for key in marked.keys)
    shown = str(own.get("name") or (section.get("name") if name == DEFAULT else "") or "")
    return Setup(channel, Account(name, settings), enabled, configured, fault, shown, sources=sources)


def _schema_fault(channel: str, name: str, settings: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    plain = {key: value for key, value in settings.items() if not isinstance(value, Secret)}
    found: Sequence[str] = faults(schema, plain) if schema else ()
    place = f"channels.{channel}" if name == DEFAULT else f"channels.{channel}.accounts.{name}"
    return f"{place}.{found[0]}" if found else ""


def _unshared(setup: Setup, before: Iterable[Setup], marked: Mapping[str, Any]) -> Setup:
    """Two links with one credential would take each other's messages: the later one is not started."""
    for other in before:
        for key in marked:
            mine, theirs = setup.account.settings[key], other.account.settings[key]
            if mine and mine == theirs and other.enabled and setup.enabled and not setup.fault:
                line = f"it has the same {key} as the account {other.account.id}; each account needs its own"
                return replace(setup, fault=line)
    return setup
