"""Which accounts a channel has, from its part of the configuration and the schema in its manifest. Pure.

In the schema, `secret` marks a credential: it becomes a `Secret`, and accounts do not inherit it; `file` is the key
beside it of a file that holds it. It may stand one object deep (`nickserv.password`). `optional`: an account is
configured without it. `unique`: no two accounts may have the same one, since each would take the other's messages.
`needed` marks a plain key that no account is without. `env` names the variable from which the default account reads a
key, credential or not. `pattern` is the form of a plain key's whole text. `logins`, beside `properties`, lists sets of
keys of which an account has one. `advised` says what an account does without if it lacks the key; `public` names the
switch without which an address in the owner's own network is not called.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from ipaddress import ip_address
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from garra.core.addresses import public
from garra.core.errors import UserError
from garra.core.schema import faults
from garra.core.secret import Secret
from garra.core.value import frozen
from garra.sdk.channel import Account

DEFAULT = "default"
WEBCHAT = "webchat"
"""The gateway's own chat: a channel without a platform, a credential or a configuration."""
HOST_KEYS = frozenset(
    {
        "ackReaction", "allowFrom", "contextVisibility", "defaultTo", "direct", "dmHistoryLimit", "dmPolicy", "dms",
        "errorPolicy", "groupAllowFrom", "groupPolicy", "groups", "guilds", "heartbeatVisibility", "historyLimit",
        "joinIntro",
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

    `configured`: it has its credentials. `missing` are the keys it cannot do without. `sources` says where each
    credential came from: config, env or file. `label` is what people call the channel, `name` what the owner calls the
    account.
    """

    channel: str
    account: Account
    enabled: bool = True
    configured: bool = True
    fault: str = ""
    name: str = ""
    label: str = ""
    sources: Mapping[str, str] = field(default_factory=dict)
    missing: tuple[str, ...] = ()

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


def parts(schema: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every key that a schema names, by path: `nick`, `nickserv`, `nickserv.password`."""
    for key, part in (schema.get("properties") or {}).items():
        yield key, part
        for inner, below in (part.get("properties") or {}).items():
            yield f"{key}.{inner}", below


def credentials(schema: Mapping[str, Any]) -> list[str]:
    """The keys that hold credentials or name files that do, by path."""
    marked = [(key, part) for key, part in parts(schema) if part.get("secret")]
    return [key for key, _ in marked] + [_beside(key, part["file"]) for key, part in marked if part.get("file")]


def bare(schema: Mapping[str, Any]) -> bool:
    """An account of this channel needs no credential: it is one when it has the keys marked `needed`."""
    marked = [part for _, part in parts(schema) if part.get("secret")]
    return bool(marked) and all(part.get("optional") and not part.get("unique") for part in marked)


def misshapen(schema: Mapping[str, Any], settings: Mapping[str, Any]) -> list[str]:
    """Plain keys whose text has not the form it must have, each a line `key: what is wrong`."""
    found = []
    for key, part in parts(schema):
        text = _get(settings, key)
        if not isinstance(text, str) or part.get("secret"):
            continue
        if not re.fullmatch(part.get("pattern", ".*"), text.strip(), re.DOTALL):
            found.append(f"{key}: is to be {part.get('description') or 'of another form'}; got {text[:80]!r}")
    return found


def advice(
    schema: Mapping[str, Any], settings: Mapping[str, Any], resolve: Callable[[str], Sequence[str]] = lambda _: ()
) -> list[str]:
    """What an account that can start will not do as it is set, each a line for its owner. `resolve` gives the addresses
    of a name, none where it cannot tell.
    """
    found = []
    for key, part in parts(schema):
        value, switch = _get(settings, key), part.get("public")
        if part.get("advised") and not value:
            found.append(f"it has no {key}: {part['advised']}")
        elif switch and isinstance(value, str) and _get(settings, switch) is not True and _own_network(value, resolve):
            found.append(f"its {key} lies in your own network, which is called only with {switch}=true")
    if settings.get("dmPolicy") == "open" and "*" not in map(str, settings.get("allowFrom") or ()):
        found.append('dmPolicy is open, but without "*" in allowFrom only those listed there may write')
    return found


def _own_network(url: str, resolve: Callable[[str], Sequence[str]]) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return not public(str(ip_address(host)))
    except ValueError:
        near = host == "localhost" or host.endswith((".localhost", ".local"))
        return near or any(not public(address) for address in resolve(host))


@frozen
class _Reading:
    """One channel's part of the configuration, being read."""

    channel: str
    section: Mapping[str, Any]
    schema: Mapping[str, Any]
    outside: Outside

    @property
    def marked(self) -> dict[str, Mapping[str, Any]]:
        """The credentials among its keys, by path."""
        return {key: part for key, part in parts(self.schema) if part.get("secret")}

    @property
    def needed(self) -> list[str]:
        """The credentials that make an account: those no two may share, else all it cannot do without."""
        marked = self.marked.items()
        unique = [key for key, part in marked if part.get("unique")]
        return unique or [key for key, part in marked if not part.get("optional")]

    @property
    def required(self) -> list[str]:
        return [key for key, part in parts(self.schema) if part.get("needed")]

    def names(self) -> list[str]:
        """The accounts' names. The channel's own keys are an account too when they hold a credential, or alone."""
        listed = [str(name) for name in self.section.get("accounts") or {}]
        own = any(_get(self.section, key) for key in credentials(self.schema))
        if bare(self.schema):
            own = all(self.section.get(key) for key in self.required)
        return listed if listed and (not own or DEFAULT in listed) else [DEFAULT, *listed]

    def one(self, name: str) -> Setup:
        own = (self.section.get("accounts") or {}).get(name) or {}
        settings = self._outer(name) | _merged(self._base(name), own, self.objects)
        enabled = self.section.get("enabled") is not False and own.get("enabled") is not False
        fault, sources = self._misfit(name, settings), {}
        for key in self.marked:
            try:
                text, sources[key] = self._credential(key, settings, name)
            except UserError as error:
                text, sources[key], fault = "", "file", f"its {key} cannot be read: {error.message}"
            if "." not in key or text:
                _put(settings, key, Secret(text))
        missing = [key for key in self.needed if sources[key] == "none"]
        configured = not self.needed or len(missing) < len(self.needed)
        if configured and missing and not fault:
            about = self.marked[missing[0]].get("description", "a credential")
            fault = f"its {missing[0]} is missing: {about}"
        missing += [key for key in self.required if not _get(settings, key)]
        shown = str(own.get("name") or (self.section.get("name") if name == DEFAULT else "") or "")
        return Setup(
            self.channel,
            Account(name, settings),
            enabled,
            configured,
            fault or self._loginless(settings),
            shown,
            sources=sources,
            missing=tuple(missing),
        )

    def _loginless(self, settings: Mapping[str, Any]) -> str:
        ways = self.schema.get("logins") or ()
        if not ways or any(all(_get(settings, key) for key in way) for way in ways):
            return ""
        return f"no login: set {', or '.join(' and '.join(way) for way in ways)}"

    @property
    def objects(self) -> set[str]:
        """The keys that have credentials inside."""
        return {key.partition(".")[0] for key in self.marked if "." in key}

    def _base(self, name: str) -> dict[str, Any]:
        """What an account has from its channel: all but credentials; the default account has those too."""
        kept = {key: value for key, value in self.section.items() if key != "accounts"}
        if name == DEFAULT:
            return kept
        for path in ("defaultAccount", "name", *credentials(self.schema)):
            kept = _without(kept, path)
        return kept

    def _outer(self, name: str) -> dict[str, Any]:
        """What the default account has from the environment, where the configuration does not say it."""
        found = {}
        for key, part in parts(self.schema) if name == DEFAULT else ():
            text = self.outside.env.get(str(part.get("env")), "").strip()
            if text and "." not in key and not part.get("secret"):
                found[key] = _typed(str(part.get("type")), text)
        return found

    def _credential(self, key: str, settings: Mapping[str, Any], name: str) -> tuple[str, str]:
        """A credential and where it came from. Raises UserError for a file that cannot be read."""
        part = self.marked[key]
        value = _get(settings, key)
        if isinstance(value, Secret) and value:
            return value.reveal(), "config"
        if isinstance(value, str) and value.strip():
            return value.strip(), "config"
        if file := _get(settings, _beside(key, part.get("file", ""))):
            return self.outside.read(str(file)).strip(), "file"
        found = self.outside.env.get(str(part.get("env"))) if name == DEFAULT else None
        return (found.strip(), "env") if found else ("", "none")

    def _misfit(self, name: str, settings: Mapping[str, Any]) -> str:
        """What does not fit the schema, with its place."""
        plain = {key: _plain(value) for key, value in settings.items() if not isinstance(value, Secret)}
        found = faults(self.schema, plain) if self.schema else []
        found += [f"{key}: is required" for key in self.required if not _get(settings, key)]
        found += misshapen(self.schema, settings)
        place = f"channels.{self.channel}" + ("" if name == DEFAULT else f".accounts.{name}")
        return f"{place}.{found[0]}" if found else ""

    def unshared(self, setup: Setup, before: Iterable[Setup]) -> Setup:
        """Two links with one credential would take each other's messages: the later one is not started."""
        unique = [key for key, part in self.marked.items() if part.get("unique")]
        for other in before:
            for key in unique:
                own = _get(setup.account.settings, key)
                same = own and own == _get(other.account.settings, key)
                if same and other.enabled and setup.enabled and not setup.fault:
                    line = f"it has the same {key} as the account {other.account.id}; each account needs its own"
                    return replace(setup, fault=line)
        return setup


def _typed(kind: str, text: str) -> Any:
    """A variable's text as the schema wants it; what does not fit stays text, and the schema's check tells of it."""
    match kind:
        case "integer" if text.isdecimal():
            return int(text)
        case "boolean" if text.lower() in {"true", "false", "1", "0"}:
            return text.lower() in {"true", "1"}
        case "array":
            return [word.strip() for word in text.split(",") if word.strip()]
        case _:
            return text


def _beside(path: str, key: str) -> str:
    """A key in the object that `path` lies in."""
    head, dot, _ = path.rpartition(".")
    return head + dot + key


def _get(settings: Mapping[str, Any], path: str) -> Any:
    found: Any = settings
    for key in path.split("."):
        found = found.get(key) if isinstance(found, Mapping) else None
    return found


def _put(settings: dict[str, Any], path: str, value: Any) -> None:
    """Set it; the object it lies in is made anew, since it may be the configuration's own."""
    head, dot, key = path.partition(".")
    if not dot:
        settings[head] = value
        return
    inner = settings.get(head)
    settings[head] = {**(inner if isinstance(inner, Mapping) else {}), key: value}


def _without(settings: Mapping[str, Any], path: str) -> dict[str, Any]:
    head, dot, key = path.partition(".")
    kept = {name: value for name, value in settings.items() if name != head}
    inner = settings.get(head)
    if dot and isinstance(inner, Mapping):
        kept[head] = {name: value for name, value in inner.items() if name != key}
    return kept


def _merged(base: Mapping[str, Any], own: Mapping[str, Any], objects: Iterable[str]) -> dict[str, Any]:
    """An account's keys over its channel's; an object with a credential inside is merged, any other replaced."""
    found = {**base, **own}
    for key in objects:
        if isinstance(base.get(key), Mapping) and isinstance(own.get(key), Mapping):
            found[key] = {**base[key], **own[key]}
    return found


def _plain(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    return {key: inner for key, inner in value.items() if not isinstance(inner, Secret)}
