"""What may be sent to a model: a history that no provider refuses, whatever was stored.

Every call is followed by exactly its results; a call that never ended gets one that says so. Ids are made unique and
safe, nothing opaque goes to another model than the one it came from, no text is empty, the first word is a user's.
The same beginning always gives the same beginning, so that a provider's cache holds.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, assert_never

from garra.core.messages import Assistant, Content, Image, Message, Part, Text, Thinking, ToolCall, ToolResult, User
from garra.core.value import frozen

INTERRUPTED = "interrupted: the program was restarted or aborted before this call finished; it was not run again"
NO_OUTPUT = "(no output)"
OPENING = "(the conversation begins with your own message)"
NO_PICTURES = "[image omitted: this model takes no pictures]"
BAD_PICTURE = "[image omitted: it is too large or of an unknown kind]"
LARGEST_PICTURE = 5_000_000
"""Characters of base64 that every provider still takes."""

_PICTURES = frozenset(("image/png", "image/jpeg", "image/gif", "image/webp"))
_SAFE_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}\Z")
_SHORT_ID = re.compile(r"[a-zA-Z0-9]{9}\Z")
_UNSAFE = re.compile(r"[^a-zA-Z0-9_-]")


class Target(Protocol):
    """The part of a model that decides what may be sent to it (`sdk.model.Model` has it)."""

    @property
    def provider(self) -> str: ...

    @property
    def id(self) -> str: ...

    @property
    def api(self) -> str: ...

    @property
    def input(self) -> tuple[str, ...]: ...


@frozen
class Request:
    """A checked history, and what is needed to check only what is new the next time.

    `source[:settled]` never changes its outcome any more: it is `messages[:kept]`, with the call ids `seen`.
    """

    messages: tuple[Message, ...]
    source: tuple[Message, ...]
    target: tuple[str, str, str, tuple[str, ...]]
    settled: int
    kept: int
    seen: frozenset[str]


def valid(messages: Sequence[Message], target: Target) -> tuple[Message, ...]:
    """`messages` as `target` accepts them."""
    return extend(None, tuple(messages), target).messages


def extend(previous: Request | None, messages: tuple[Message, ...], target: Target) -> Request:
    """Like `valid`, but what `previous` has checked of the same history is not checked again."""
    kind = (target.provider, target.id, target.api, target.input)
    fold = _Fold(target)
    start = 0
    if previous is not None and previous.target == kind and messages[: previous.settled] == previous.source:
        fold.out = list(previous.messages[: previous.kept])
        fold.seen = set(previous.seen)
        start = previous.settled
    for index in range(start, len(messages)):
        fold.take(messages[index], index)
    settled, kept, seen = fold.settle(len(messages))
    return Request(tuple(fold.finish()), messages[:settled], kind, settled, kept, frozenset(seen))


@dataclass(slots=True)
class _Slot:
    """One call that was sent out under the id `sent`, and its result once it came."""

    call: ToolCall
    sent: ToolCall
    result: ToolResult | None = None


@dataclass(slots=True)
class _Open:
    """An assistant's calls of which some have no result yet, and what a user said meanwhile."""

    index: int
    position: int
    timestamp: int
    slots: list[_Slot]
    waiting: list[Message]


