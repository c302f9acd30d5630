"""What whoever sums up a conversation is given to read, piece by piece, and what of their answer can be used."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import msgspec

from garra.core.clip import clip
from garra.core.compaction import FRAME, Room, chars, weight
from garra.core.messages import Assistant, Image, Message, Text, ToolCall, ToolResult, User
from garra.core.outside import CONTEXT
from garra.core.value import frozen

TARGET: Final = 0.40
LEAST: Final = 0.15
SAFETY: Final = 1.2
GIANT: Final = 0.5
"""A piece is about TARGET of the window, LEAST where messages are long; estimates may be SAFETY too low; a message of
more than GIANT of the window is only named."""
LONG: Final = 0.1
"""Messages are long where one is more than so much of the window on average."""
ARGUMENTS: Final = 1_000
"""Characters of a call's arguments that are read."""
RESULTS: Final = (2_000, 1_000, 500, 250)
"""Characters of a result that are read: fewer where that makes two pieces of many."""
FEW: Final = 2
FOCUS: Final = 800
"""Characters of a person's own instructions."""
SHORTEST: Final = 20
"""A summary of fewer characters says nothing."""
SILENCE: Final = "NO_REPLY"

_ROLES: Final = {User: "user", Assistant: "assistant", ToolResult: "toolResult"}
_CONTEXT = rf"<<<BEGIN_{CONTEXT}[^>]*>>>.*?(?:<<<END_{CONTEXT}[^>]*>>>|\Z)"


@frozen
class Pieces:
    """What is read in which piece, as (start, end) of each; `limit` characters of each result are."""

    marks: tuple[tuple[int, int], ...]
    limit: int


def pieces(messages: Sequence[Message], sizes: Sequence[int], room: Room) -> Pieces:
    """What is read, in pieces that each fit into the window of `room`; calls stay with their results.

    Less is read of each result where that saves most of the pieces.
    """
    may, most = starts(messages), largest(room)
    rows = [
        (size if size <= most else 2 * FRAME, isinstance(each, ToolResult))
        for each, size in zip(messages, sizes, strict=True)
    ]

    def within(limit: int) -> tuple[tuple[int, int], ...]:
        cap = limit + 8 * FRAME
        return chunks([cap if result and size > cap else size for size, result in rows], may, room)

    whole = Pieces(within(RESULTS[0]), RESULTS[0])
    if len(whole.marks) <= FEW:
        return whole
    least = Pieces(within(RESULTS[-1]), RESULTS[-1])
    if len(least.marks) > FEW:
        return least if 2 * len(least.marks) <= len(whole.marks) else whole
    between = (Pieces(within(limit), limit) for limit in RESULTS[1:-1])
    return next((each for each in between if len(each.marks) <= FEW), least)


def read(messages: Sequence[Message], mark: tuple[int, int], limit: int, room: Room) -> str:
    """One piece as it is read."""
    return "\n\n".join(told(each, limit, room) for each in messages[mark[0] : mark[1]])


def chunks(sizes: Sequence[int], whole: Sequence[bool], room: Room) -> tuple[tuple[int, int], ...]:
    """Which messages are summed up together, as (start, end). `whole[i]`: a piece may begin at i.

    A piece is about TARGET of the window, less where messages are long; what must stay together is, whatever its size.
    """
    if not sizes:
        return ()
    window = room.limits.window
    mean = room.tokens(sum(sizes)) * SAFETY / len(sizes) / window
    share = max(LEAST, TARGET - min(mean * 2, TARGET - LEAST)) if mean > LONG else TARGET
    most = room.size(int(window * share / SAFETY))
    found: list[tuple[int, int]] = []
    start = size = 0
    for at, each in enumerate(sizes):
        if size and size + each > most and whole[at]:
            found.append((start, at))
            start, size = at, 0
        size += each
    return (*found, (start, len(sizes)))


def starts(messages: Sequence[Message]) -> list[bool]:
    """Where a piece may begin: not between a call and its results."""
    found, pending = [True] * len(messages), False
    for at in range(len(messages) - 1, -1, -1):
        if isinstance(messages[at], ToolResult):
            pending, found[at] = True, False
        elif isinstance(messages[at], Assistant):
            pending = False
        else:
            found[at] = not pending
    return found


def largest(room: Room) -> int:
    """Characters of a message that whoever sums up can still read."""
    return room.size(int(room.limits.window * GIANT / SAFETY))


def told(message: Message, limit: int, room: Room) -> str:
    """A message as it is read: its words, its calls, the ends of its results. Never `details`, never what the runtime
    told the model itself, never thoughts; of a picture only that there was one.
    """
    role, size = _ROLES[type(message)], chars(message)
    if size > largest(room):
        return f"[Large {role} (~{round(room.tokens(size) / 1000)}K tokens) omitted from summary]"
    lines = [line for part in message.content if (line := _part(part))]
    words = re.sub(_CONTEXT, "", "\n".join(lines), flags=re.DOTALL).strip()
    if isinstance(message, ToolResult):
        failed = " (failed)" if message.is_error else ""
        return f"[toolResult {message.name}{failed}]\n{clip(words, limit)[0]}"
    return f"[{role}]\n{words}"


def _part(part: object) -> str:
    match part:
        case Text():
            return part.text
        case Image():
            return "[image data omitted from summary input]"
        case ToolCall():
            return f"[calls {part.name} {clip(_json(part.arguments), ARGUMENTS)[0]}]"
        case _:
            return ""


def _json(value: object) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except (UnicodeEncodeError, TypeError):
        return repr(value)


def request(piece: str, *, before: str = "", focus: str = "") -> str:
    """The words of one request. `before` is the summary of all that stands before the piece."""
    parts = [f"<conversation>\n{_escaped(piece)}\n</conversation>"]
    if before:
        parts.insert(0, f"<previous-summary>\n{_escaped(before)}\n</previous-summary>")
    if focus := " ".join(focus.split())[:FOCUS]:
        parts.append(f"<focus>\n{_escaped(focus)}\n</focus>")
    return "\n\n".join(parts)


def _escaped(text: str) -> str:
    """Text that cannot end the part it stands in."""
    return re.sub(r"<(/?(?:conversation|previous-summary|focus)>)", r"&lt;\1", text, flags=re.IGNORECASE)


def usable(text: str, room: Room) -> str:
    """The summary in an answer, within its room; empty where the answer is none."""
    words = text.strip()
    page = re.match(r"(?:<!doctype|<html|<\?xml)", words, re.IGNORECASE)
    if page or len(words) < SHORTEST or words.upper().startswith(SILENCE):
        return ""
    most = room.size(room.summary)
    size = weight(words)
    return words if size <= most else clip(words, max(SHORTEST, most * len(words) // size))[0]


SUMMED: Final = "[The conversation so far, in brief; what was said stands in the transcript.]"
LEFT_OUT: Final = "[{count} earlier messages are left out here without a summary. They stand in the transcript.]"


def summed(text: str) -> str:
    """A summary as it is stored and shown to the model."""
    return text if text.startswith(SUMMED) else f"{SUMMED}\n\n{text}"


def note(count: int, before: str, room: Room) -> str:
    """What is stored where `count` messages are dropped: that they are, and the summary that there was."""
    line = LEFT_OUT.format(count=count)
    old = before.removeprefix(SUMMED).strip()
    return f"{SUMMED}\n\n{clip(old, room.size(room.summary))[0]}\n\n{line}" if old else line
