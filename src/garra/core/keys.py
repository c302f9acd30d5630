"""Where a conversation lives: the grammar of session keys.

    agent:<id>:main                                           the agent's own conversation
    agent:<id>:direct:<peer>                                  one person, on whichever channel
    agent:<id>:<channel>:direct:<peer>
    agent:<id>:<channel>:<account>:direct:<peer>
    agent:<id>:<channel>:group:<group>[:topic:<topic>]
    agent:<id>:<channel>:channel:<room>[:thread:<thread>]
    agent:<id>:subagent:<uuid>   agent:<id>:acp:<uuid>   agent:<id>:dashboard:<uuid>
    agent:<id>:<name>                                         whatever a client called it
    cron:<job>   hook:<uuid>                                  no agent of their own

Agent, channel and account are lower case, and so is a client's own name; ids of people, groups and threads keep their
case, because on some platforms two people differ by nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from garra.core.errors import UserError
from garra.core.ids import AgentId, SessionId, SessionKey
from garra.core.patterns import later
from garra.core.value import frozen

Scope = Literal["main", "per-peer", "per-channel-peer", "per-account-channel-peer"]
"""`session.dmScope`: how far apart the direct messages of different people are kept."""

Kind = Literal["main", "direct", "group", "channel", "subagent", "acp", "dashboard", "cron", "hook", "named"]

SESSION_ID = r"^[a-z0-9][a-z0-9._-]{0,127}\Z"
"""What a session id may look like; it becomes a file name."""

LONGEST = 512
"""Characters of a session key at most."""

_SESSION_ID = later(SESSION_ID)
_AGENT_ID = later(r"[a-z0-9][a-z0-9_-]{0,63}\Z")
_CONTROL = later(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_UNSAFE = later(r"[%\x00-\x20\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_SUFFIX = later(r":(?=(?:topic|thread):)", re.IGNORECASE)
_THREAD = later(r"(.+):(topic|thread):(.+)", re.DOTALL)
_OWNERLESS = ("cron", "hook")
_SINGLE = ("subagent", "acp", "dashboard", "cron", "hook")
_PEERS = ("direct", "group", "channel")
_RESERVED = frozenset((*_SINGLE, *_PEERS, "main", "agent", "topic", "thread"))


@frozen
class Key:
    """A session key taken apart. `id` is the peer, group, room, uuid, job or name; empty parts are absent."""

    agent: AgentId | None
    kind: Kind
    id: str = ""
    channel: str = ""
    account: str = ""
    thread: str = ""


def session_id(text: str) -> SessionId:
    """`text` as a session id. Raises UserError when it is none, for it becomes a file name."""
    if not _SESSION_ID.match(text):
        raise UserError(
            f"session id {text[:140]!r} is not allowed: "
            "1 to 128 of a-z, 0-9, '.', '_', '-', beginning with a letter or digit"
        )
    return SessionId(text)


def agent_id(text: str) -> AgentId:
    """`text` as an agent id. Raises UserError when it is none."""
    lowered = text.strip().lower()
    if not _AGENT_ID.match(lowered):
        raise UserError(f"agent id {text[:80]!r} is not allowed: 1 to 64 of a-z, 0-9, '_', '-'")
    return AgentId(lowered)


def canonical(text: str, agent: str = "main", main: str = "main") -> SessionKey:
    """The one spelling of the key that a client means by `text`; empty and `main` mean the agent's own conversation.

    Raises UserError for what cannot be a key.
    """
    trimmed = text.strip()
    if len(trimmed) > LONGEST or _CONTROL.search(trimmed):
        raise UserError(
            f"session key {trimmed[:60]!r} is not allowed: at most {LONGEST} characters, none of them control"
        )
    head, _, rest = trimmed.partition(":")
    if head.lower() in _OWNERLESS and rest:
        return SessionKey(f"{head.lower()}:{rest}")
    if head.lower() == "agent":
        owner, _, rest = rest.partition(":")
        if not rest:
            raise UserError(f"session key {trimmed[:60]!r} is not whole: it reads agent:<agent>:<name>")
        return SessionKey(f"agent:{agent_id(owner)}:{_name(rest, main)}")
    return SessionKey(f"agent:{agent_id(agent)}:{_name(trimmed, main)}")


def _name(text: str, main: str) -> str:
    """The part behind the agent, in its one spelling."""
    words = text.split(":")
    for at, word in enumerate(words[:3]):
        if word.lower() in _PEERS and at < len(words) - 1:
            lowered = [word.lower() for word in words[: at + 1]]
            return ":".join([*lowered, *words[at + 1 :]])
    lowered_text = text.lower()
    return main if lowered_text in ("", "main") else lowered_text


def parse(key: str, main: str = "main") -> Key:
    """A canonical key, taken apart; anything unknown is `named`."""
    head, _, rest = key.partition(":")
    if head in _OWNERLESS:
        return Key(None, "cron" if head == "cron" else "hook", rest)
    if head != "agent":
        return Key(None, "named", key)
    owner, _, name = rest.partition(":")
    agent = AgentId(owner)
    if name == main:
        return Key(agent, "main")
    first, _, tail = name.partition(":")
    for kind in ("subagent", "acp", "dashboard", "cron", "hook"):
        if first == kind and tail:
            return Key(agent, kind, tail)
    return _peer(agent, name) or Key(agent, "named", name)


def _peer(agent: AgentId, name: str) -> Key | None:
    words = name.split(":")
    for at, word in enumerate(words[:3]):
        if word in _PEERS and at < len(words) - 1:
            kind: Kind = "direct" if word == "direct" else "group" if word == "group" else "channel"
            id_, thread = ":".join(words[at + 1 :]), ""
            if match := _THREAD.fullmatch(id_):
                id_, thread = match[1], match[3]
            return Key(
                agent, kind, id_, channel=words[0] if at else "", account=words[1] if at == 2 else "", thread=thread
            )
    return None


def agent_of(key: str, default: str = "main") -> AgentId:
    """The agent that a key belongs to."""
    head, _, rest = key.partition(":")
    return AgentId(rest.partition(":")[0] if head == "agent" else default)


def is_main(key: str, main: str = "main") -> bool:
    return key == f"agent:{agent_of(key)}:{main}"


def main_key(agent: str, main: str = "main") -> SessionKey:
    return canonical(main, agent, main)


def quoted(text: str) -> str:
    """A foreign id as part of a key: two ids never become one, and none can forge a thread of another."""
    safe = _UNSAFE.sub(
        lambda match: "".join(f"%{byte:02x}" for byte in match[0].encode("utf-8", "surrogatepass")), text
    )
    return _SUFFIX.sub("%3a", safe)


def _word(text: str) -> str:
    """A channel's or account's name as part of a key: no colon, never one of the grammar's own words."""
    word = quoted(text.strip().lower()).replace(":", "%3a")
    return f"%{ord(word[0]):02x}{word[1:]}" if word in _RESERVED else word