class _Fold:
    """Walks over a history once; lives inside one call of `extend`."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.pictures = "image" in target.input
        self.out: list[Message] = []
        self.seen: set[str] = set()
        self.open: _Open | None = None

    def take(self, message: Message, index: int) -> None:
        match message:
            case User():
                self._user(message)
            case Assistant():
                self._assistant(message, index)
            case ToolResult():
                self._result(message)
            case _:
                assert_never(message)

    def _user(self, message: User) -> None:
        content = self._content(message.content)
        if not content:
            return
        said = message if content is message.content else replace(message, content=content)
        if self.open is None:
            self.out.append(said)
        else:
            self.open.waiting.append(said)

    def _assistant(self, message: Assistant, index: int) -> None:
        self._close()
        content = tuple(part for part in message.content if self._sendable(part, message))
        if not any(not isinstance(part, Thinking) for part in content):
            return
        calls = [part for part in content if isinstance(part, ToolCall)]
        slots: list[_Slot] = []
        if calls:
            slots = [_Slot(call, self._named(call)) for call in calls]
            sent = iter(slots)
            content = tuple(next(sent).sent if isinstance(part, ToolCall) else part for part in content)
        if not self.out:
            self.out.append(User((Text(OPENING),), message.timestamp))
        position = len(self.out)
        self.out.append(message if content == message.content else replace(message, content=content))
        if slots:
            self.open = _Open(index, position, message.timestamp, slots, [])

    def _result(self, message: ToolResult) -> None:
        if self.open is None:
            return
        slot = next((s for s in self.open.slots if s.result is None and s.call.id == message.call_id), None)
        if slot is None:
            return
        content = self._content(message.content) or (Text(NO_OUTPUT),)
        slot.result = replace(message, call_id=slot.sent.id, name=slot.sent.name, content=content)
        if all(each.result is not None for each in self.open.slots):
            self._close()

    def _close(self) -> None:
        """Answer the open calls, those without a result by saying so."""
        if self.open is not None:
            self.out.extend(self._answers(self.open))
            self.open = None

    def _answers(self, held: _Open) -> list[Message]:
        lost = (Text(INTERRUPTED),)
        results: list[Message] = [
            slot.result or ToolResult(slot.sent.id, slot.sent.name, lost, held.timestamp, is_error=True)
            for slot in held.slots
        ]
        return results + held.waiting

    def settle(self, length: int) -> tuple[int, int, set[str]]:
        """How much of the source, and of the outcome, nothing that comes later can change."""
        if self.open is None:
            return length, len(self.out), self.seen
        return self.open.index, self.open.position, self.seen - {slot.sent.id for slot in self.open.slots}

    def finish(self) -> list[Message]:
        self._close()
        return self.out

    def _sendable(self, part: Part, message: Assistant) -> bool:
        match part:
            case Text():
                return bool(part.text.strip())
            case Thinking():
                return self._own(part, message)
            case Image():
                return False
            case _:
                return True

    def _own(self, part: Thinking, message: Assistant) -> bool:
        """Whether a thought may go back: only whole, and only to the model that thought it."""
        if message.stop in ("error", "aborted"):
            return False
        if (message.provider, message.model, message.api) != (self.target.provider, self.target.id, self.target.api):
            return False
        return bool(part.signature) or (self.target.api != "anthropic-messages" and bool(part.text))

    def _content(self, content: Content) -> Content:
        """`content` without empty words and with words in place of pictures that cannot be sent."""
        if all(isinstance(part, Text) and part.text and not part.text.isspace() for part in content):
            return content
        return tuple(self._shown(part) for part in content if isinstance(part, Image) or part.text.strip())

    def _shown(self, part: Text | Image) -> Text | Image:
        if isinstance(part, Text):
            return part
        if not self.pictures:
            return Text(NO_PICTURES)
        return part if part.media_type in _PICTURES and 0 < len(part.data) <= LARGEST_PICTURE else Text(BAD_PICTURE)

    def _named(self, call: ToolCall) -> ToolCall:
        """`call` under an id that is safe and new, and a name that is allowed."""
        short = self.target.provider == "mistral" or self.target.api == "mistral-conversations"
        id_ = call.id if (_SHORT_ID if short else _SAFE_ID).match(call.id) else ""
        if not id_ or id_ in self.seen:
            id_ = self._new_id(call.id, short=short)
        self.seen.add(id_)
        name = call.name if _SAFE_ID.match(call.name) else _UNSAFE.sub("_", call.name)[:64] or "unknown"
        return call if (id_, name) == (call.id, call.name) else ToolCall(id_, name, call.arguments)

    def _new_id(self, wanted: str, *, short: bool) -> str:
        """Derived from what came before only, so that the same history is always sent the same way."""
        stem = "" if short else _UNSAFE.sub("_", wanted)[:48] or "call"
        count = len(self.seen)
        while (id_ := f"c{count:08d}" if short else f"{stem}_{count}") in self.seen:
            count += 1
        return id_


def without_pictures(messages: Sequence[Message], which: Collection[Image] | None = None) -> tuple[Message, ...]:
    """`messages` with words in place of every picture (or of `which`), for when a provider refused one."""
    return tuple(_unpictured(message, which) for message in messages)


def _unpictured(message: Message, which: Collection[Image] | None) -> Message:
    if isinstance(message, Assistant) or not any(_is_one(part, which) for part in message.content):
        return message
    shown = tuple(Text(BAD_PICTURE) if _is_one(part, which) else part for part in message.content)
    return replace(message, content=shown)


def _is_one(part: Text | Image, which: Collection[Image] | None) -> bool:
    return isinstance(part, Image) and (which is None or part in which)


def without_thinking(messages: Sequence[Message]) -> tuple[Message, ...]:
    """`messages` without any thought, for when a provider refused one."""
    return tuple(_unthinking(message) for message in messages)


def _unthinking(message: Message) -> Message:
    if not isinstance(message, Assistant) or not any(isinstance(part, Thinking) for part in message.content):
        return message
    return replace(message, content=tuple(part for part in message.content if not isinstance(part, Thinking)))
