"""A group's own rules, what was said in it meanwhile, and how both reach the model.

What people write is data: it stands under their label, and nothing in it can pass for a label or a marker of ours.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from garra.core import access, outside
from garra.core.patterns import later
from garra.core.policy import GROUPS, Layer
from garra.core.value import frozen

CommandLevel = Literal["all", "safety", "strict"]
ANY = "*"
_LISTS = frozenset(("allowFrom", "users", "roles"))
"""The keys that say who may speak in a group."""

HISTORY = "[Chat messages since your last reply - for context]"
CURRENT = "[Current message - respond to this]"
KEPT = 50
"""Lines of a group kept for the next turn, unless `historyLimit` says another number."""
MOST = 200
"""Lines kept at most, whatever it says."""

DENIED = ("group:runtime", "group:fs", "group:sessions", "group:automation", "group:memory", "group:nodes")
"""What no group gets unless the owner allows it there."""


@frozen
class Group:
    """The rules of one group or topic, all defaults filled in. `tools` are its layers, widest first."""

    room: access.Room
    command_level: CommandLevel = "all"
    history: int = KEPT
    prompt: str = ""
    tools: tuple[Layer, ...] = ()


@frozen
class Place:
    """Where a turn was asked for, for the rights of its tools. `chat` is the group's id. `named`: the owner let this
    person in by a list or a code; whom only a star let in is a guest, in a direct chat too. `owner`: it is an owner.
    """

    channel: str
    account: str
    chat: str
    sender: str
    thread: str = ""
    group: bool = True
    named: bool = True
    parent: str = ""
    guild: str = ""
    owner: bool = False

    @property
    def guest(self) -> bool:
        """Whether its tools are those of guests."""
        return self.group or not self.named


Raw = Mapping[str, Any]


def rules(account: Raw, chat: str, thread: str = "", parent: str = "", *, guild: str = "") -> tuple[Raw, ...]:
    """What the account's `groups`, `channels` and `guilds` say of a chat, closest first: its topic, itself, its parent,
    every channel, its guild, every guild, every group.
    """
    groups, channels = _object(account.get("groups")), _object(account.get("channels"))
    houses = _houses(account, guild)
    rooms = [*(_object(house.get("channels")) for house in houses), channels]
    found: list[Raw] = []
    for id_ in (chat, parent):
        for by_id in (*rooms, groups):
            if id_ and id_ != ANY and id_ in by_id:
                own = _object(by_id[id_])
                topics = _object(own.get("topics"))
                found += [_object(topics[each]) for each in (thread, ANY) if each and each in topics]
                found.append(own)
    every = [_object(by_id[ANY]) for by_id in rooms if ANY in by_id]
    return (*found, *every, *houses, _object(groups.get(ANY)), account)


def _houses(account: Raw, guild: str) -> list[Raw]:
    """What `guilds` says of one, and of all: a chat of none has none."""
    guilds = _object(account.get("guilds"))
    return [_object(guilds[id_]) for id_ in dict.fromkeys((guild, ANY)) if guild and id_ in guilds]


def listed(account: Raw, chat: str, parent: str = "", guild: str = "") -> bool:
    """Whether the owner's lists hold it; without a list every group is held to the list of people.

    A guild that names channels holds no others; one that names none holds all.
    """
    kept = [_object(account.get(key)) for key in ("groups", "channels")]
    guilds = _object(account.get("guilds"))
    if not guilds and not any(kept):
        return True
    wanted = {ANY, chat} | ({parent} if parent else set())
    if any(not wanted.isdisjoint(by_id) for by_id in kept):
        return True
    house = next(iter(_houses(account, guild)), None)
    rooms = _object(house.get("channels")) if house is not None else {}
    return house is not None and (not rooms or not wanted.isdisjoint(rooms))


def group(found: Sequence[Raw], *, held: bool, people: Any = None) -> Group:
    """The group of `rules`. `held` is what `listed` says; `people` reads a list of ids into `access.People`."""
    near = found[:-1]
    mention = _first(found, "requireMention")
    level = _first(near, "commandLevel", "all")
    limit = _first(found, "historyLimit", KEPT)
    closest = next((each for each in near if not _LISTS.isdisjoint(each)), {})
    roles = frozenset(_names(closest.get("roles")))
    own: Any = next((closest[name] for name in ("allowFrom", "users") if name in closest), [] if roles else None)
    room = access.Room(
        held,
        enabled=all(each.get("enabled") is not False for each in near),
        mention=mention is not False,
        allow=people(own) if own is not None and people is not None else None,
        bots=bots(_first(near, "allowBots")) if any("allowBots" in each for each in near) else None,
        roles=roles,
    )
    return Group(
        room,
        level if level in ("all", "safety") else "strict",
        min(MOST, max(0, limit)) if isinstance(limit, int) and not isinstance(limit, bool) else KEPT,
        next((str(each[name]) for each in near for name in ("systemPrompt", "prompt") if each.get(name)), ""),
    )


def bots(value: Any) -> access.Bots:
    """`allowBots`: true, `mentions`, or anything else for none."""
    return "all" if value is True else "mentions" if value == "mentions" else "none"


def tools(found: Sequence[Raw], place: Place) -> tuple[Layer, ...]:
    """What tools a turn of a group or a guest may call: the closest rule that speaks, one for its sender before one for
    all.

    Programs, files, sessions, jobs, memory and nodes are denied unless that rule allows them by name or set.
    """
    near = found[:-1]
    chosen: Any = None
    for each in near:
        by_sender = _sender(_object(each.get("toolsBySender")), place)
        chosen = by_sender if by_sender is not None else each.get("tools")
        if chosen is not None:
            break
    policy = _object(chosen)
    also, deny = _names(policy.get("alsoAllow")), _names(policy.get("deny"))
    allow = _names(policy["allow"]) if "allow" in policy else None
    granted = {*(allow or ()), *also}
    closed = Layer("what no group or guest has", None, () if ANY in granted else _without(granted), step="group")
    source = "groups.tools" if place.group else "guests"
    return closed, Layer(source, None if allow is None else (*allow, *also), deny, step="group")


def _without(granted: set[str]) -> tuple[str, ...]:
    """The denied sets, less what was granted: a set in part leaves its other tools denied."""
    from_sets: list[str] = []
    for name in DENIED:
        if name in granted:
            continue
        inside = [tool for tool in GROUPS[name] if tool not in granted]
        from_sets += [name] if len(inside) == len(GROUPS[name]) else inside
    return tuple(from_sets)


def _sender(rows: Raw, place: Place) -> Any:
    """The rule of `toolsBySender` for this person."""
    key = sender_key(rows, place)
    return None if key is None else rows[key]


NAMES = ("username", "name")
"""Keys by what a person calls himself: they hold for nobody."""
_PREFIXED = ("channel", "id", "e164", *NAMES)


def sender_key(rows: Iterable[str], place: Place) -> str | None:
    """Which key of `toolsBySender` means this person: the closest, by the platform's immutable id; a star for all.

    `channel:CHANNEL:ID`, `id:ID`, `e164:+NUMBER` where the id is a telephone number, the bare id, `*`.
    """
    sender = place.sender
    wanted = [f"channel:{place.channel}:{sender}", f"id:{sender}"] if sender else []
    if number := _number(sender):
        wanted += [f"e164:{number}", f"e164:+{number}"]
    if sender and sender.partition(":")[0] not in _PREFIXED and sender != ANY:
        wanted.append(sender)
    return next((key for key in (*wanted, ANY) if key in rows), None)


_PHONE = later(r"\+(\d{6,15})|(\d{6,15})@(?:s\.whatsapp\.net|c\.us)")


def _number(sender: str) -> str:
    """The digits of an id that is a telephone number; a plain number is some platform's own."""
    found = _PHONE.fullmatch(sender)
    return (found[1] or found[2]) if found else ""


