"""Where text from outside came from: the marks that a turn carries which has read it, and what they ask for.

A mark is stored with the message that brought the text. A turn is marked while anything marked is in what its model is
sent; a marked turn needs a person's yes before it changes anything beyond its own files and its own chat.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal, cast, get_args

from garra.core.value import frozen

Source = Literal["web", "mail", "file", "group", "person", "network", "tool", "agent", "memory", "job"]
Mode = Literal["on", "turn", "off"]
"""How long a mark holds: as long as the text is in what the model is sent; for the turn that read it; not at all."""

ROW: Final = "taint"
"""Under which name a session's row tells of its marks."""
META: Final = "marks"
"""Under which name a stored message has its marks."""
FIRST: Final = 3
NEWEST: Final = 5
"""So many of a conversation's marks are named, the first and the newest; the others are counted."""
WHERE: Final = 300
"""Characters of an address or a name that are kept."""
OF_ONE: Final = 20
"""Marks that are stored with one message."""


@frozen
class Mark:
    """One piece of outside text: what kind of outside, and where exactly (an address, a sender, a file's name)."""

    source: Source
    where: str


UNREADABLE: Final = Mark("network", "unknown")
"""For a stored mark that cannot be read: that there was one is known."""


@frozen
class Marks:
    """The marks of a history. `count` is how many texts were marked, `digest` stands for all of them in their order,
    `sources` are all kinds of outside among them.
    """

    first: tuple[Mark, ...] = ()
    newest: tuple[Mark, ...] = ()
    more: int = 0
    count: int = 0
    digest: str = ""
    sources: frozenset[Source] = frozenset()

    @property
    def named(self) -> tuple[Mark, ...]:
        return (*self.first, *self.newest)


CLEAN: Final = Marks()


@frozen
class Need:
    """A marked turn would do this: it needs a person's yes."""

    effects: tuple[str, ...]
    marks: Marks


def add(marks: Marks, found: Iterable[Mark]) -> Marks:
    """`marks` after one more text, in time that does not depend on how many there were."""
    new = tuple(found)
    if not new:
        return marks
    first, newest, more = list(marks.first), list(marks.newest), marks.more
    for mark in new:
        if mark in first:
            continue
        if mark in newest:
            newest.remove(mark)
        if len(first) < FIRST:
            first.append(mark)
        else:
            newest.append(mark)
    more += max(0, len(newest) - NEWEST)
    told = "\n".join(f"{mark.source} {mark.where}" for mark in new)
    digest = hashlib.sha256(f"{marks.digest}\n{told}".encode("utf-8", "replace")).hexdigest()[:32]
    sources = marks.sources | {mark.source for mark in new}
    return Marks(tuple(first), tuple(newest[-NEWEST:]), more, marks.count + 1, digest, sources)


def merge(one: Marks, other: Marks) -> Marks:
    """The marks of two histories that come together."""
    if not one.count or not other.count:
        return one if one.count else other
    both = add(one, other.named)
    count = one.count + other.count
    return Marks(both.first, both.newest, both.more + other.more, count, both.digest, one.sources | other.sources)


def only_people(marks: Marks) -> bool:
    """Whether all of it is what people said themselves whom the owner let in."""
    return marks.sources <= {"person"}


