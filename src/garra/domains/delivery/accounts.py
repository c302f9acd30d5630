"""Which accounts a channel has, from its part of the configuration and the schema in its manifest. Pure.

In the schema, `secret` marks a credential: it becomes a `Secret`, and accounts do not inherit it. `env` names the
variable the default account reads it from, `file` the key of a file that holds it. `unique`: no two accounts may have
the same one, since each would take the other's messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from typing import Any, NamedTuple

from garra.core.errors import UserError
from garra.core.schema import faults
from garra.core.secret import Secret
from garra.core.value import frozen
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


@frozen
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


@frozen
class Outside:
    """Where credentials come from besides the configuration; `read` gives a file's text or raises UserError."""

    env: Mapping[str, str] = field(default_factory=dict)
    read: Callable[[str], str] = lambda _: ""


def setups(channel: str, section: Mapping[str, Any], schema: Mapping[str, Any], outside: Outside) -> list[Setup]:
    """The accounts of a channel whose part of the configuration is `section`."""
    reading = _Reading(channel, section, schema, outside)
    found = [reading.one(name) for name in reading.names()]
    return [reading.unshared(setup, found[:at]) for at, setup in enumerate(found)]


@frozen
class _Reading:
    """One channel's part of the configuration, being read."""

    channel: str
    section: Mapping[str, Any]
    schema: Mapping[str, Any]
    outside: Outside

    @property
    def marked(self) -> dict[str, Mapping[str, Any]]:
        """The credentials among its keys."""
        return {key: part for key, part in (self.schema.get("properties") or {}).items() if part.get("secret")}

    @property
    def needed(self) -> list[str]:
        """The credentials that make an account: those no two may share, else all."""
        return [key for key, part in self.marked.items() if part.get("unique")] or list(self.marked)

    def names(self) -> list[str]:
        """The accounts' names. The channel's own keys are an account too when they hold a credential, or alone."""
        listed = [str(name) for name in self.section.get("accounts") or {}]
        files = [part.get("file", "") for part in self.marked.values()]
        own = any(self.section.get(key) for key in (*self.marked, *files))
        return listed if listed and (not own or DEFAULT in listed) else [DEFAULT, *listed]

    def one(self, name: str) -> Setup:
        own = (self.section.get("accounts") or {}).get(name) or {}
        settings = {**self._base(name), **own}
        enabled = self.section.get("enabled") is not False and own.get("enabled") is not False
        fault, sources = self._misfit(name, settings), {}
        for key in self.marked:
            try:
                text, sources[key] = self._credential(key, settings, name)
            except UserError as error:
                text, sources[key], fault = "", "file", error.message
            settings[key] = Secret(text)
        configured = not self.marked or any(sources[key] != "none" for key in self.needed)
        shown = str(own.get("name") or (self.section.get("name") if name == DEFAULT else "") or "")
        return Setup(self.channel, Account(name, settings), enabled, configured, fault, shown, sources=sources)

    def _base(self, name: str) -> dict[str, Any]:
        """What an account has from its channel: all but credentials; the default account has those too."""
        kept = {"accounts"}
        if name != DEFAULT:
            kept |= {"defaultAccount", "name", *self.marked, *(part.get("file", "") for part in self.marked.values())}
        return {key: value for key, value in self.section.items() if key not in kept}

    def _credential(self, key: str, settings: Mapping[str, Any], name: str) -> tuple[str, str]:
        """A credential and where it came from. Raises UserError for a file that cannot be read."""
        part = self.marked[key]
        value = settings.get(key)
        if isinstance(value, Secret) and value:
            return value.reveal(), "config"
        if isinstance(value, str) and value.strip():
            return value.strip(), "config"
        if file := settings.get(part.get("file", "")):
            return self.outside.read(str(file)).strip(), "file"
        found = self.outside.env.get(str(part.get("env"))) if name == DEFAULT else None
        return (found.strip(), "env") if found else ("", "none")

    def _misfit(self, name: str, settings: Mapping[str, Any]) -> str:
        """What does not fit the schema, with its place."""
        plain = {key: value for key, value in settings.items() if not isinstance(value, Secret)}
        found = faults(self.schema, plain) if self.schema else []
        place = f"channels.{self.channel}" + ("" if name == DEFAULT else f".accounts.{name}")
        return f"{place}.{found[0]}" if found else ""

    def unshared(self, setup: Setup, before: Iterable[Setup]) -> Setup:
        """Two links with one credential would take each other's messages: the later one is not started."""
        unique = [key for key, part in self.marked.items() if part.get("unique")]
        for other in before:
            for key in unique:
                same = setup.account.settings[key] and setup.account.settings[key] == other.account.settings[key]
                if same and other.enabled and setup.enabled and not setup.fault:
                    line = f"it has the same {key} as the account {other.account.id}; each account needs its own"
                    return replace(setup, fault=line)
        return setup