def _object(value: Any) -> Raw:
    return value if isinstance(value, Mapping) else {}


def _names(value: Any) -> tuple[str, ...]:
    return tuple(str(each) for each in value) if isinstance(value, list | tuple) else ()


def _first(found: Iterable[Raw], key: str, default: Any = None) -> Any:
    return next((each[key] for each in found if each.get(key) is not None), default)


@frozen
class Line:
    """One thing said. `who` is the label, `id` the sender's id, `message` the platform's id."""

    who: str
    id: str
    text: str
    message: str = ""
    bot: bool = False


@frozen
class History:
    """What was said since the last turn, oldest first."""

    lines: tuple[Line, ...] = ()


@frozen
class Said:
    """Somebody wrote; at most `limit` lines are kept."""

    line: Line
    limit: int = KEPT


@frozen
class Taken:
    """A turn has begun: what was kept goes with it."""


def step(state: History, event: Said | Taken) -> tuple[History, tuple[Line, ...]]:
    """The history after an event, and the lines it gives."""
    if isinstance(event, Taken):
        return History(), state.lines
    if event.line.message and any(each.message == event.line.message for each in state.lines):
        return state, ()
    return replace(state, lines=bounded((*state.lines, event.line), event.limit)), ()


def bounded(lines: tuple[Line, ...], limit: int) -> tuple[Line, ...]:
    """At most `limit` of them: words of bots give way first, then the oldest."""
    excess = len(lines) - max(0, limit)
    if excess <= 0:
        return lines
    first = [at for at, line in enumerate(lines) if line.bot] + [at for at, line in enumerate(lines) if not line.bot]
    gone = set(first[:excess])
    return tuple(line for at, line in enumerate(lines) if at not in gone)


_MARKERS = later(r"\[(?=\s*(?:chat messages since|current message|messages that came|replying to))", re.IGNORECASE)
_UNSEEN = later(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def label(name: str, handle: str, id_: str) -> str:
    """How a person is named to the model: `Ann (@ann, 4711)`. Names are for display and cannot break the line."""
    shown = " ".join(_UNSEEN.sub(" ", name).replace("[", "(").replace("]", ")").replace(":", " ").split())[:64]
    marks = ", ".join(part for part in (f"@{_word(handle)}" if handle else "", _word(id_)) if part)
    return f"{shown or 'Somebody'} ({marks})"


def _word(text: str) -> str:
    return "".join(_UNSEEN.sub("", text).replace("(", "").replace(")", "").replace(":", "").split())[:64]


def quoted(text: str) -> str:
    """A person's words as data: no marker of ours can be made of them, and further lines are set in."""
    lines = outside.untokened(text.replace("\r\n", "\n").replace("\r", "\n"))
    plain = _MARKERS.sub("(", _UNSEEN.sub("", lines)).strip()
    return plain.replace("\n", "\n  ")


def spoken(line: Line) -> str:
    return f"{line.who}: {quoted(line.text)}"


def wrapped(history: Sequence[Line], current: Sequence[Line]) -> str:
    """What the model reads: the words since its last reply, then those to respond to, each under its sender."""
    now = "\n".join(spoken(line) for line in current)
    if not history:
        return now
    before = "\n".join(spoken(line) for line in history)
    return f"{HISTORY}\n{before}\n\n{CURRENT}\n{now}"
