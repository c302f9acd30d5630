"""The silent turn before a history is cut: the agent saves what should last, to today's diary and nowhere else.

It is a call beside the conversation: nothing of it is stored in the transcript, nobody is shown a word of it. The
prompt and the tools are the conversation's own, so that a provider's cache holds; of the tools only `write` does
anything, and it adds to the end of the one file.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from datetime import datetime, tzinfo
from functools import cache
from importlib import resources
from typing import Any, Final, Protocol

from garra.agent.cancel import Cancel
from garra.core import taint
from garra.core.errors import GarraError, ToolFailed
from garra.core.messages import Message, Text, ToolCall, ToolResult, User
from garra.core.taint import Marks
from garra.core.value import frozen
from garra.runs.run import Run
from garra.sdk.model import EventStream, Model
from garra.sdk.ports import Clock, Files

log = logging.getLogger(__name__)

Messages = tuple[Message, ...]

STEPS: Final = 3
"""So often the model is asked within one flush."""
LONGEST: Final = 8_000
"""Characters that one flush may add."""
SILENCE: Final = "NO_REPLY"
TOOL: Final = "write"
LIMIT: Final = 4 << 20
NOTED: Final = "<!-- from a conversation"
"""How the line begins that says where words of the diary come from; memory's index reads it."""
TIMEOUT_S: Final = 120.0
REFUSED: Final = "Not done: before a summary only `write` to {path} is possible, which adds to the end of it."


class Rows(Protocol):
    """The sessions' rows."""

    async def get(self, key: str) -> Any: ...

    async def record(self, key: str, **fields: Any) -> Any: ...


@frozen
class Ground:
    """What a flush works with: `ask` starts a call with the conversation's own prompt and tools, `marks` tells what
    text from outside the conversation has read, `lock` is held while the diary is written.
    """

    run: Run
    model: Model
    messages: Callable[[], Messages]
    ask: Callable[[Model, Messages], EventStream]
    files: Files
    rows: Rows
    clock: Clock
    zone: tzinfo
    marks: Callable[[], Marks]
    lock: asyncio.Lock


async def flush(ground: Ground, cancel: Cancel) -> None:
    """Once for each time the history is cut. Whatever goes wrong is logged and changes nothing."""
    key = ground.run.session_key
    session = await ground.rows.get(key)
    extra: Mapping[str, Any] = session.extra if session is not None else {}
    cycle = extra.get("compactionCount", 0)
    if session is None or extra.get("memoryFlushCompactionCount") == cycle:
        return
    await save(ground, cancel)
    if not cancel.is_set:
        done = {"memoryFlushAt": ground.clock.now_ms(), "memoryFlushCompactionCount": cycle}
        await ground.rows.record(key, extra=done)


async def save(ground: Ground, cancel: Cancel) -> None:
    """Once more, whatever was saved before: the conversation ends here."""
    try:
        async with asyncio.timeout(TIMEOUT_S):
            await _ask(ground, cancel)
    except TimeoutError:
        log.warning("%s: the agent took too long to save what should last", ground.run.session_key)
    except GarraError as error:
        log.warning("%s: what should last was not saved: %s", ground.run.session_key, error.message)


async def _ask(ground: Ground, cancel: Cancel) -> None:
    path = diary(ground.clock.now_ms(), ground.zone)
    prompt = await asyncio.to_thread(instructions)
    words = prompt.replace("{path}", path).replace("{silence}", SILENCE)
    talk: Messages = (*ground.messages(), User((Text(words),), ground.clock.now_ms()))
    left = LONGEST
    for _ in range(STEPS):
        stream = ground.ask(ground.model, talk)
        detach = cancel.attach(stream.abort)
        try:
            answer = await stream.result()
        finally:
            detach()
            stream.abort()
        if not answer.calls or cancel.is_set:
            return
        results: list[ToolResult] = []
        for call in answer.calls:
            result, used = await _call(ground, call, path, left)
            left -= used
            results.append(result)
        talk = (*talk, answer, *results)


async def _call(ground: Ground, call: ToolCall, path: str, left: int) -> tuple[ToolResult, int]:
    """What a call gives, and how many characters it added."""
    given, text = call.arguments.get("path", call.arguments.get("file_path")), call.arguments.get("content")
    own = isinstance(given, str) and given.removeprefix("./") == path
    if call.name != TOOL or not own or not isinstance(text, str) or not text.strip():
        return _said(ground, call, REFUSED.format(path=path), failed=True), 0
    try:
        added = await _append(ground, path, text, left)
    except ToolFailed as error:
        return _said(ground, call, error.message, failed=True), 0
    return _said(ground, call, f"Added {added} characters to {path}.", failed=False), added


async def _append(ground: Ground, path: str, text: str, left: int) -> int:
    """Add to the diary; what stands there stays, whatever the model made of it."""
    async with ground.lock:
        old = await asyncio.to_thread(_read, ground.files, path)
        fresh = text[len(old) :] if old and text.startswith(old) else text
        fresh = defused(fresh.strip())[: max(0, left)]
        if not fresh:
            return 0
        head = origin(whose(ground.run), ground.marks(), noted=NOTED in old)
        entry = f"{head}{fresh}\n"
        joint = "" if not old or old.endswith("\n") else "\n"
        data = f"{old}{joint}{entry}".encode(errors="replace")
        await asyncio.to_thread(ground.files.write, path, data)
    return len(fresh)


def defused(text: str) -> str:
    """Words of a model without anything that the diary's readers would take for a note on where words come from."""
    return text.replace("<!--", "<! --").replace("-->", "-- >")


def _read(files: Files, path: str) -> str:
    if files.stat(path) is None:
        return ""
    return files.read(path, LIMIT).decode("utf-8", "replace")


def origin(owner: str, marks: Marks, *, noted: bool) -> str:
    """The line above words, for whoever reads the diary: with whom they were spoken, where that was not the owner, and
    what had been read. `noted`: such a line stands in the file, so that words without one would be taken for its.
    """
    with_ = f" with {owner}" if owner else ""
    read = f" that read {taint.brief(marks)}" if marks.count else ""
    return f"{NOTED}{with_}{read} -->\n" if with_ or read or noted else ""


def whose(run: Run) -> str:
    """Whose words a conversation holds: `channel:account:sender`, empty for the owner's own."""
    place = run.turn.place
    who = f"{place.channel}:{place.account}:{place.sender}" if place is not None and not place.owner else ""
    return "".join(who.split())


def _said(ground: Ground, call: ToolCall, text: str, *, failed: bool) -> ToolResult:
    return ToolResult(call.id, call.name, (Text(text),), ground.clock.now_ms(), failed)


def diary(now_ms: int, zone: tzinfo) -> str:
    """Today's diary, as the agent names it."""
    return f"memory/{datetime.fromtimestamp(now_ms / 1000, zone):%Y-%m-%d}.md"


@cache
def instructions() -> str:
    """What the agent is told. Reads a file, once."""
    return (resources.files(__package__) / "prompts" / "flush.md").read_text("utf-8").strip()
