"""What a chat shows of a run while it works: its words as they come, or what it is doing, in one message that changes.

`partial` and `block` show the answer as it grows, word by word or block by block; `progress` shows what is done
(thought, comment, tools) and shrinks to one line in the end; `off` shows nothing. Thoughts themselves are never shown,
nor are a command's words, unless asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any, Literal

from garra.core import chunking
from garra.core.chunking import Blocks
from garra.core.events import (
    MessageEnded,
    MessageStarted,
    MessageUpdated,
    RunBody,
    RunEnded,
    ThinkingDelta,
    ToolEnded,
    ToolStarted,
)
from garra.core.markup import whole
from garra.core.messages import Assistant, ToolCall
from garra.core.value import frozen

Mode = Literal["off", "partial", "block", "progress"]
FIRST = 30
"""Characters an answer must have before its first part is shown."""


@frozen
class Settings:
    """`tools`, `comments`: whether lines tell of them. At most `lines` lines of `width` characters are shown, under a
    `label`. What is done shows after `delay_ms`, so that a quick answer comes alone. `commands`: a command's words
    show.
    """

    mode: Mode = "off"
    tools: bool = True
    comments: bool = True
    commands: bool = False
    lines: int = 8
    width: int = 120
    label: str = "Working"
    delay_ms: int = 1_500
    blocks: Blocks = field(default_factory=lambda: Blocks(200, 800))


@frozen
class Line:
    """One thing that was or is done; `key` is the tool call's."""

    key: str
    icon: str
    text: str
    failed: bool = False


@frozen
class State:
    """`text` is what shows of the answer, `words` all of it, `waiting` its end that is no block yet. `worked_at` is
    when the first work was seen.
    """

    settings: Settings
    began_at: int
    words: str = ""
    text: str = ""
    waiting: str = ""
    lines: tuple[Line, ...] = ()
    worked_at: int | None = None
    calls: int = 0
    failed: int = 0
    thought: bool = False


@frozen
class View:
    """What the message reads: Markdown, and lines to be shown as they are."""

    text: str = ""
    lines: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        return not self.text and not self.lines


def step(state: State, body: RunBody, now_ms: int) -> State:
    """What an event makes of it."""
    match body:
        case MessageStarted(Assistant()):
            return replace(state, words="", text="", waiting="")
        case MessageUpdated(ThinkingDelta(), _):
            return (
                state if state.thought else _worked(replace(state, thought=True), Line("🧠", "🧠", "thinking"), now_ms)
            )
        case MessageUpdated(_, text) if text != state.words:
            return _grown(state, text)
        case MessageEnded(Assistant() as message) if message.calls:
            return _commented(state, now_ms)
        case ToolStarted(call, hidden=False):
            line = Line(call.id, _ICONS.get(call.name, "🛠️"), told(call, commands=state.settings.commands))
            return _worked(replace(state, calls=state.calls + 1), line, now_ms, shown=state.settings.tools)
        case ToolEnded(call, result, hidden=False) if result.is_error:
            lines = tuple(replace(line, failed=True) if line.key == call.id else line for line in state.lines)
            return replace(state, lines=lines, failed=state.failed + 1)
        case _:
            return state


def _grown(state: State, text: str) -> State:
    if state.settings.mode != "block" or not text.startswith(state.words):
        return replace(state, words=text, text=text if state.settings.mode != "block" else "", waiting=text)
    waiting, _ = chunking.step(state.waiting, text[len(state.words) :], state.settings.blocks)
    grown = text if len(waiting) > len(text) else text[: len(text) - len(waiting)]
    return replace(state, words=text, text=grown.rstrip(), waiting=waiting)


def _commented(state: State, now_ms: int) -> State:
    comment = " ".join(state.words.split())
    if not comment or not state.settings.comments:
        return state
    return _worked(state, Line("💬", "💬", comment), now_ms)