def stored(marks: Iterable[Mark]) -> dict[str, Any]:
    """What a message's `meta` says of `marks`; nothing where there are none."""
    rows = [{"source": mark.source, "where": mark.where[:WHERE]} for mark in dict.fromkeys(marks)]
    if len(rows) > OF_ONE:
        rows = [*rows[: OF_ONE // 2], *rows[-(OF_ONE - OF_ONE // 2) :]]
    return {META: rows} if rows else {}


def of(meta: Mapping[str, Any]) -> tuple[Mark, ...]:
    """The marks in a message's `meta`. What cannot be read is a mark of nobody knows where."""
    if META not in meta:
        return ()
    rows = meta[META]
    if not isinstance(rows, list | tuple):
        return (UNREADABLE,)
    return tuple(dict.fromkeys(_read(row) for row in rows))


def _read(row: Any) -> Mark:
    source = row.get("source") if isinstance(row, Mapping) else None
    if source not in get_args(Source):
        return UNREADABLE
    return Mark(cast(Source, source), str(row.get("where", ""))[:WHERE])


_WORDS: Mapping[Source, str] = {
    "web": "{}",
    "mail": "a mail of {}",
    "file": "the file {}",
    "group": "what {} wrote in a group",
    "person": "what {} wrote",
    "network": "what came over the network from {}",
    "tool": "what the tool {} brought",
    "agent": "the words of another agent, {}",
    "memory": "a memory made from {}",
    "job": "the job {}, made from such text",
}


def named(mark: Mark) -> str:
    """A mark in words: `a mail of ann@example.org`. What stands in it came from outside, too: it is one plain line."""
    where = "".join(each if each.isprintable() else " " for each in mark.where[:WHERE])
    return _WORDS[mark.source].format(" ".join(where.split()) or "somewhere")


def because(marks: Marks) -> tuple[str, ...]:
    """Why a person is asked, a line for each mark that is named."""
    lines = tuple(f"this turn read {named(mark)}" for mark in marks.named)
    return (*lines, f"and {marks.more} more from outside") if marks.more else lines


def brief(marks: Marks, most: int = 3) -> str:
    """The marks in one line: the newest first."""
    found = [named(mark) for mark in reversed(marks.named)]
    left = len(found) - most + marks.more if len(found) > most else marks.more
    return ", ".join(found[:most]) + (f" and {left} more" if left else "")


def told(row: Any) -> str:
    """What a session's row (see `ROW`) says of its marks, in one line; empty where there are none."""
    found = of(row) if isinstance(row, Mapping) else ()
    more = row.get("more") if found else 0
    words = ", ".join(map(named, found))
    return f"{words} and {more} more" if isinstance(more, int) and more > 0 else words


_EFFECTS: Mapping[str, str] = {
    "sends": "it sends to somebody outside this chat",
    "runs": "it runs a program that is not shut in",
    "remembers": "it changes what the agent goes by from now on",
    "schedules": "it makes a job that runs later",
    "configures": "it changes the configuration",
}


def does(effects: Sequence[str]) -> str:
    """What a call does, for the person who is asked; an effect that nobody knows is named as it is."""
    return "; ".join(_EFFECTS.get(effect, effect) for effect in effects)


_FILES = frozenset(
    ("agents.md", "soul.md", "identity.md", "user.md", "tools.md", "bootstrap.md", "boot.md", "memory.md",
     "heartbeat.md")
)  # fmt: skip
_FOLDERS = frozenset(("memory", "skills", "hooks", ".agents", ".claude", ".openclaw", ".garra"))
_ANYWHERE = frozenset(("skill.md", "hook.md"))

GUARDED: Final = (
    "AGENTS.md", "SOUL.md", "IDENTITY.md", "USER.md", "TOOLS.md", "BOOTSTRAP.md", "MEMORY.md", "HEARTBEAT.md",
    "memory/", "skills/",
)  # fmt: skip
"""What of a workspace an agent goes by, by the names that are read; a folder's ends in /."""


def instructs(path: str, root: str) -> bool:
    """Whether a file of the workspace at `root` is one that the agent goes by in later turns, or a folder of such.

    A path that is not below `root` by its letters may lead there by another name: then any part of it counts.
    """
    inner = path.removeprefix(root.rstrip("/") + "/")
    parts: list[str] = []
    for part in inner.split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part.casefold())
    if not parts or parts[-1] in _ANYWHERE:
        return True
    elsewhere = inner.startswith("/")
    if not _FOLDERS.isdisjoint(parts if elsewhere else parts[:1]):
        return True
    return parts[-1] in _FILES and (elsewhere or len(parts) == 1)


AIMS: Final = (
    "path",
    "file_path",
    "to",
    "target",
    "chat",
    "channel",
    "sessionKey",
    "session",
    "agentId",
    "url",
    "host",
)
"""The arguments that say what a call is aimed at: a file, a recipient, an address."""


def aim(arguments: Mapping[str, Any]) -> str:
    """What a call is aimed at, in one line; empty where its arguments do not say."""
    return " ".join(f"{name}={arguments[name]}" for name in AIMS if arguments.get(name))


def covered(session_key: str, tool: str, marks: Marks, target: str = "") -> str:
    """The name of what `allow-always` lets pass: this tool, at what it is aimed at, in this session, for as long as it
    holds this very text.
    """
    where = f":{hashlib.sha256(target.encode('utf-8', 'replace')).hexdigest()[:32]}" if target else ""
    return f"taint:{tool}:{marks.digest}:{session_key}{where}"


def remembers(tool: str, target: str = "") -> str:
    """The same in words."""
    this = f"{tool} with {target[:WHERE]}" if target else tool
    return f"{this} in this conversation, until it reads more text from outside"


def refused(reason: str, effects: Sequence[str], marks: Marks) -> str:
    """What the model reads when the answer was no."""
    return (
        f"{reason}. This turn read text from outside ({brief(marks)}), so a person has to allow this: {does(effects)}. "
        "Do not try it another way; answer without it, and say what you would have done."
    )