def linked(channel: str, peer: str, links: Mapping[str, Sequence[str]]) -> str | None:
    """The person whose `session.identityLinks` list `channel:peer`, if any."""
    mine = f"{channel.lower()}:{peer}"
    return next((name for name, ids in links.items() if any(_same(mine, each) for each in ids)), None)


def _same(mine: str, each: str) -> bool:
    channel, _, peer = each.partition(":")
    return mine == f"{channel.lower()}:{peer}"


@frozen
class Sender:
    """Who writes, by the platform's immutable ids."""

    channel: str
    account: str
    peer: str


def direct(
    agent: str,
    sender: Sender,
    scope: Scope = "per-channel-peer",
    *,
    main: str = "main",
    links: Mapping[str, Sequence[str]] | None = None,
) -> SessionKey:
    """The key of a direct message. Whoever is in `links` has one conversation on all channels, under `main` too the
    agent's own.
    """
    owner, names = agent_id(agent), links or {}
    if scope == "main":
        return main_key(owner, main)
    person = linked(sender.channel, sender.peer, names)
    if person is not None:
        return SessionKey(f"agent:{owner}:direct:{quoted(person)}")
    peer, channel = quoted(sender.peer), _word(sender.channel)
    match scope:
        case "per-peer":
            own = f"{channel}:{peer}" if sender.peer in names else peer
            return SessionKey(f"agent:{owner}:direct:{own}")
        case "per-channel-peer":
            return SessionKey(f"agent:{owner}:{channel}:direct:{peer}")
        case _:
            return SessionKey(f"agent:{owner}:{channel}:{_word(sender.account or 'default')}:direct:{peer}")


def room(
    agent: str,
    channel: str,
    kind: Literal["group", "channel"],
    id_: str,
    *,
    topic: str = "",
    thread: str = "",
) -> SessionKey:
    """The key of a group or room; a forum topic or a thread is a conversation of its own."""
    suffix = f":topic:{quoted(topic)}" if topic else f":thread:{quoted(thread)}" if thread else ""
    return SessionKey(f"agent:{agent_id(agent)}:{_word(channel)}:{kind}:{quoted(id_)}{suffix}")


def single(agent: str, kind: Literal["subagent", "acp", "dashboard"], uuid: str) -> SessionKey:
    """The key of a conversation that exists once: a subagent's, a foreign agent's, one opened from the web page."""
    return SessionKey(f"agent:{agent_id(agent)}:{kind}:{quoted(uuid)}")


def job(id_: str) -> SessionKey:
    """The key of a scheduled job's own conversation."""
    return SessionKey(f"cron:{quoted(id_)}")


def hook(uuid: str) -> SessionKey:
    """The key of a webhook call's own conversation."""
    return SessionKey(f"hook:{quoted(uuid)}")