def _worked(state: State, line: Line, now_ms: int, *, shown: bool = True) -> State:
    lines = (*state.lines, line)[-state.settings.lines :] if shown else state.lines
    return replace(state, lines=lines, worked_at=now_ms if state.worked_at is None else state.worked_at)


def due_at(state: State) -> int | None:
    """When the lines begin to show; None when there is no work to show."""
    return None if state.worked_at is None else max(state.began_at, state.worked_at) + state.settings.delay_ms


def view(state: State, now_ms: int) -> View:
    """What the message reads now; empty while there is nothing to show."""
    mode = state.settings.mode
    due = due_at(state)
    working = due is not None and now_ms >= due
    lines = tuple(_written(line, state.settings.width) for line in state.lines) if working else ()
    if mode == "off":
        return View()
    if mode == "progress":
        label = state.settings.label
        return View("", (*((f"{label}…",) if label else ()), *lines)) if working else View()
    if len(state.text.strip()) >= FIRST:
        return View(state.text)
    return View("", lines)


def summary(state: State, now_ms: int) -> str:
    """One line on all that was done."""
    seconds = max(0, now_ms - state.began_at) / 1_000
    tools = f"{state.calls} tool call{'' if state.calls == 1 else 's'}" if state.calls else ""
    failed = f"{state.failed} failed" if state.failed else ""
    done = ", ".join(part for part in (tools, failed) if part)
    icons = ("🛠️ " if state.calls else "") + ("🧠 " if state.thought and not state.calls else "")
    return f"{icons}{done or 'Done'} · {_time(seconds)}"


def _time(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{seconds // 60:.0f} min {seconds % 60:.0f} s"


def _written(line: Line, width: int) -> str:
    text = f"{line.icon} {line.text}{' — failed' if line.failed else ''}"
    return shortened(text, width)


def shortened(text: str, width: int) -> str:
    """At most `width` characters, cut between words where that leaves more than half."""
    if len(text) <= width:
        return text
    at = max(0, width - 1)
    space = text.rfind(" ", 0, at + 1)
    if space > width // 2:
        at = space
    while at and not whole(text, at):
        at -= 1
    return text[:at].rstrip() + "…"


_ICONS: Mapping[str, str] = {
    "read": "📖",
    "write": "✍️",
    "edit": "✍️",
    "apply_patch": "✍️",
    "grep": "🔎",
    "find": "🔎",
    "web_search": "🔎",
    "memory_search": "🔎",
    "web_fetch": "🌐",
    "browser": "🌐",
    "sessions_spawn": "🤝",
    "message": "✉️",
    "cron": "⏰",
}

_SHOWN = ("path", "file_path", "query", "pattern", "url", "action")
_COMMANDS = frozenset({"exec", "bash", "process"})


def told(call: ToolCall, *, commands: bool = False) -> str:
    """A tool call in a few words: its name, and where or what for; a command's words only if asked."""
    name = call.name.replace("_", " ")
    if call.name in _COMMANDS:
        detail = _text(call.arguments, ("command",)) if commands else ""
    else:
        detail = _text(call.arguments, _SHOWN)
    return f"{name}: {detail}" if detail else name


def _text(arguments: Mapping[str, Any], keys: tuple[str, ...]) -> str:
    found = (arguments.get(key) for key in keys)
    text = next((value for value in found if isinstance(value, str) and value.strip()), "")
    return " ".join(text.split()).partition("?")[0] if "://" in text else " ".join(text.split())


Mood = Literal["seen", "thinking", "working", "done", "failed"]


def mood(body: RunBody) -> Mood | None:
    """What a reaction on the person's message tells of an event; None when it changes nothing."""
    match body:
        case MessageStarted(Assistant()):
            return "thinking"
        case ToolStarted(hidden=False):
            return "working"
        case RunEnded(ending=ending):
            return "done" if ending == "ok" else "failed"
        case _:
            return None
