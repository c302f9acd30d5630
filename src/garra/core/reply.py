"""What of a model's words a person sees: thoughts set apart, silence as a value, nothing internal.

`<think>` tags (also `thinking`, `thought`, `reasoning`) are recognised over deltas, outside code only. What is inside
never shows; an open tag hides the rest; a closing tag without its opening one hides all before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

from garra.core.messages import Assistant, Part, Text, Thinking
from garra.core.patterns import later
from garra.core.value import frozen, replace

SILENT = "NO_REPLY"
HEARTBEAT_OK = "HEARTBEAT_OK"

_TAG = later(r"<\s*(/?)\s*(?:antml:)?(?:think(?:ing)?|thought|reasoning)\s*>", re.IGNORECASE)
_OPEN = later(r"(?:<\s{0,4}/?\s{0,4}[a-z:]{0,14}\s{0,4}|`+|~+|(?:\n[ \t]*)+)\Z", re.IGNORECASE)
_MARK = later(r"`+|~~~+|\n[ \t]*\n|<[^<>`~\n]{0,24}>")


@frozen
class State:
    """Where in the words we are. `shown` is all that is visible; `held` may yet become a tag or a code mark; `fence` is
    the open code mark; `tagged` says that a tag was seen.
    """

    shown: str = ""
    held: str = ""
    fence: str = ""
    hidden: bool = False
    tagged: bool = False


@frozen
class Shown:
    """`text` joins what is visible; `thought` what is not. `reset`: what was shown before was thought too."""

    text: str = ""
    thought: str = ""
    reset: bool = False


def step(state: State, delta: str, *, last: bool = False) -> tuple[State, Shown]:
    """More words arrived; `last` releases what is held."""
    text = state.held + delta
    keep = "" if last else _undecided(text)
    cut = _cut(state, text[: len(text) - len(keep)])
    before = "" if cut.reset else state.shown
    new = cut.text if before else cut.text.lstrip("\n")
    return replace(cut.state, shown=before + new, held=keep), Shown(new, cut.thought, cut.reset)


@frozen
class _Cut:
    state: State
    text: str
    thought: str
    reset: bool


def _cut(state: State, text: str) -> _Cut:
    """Decided words, parted at their tags."""
    pieces: tuple[list[str], list[str]] = ([], [])
    reset, at = False, 0
    for mark in _MARK.finditer(text):
        tag = None if state.fence else _TAG.fullmatch(mark.group())
        if tag is None:
            state = state if state.hidden else replace(state, fence=_fenced(state.fence, mark.group()))
            continue
        pieces[state.hidden].append(text[at : mark.start()])
        if tag.group(1) and not state.tagged:
            reset = True
            pieces = ([], [*pieces[1], *pieces[0]])
        state, at = replace(state, hidden=not tag.group(1), tagged=True), mark.end()
    pieces[state.hidden].append(text[at:])
    return _Cut(state, "".join(pieces[0]), "".join(pieces[1]), reset)


def _fenced(fence: str, mark: str) -> str:
    """The open code mark after `mark`. A block is closed by a mark at least as long, code in a line by its equal or by
    an empty line.
    """
    if mark[0] == "<":
        return fence
    if mark[0] == "\n":
        return fence if len(fence) >= 3 else ""
    if not fence:
        return mark
    closes = mark[0] == fence[0] and (len(mark) >= len(fence) if len(fence) >= 3 else mark == fence)
    return "" if closes else fence


def _undecided(text: str) -> str:
    """The end of `text` whose meaning the next words decide."""
    found = _OPEN.search(text)
    return found.group() if found else ""


def split(text: str) -> tuple[str, str]:
    """(visible, thought) of whole words."""
    _, shown = step(State(), text, last=True)
    return shown.text, shown.thought


def settled(message: Assistant) -> Assistant:
    """The answer as it is stored: thought that came as text becomes `Thinking`, empty words go."""
    parts: list[Part] = []
    for part in message.content:
        parts += _apart(part) if isinstance(part, Text) else (part,)
    content = tuple(parts)
    return message if content == message.content else replace(message, content=content)


def _apart(part: Text) -> Iterable[Part]:
    text, thought = split(part.text)
    if thought.strip():
        yield Thinking(thought.strip())
    if text:
        yield Text(text)


def broken(message: Assistant) -> Assistant:
    """What may be kept of an answer that was cut: its words and thoughts, no calls, no signatures."""
    whole = settled(message)
    kept = (Thinking(part.text) if isinstance(part, Thinking) else part for part in whole.content)
    return replace(whole, content=tuple(part for part in kept if isinstance(part, Text | Thinking)))


@frozen
class Reply:
    """Words for a person; `text` is never blank."""

    text: str


@frozen
class Silence:
    """The model chose to say nothing, where it may. `heartbeat`: it said that nothing needs attention."""

    heartbeat: bool = False


@frozen
class Nothing:
    """No words came. This is a failure, not silence."""


Answer = Reply | Silence | Nothing
Quiet = Literal["never", "group", "heartbeat"]
"""Where a model may choose to say nothing: nowhere, by NO_REPLY, or by HEARTBEAT_OK."""

_EDGE = later(r"[\s*_`.!\"']+")


def answer(text: str, quiet: Quiet = "never", ack_chars: int = 300) -> Answer:
    """What the words of a whole answer are. Only the exact token is silence, and only where `quiet` allows it;
    elsewhere a bare token is `Nothing`: it is no answer, and it never reaches a chat.

    A heartbeat's token may stand at the start or the end of at most `ack_chars` more.
    """
    visible = split(text)[0].strip()
    bare = _EDGE.sub("", visible)
    if not visible:
        return Nothing()
    if bare in {HEARTBEAT_OK.replace("_", ""), SILENT.replace("_", "")}:
        heartbeat = bare != SILENT.replace("_", "")
        allowed = quiet != "never" and (not heartbeat or quiet == "heartbeat")
        return Silence(heartbeat) if allowed else Nothing()
    if quiet == "heartbeat":
        return _heartbeat(visible, ack_chars)
    return Reply(visible)


def _heartbeat(visible: str, ack_chars: int) -> Answer:
    rest = visible.removeprefix(HEARTBEAT_OK)
    if rest == visible:
        rest = visible.removesuffix(HEARTBEAT_OK)
    if rest == visible:
        return Reply(visible)
    rest = rest.strip()
    return Silence(heartbeat=True) if len(rest) <= ack_chars else Reply(rest)
