"""To which chats a question is carried besides the one it came from, as the owner wrote it down.

`approvals.exec` and `approvals.plugin` name chats for commands and for tools; `channels.<id>.execApprovals` says how
questions are asked in an account's own chats. What cannot be read is closed: it carries nothing anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

from garra.core.patterns import later
from garra.core.value import frozen

Mode = Literal["session", "targets", "both"]
Where = Literal["", "dm", "channel", "both"]

_MODES: Final[Mapping[Any, Mode]] = {None: "session", "session": "session", "targets": "targets", "both": "both"}
_WHERES: Final[Mapping[Any, Where]] = {None: "", "dm": "dm", "channel": "channel", "both": "both"}
LONGEST_KEY, LONGEST_PATTERN = 512, 200
"""Characters of a session's key that patterns look at, and of a pattern that is read as one."""
MOST_TARGETS: Final = 20
_REPEATED = later(r"\)\s*[*+?{]|\\\d|\(\?")
_OPEN_END = later(r"(?<!\\)(?:[*+]|\{\d*,\d*\})")


@frozen
class Filter:
    """Whose questions are meant: of these agents, in sessions whose keys hold one of these. None: of all."""

    agents: tuple[str, ...] | None = None
    sessions: tuple[str, ...] | None = None

    def takes(self, agent_id: str, session_key: str) -> bool:
        if self.agents is not None and agent_id not in self.agents:
            return False
        return self.sessions is None or any(_found(each, session_key[:LONGEST_KEY]) for each in self.sessions)


ALL: Final = Filter()


@frozen
class Target:
    """A chat that the owner named: `to` is its id, or `user:` and a person's. Without `account` the channel's usual."""

    channel: str
    to: str
    account: str = ""
    thread: str = ""


@frozen
class Forward:
    """`approvals.exec` or `approvals.plugin`. `session`: to the chat of the session; `targets`: where they say."""

    session: bool = False
    targets: tuple[Target, ...] = ()
    filter: Filter = ALL


@frozen
class Native:
    """`execApprovals` of one account: whether it asks in its chats, about whose questions, and where: the chat that it
    came from, its approvers' own chats, or both. `where` empty: as is usual.
    """

    enabled: bool = True
    where: Where = ""
    filter: Filter = ALL


def forward(raw: Any) -> Forward:
    """What the file says; nothing is forwarded unless `enabled` is true."""
    if not isinstance(raw, Mapping) or raw.get("enabled") is not True or next(faults(raw), ""):
        return Forward()
    mode = _MODES[raw.get("mode")]
    named = tuple(_target(each) for each in raw.get("targets") or ()) if mode != "session" else ()
    return Forward(mode != "targets", tuple(dict.fromkeys(named)), _filter(raw))


def native(raw: Any) -> Native:
    """What the file says; it asks unless `enabled` is false, or something else cannot be read."""
    if raw is None:
        return Native()
    if not isinstance(raw, Mapping) or next(native_faults(raw), ""):
        return Native(enabled=False)
    return Native(raw.get("enabled") is not False, _WHERES[raw.get("target")], _filter(raw))


def faults(raw: Any) -> Iterator[str]:
    """What is wrong with `approvals.exec` or `approvals.plugin`, a line each."""
    if not isinstance(raw, Mapping):
        yield 'it should be an object, such as {enabled: true, mode: "targets", targets: […]}'
        return
    if not isinstance(raw.get("enabled", False), bool):
        yield "enabled: true or false"
    yield from _listed(raw)
    mode, targets = raw.get("mode"), raw.get("targets")
    if not isinstance(mode, str | None) or mode not in _MODES:
        yield f"mode: {mode!r} is none of session, targets, both"
    if targets is not None and (not isinstance(targets, list | tuple) or len(targets) > MOST_TARGETS):
        yield f"targets: a list of at most {MOST_TARGETS}, each {{channel, to}}"
        return
    for at, each in enumerate(targets or ()):
        if not isinstance(each, Mapping) or not _word(each.get("channel")) or not _word(each.get("to")):
            yield f'targets[{at}]: it needs channel and to, such as {{channel: "telegram", to: "123456789"}}'
        elif not all(_word(each.get(key, "x")) for key in ("accountId", "threadId")):
            yield f"targets[{at}]: accountId and threadId are ids"


def native_faults(raw: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with `execApprovals`, a line each."""
    enabled, where = raw.get("enabled"), raw.get("target")
    if not (isinstance(enabled, bool | None) or enabled == "auto"):
        yield 'enabled: true, false or "auto"'
    if not isinstance(where, str | None) or where not in _WHERES:
        yield f"target: {where!r} is none of dm, channel, both"
    yield from _listed(raw)


def _listed(raw: Mapping[str, Any]) -> Iterator[str]:
    for key in ("agentFilter", "sessionFilter"):
        found = raw.get(key)
        if found is not None and not (isinstance(found, list | tuple) and all(isinstance(each, str) for each in found)):
            yield f"{key}: a list of texts"


def _word(value: Any) -> bool:
    """Whether it is an id: a text, or a number that platforms have."""
    return (isinstance(value, str) and bool(value.strip())) or (isinstance(value, int) and not isinstance(value, bool))


def _target(raw: Mapping[str, Any]) -> Target:
    texts = (str(raw.get(key, "")).strip() for key in ("channel", "to", "accountId", "threadId"))
    channel, to, account, thread = texts
    return Target(channel.lower(), to, account, thread)


def _filter(raw: Mapping[str, Any]) -> Filter:
    agents, sessions = raw.get("agentFilter"), raw.get("sessionFilter")
    return Filter(None if agents is None else tuple(agents), None if sessions is None else tuple(sessions))


def _found(part: str, key: str) -> bool:
    """Whether a key holds this text, or a match of it where it can be read as a pattern of bounded work."""
    if part in key:
        return bool(part)
    if len(part) > LONGEST_PATTERN or _REPEATED.search(part) or len(_OPEN_END.findall(part)) > 2:
        return False
    try:
        return re.search(part, key) is not None
    except (re.error, OverflowError, RecursionError):
        return False


def person(to: str) -> str:
    """The person's id of a target that names one by `user:` or `dm:`; empty for others."""
    kind, sign, rest = to.partition(":")
    return rest.strip() if sign and kind in ("user", "dm") else ""


def room(to: str) -> str:
    """The id of a target that names a group by `channel:`, `group:` or `room:`; empty for others."""
    kind, sign, rest = to.partition(":")
    return rest.strip() if sign and kind in ("channel", "group", "room") else ""
