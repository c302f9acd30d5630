"""Which old results of tools a model is sent in brief, once its provider has forgotten what it was sent before.

A provider keeps a prompt in its cache for some minutes (`ttl_ms`). While it does, a history is sent as it was: a change
would cost more than it saves. After a longer pause the cache is cold, and old results are made smaller:

    at `soft_ratio` of the window    results over `most` characters keep their beginning and their end, pictures go
    at `hard_ratio` of the window    oldest first, whole results go, until it is less, where `min_chars` can be freed

Nothing before the first words of a person is touched, nor the last `keep_assistants` answers and what follows them.
When a pause was is told by the times of the stored messages alone, so the same history is always sent the same way,
after a restart too, and what was made smaller stays so.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, Literal, TypeVar

from garra.core import glob
from garra.core.compaction import CHARS, Steps, chars
from garra.core.messages import Assistant, Image, Message, Text, ToolResult, User
from garra.core.value import frozen

Mode = Literal["off", "cache-ttl"]
T = TypeVar("T", User, ToolResult)

RECENT: Final = 64
"""How far back a history may have been read again: a turn's messages come from its loop first, from the disk later."""

CLEARED: Final = "[Old tool result content cleared]"
NO_PICTURE: Final = "[image removed during context pruning]"


@frozen
class Settings:
    """Ratios are of the model's window, sizes in characters. `allow` and `deny` are patterns of tools' names; a denial
    wins, and no `allow` allows all.
    """

    mode: Mode = "cache-ttl"
    ttl_ms: int = 5 * 60_000
    keep_assistants: int = 3
    soft_ratio: float = 0.3
    hard_ratio: float = 0.5
    min_chars: int = 50_000
    most: int = 4_000
    head: int = 1_500
    tail: int = 1_500
    clears: bool = True
    placeholder: str = CLEARED
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()

    def prunable(self) -> Callable[[str], bool]:
        """Says of a tool's name whether its results may be made smaller."""
        allow = [glob.compiled(each.lower()) for each in self.allow]
        deny = [glob.compiled(each.lower()) for each in self.deny]

        def may(name: str) -> bool:
            name = name.lower()
            return not any(fits(name) for fits in deny) and (not allow or any(fits(name) for fits in allow))

        return may


@frozen
class Report:
    """What was made smaller: results `trimmed` and `cleared`, pictures left out, characters saved in `rounds`."""

    trimmed: int = 0
    cleared: int = 0
    pictures: int = 0
    saved: int = 0
    rounds: int = 0


class Pruning:
    """One history as a model with a window of `window` tokens is sent it. What was looked at once is not looked at
    again as long as the history only grows. `steps` tells by how much it is smaller than what is stored, from when on.
    """

    def __init__(self, settings: Settings, window: int) -> None:
        self._settings, self._room = settings, max(window, 1) * CHARS
        self._may = settings.prunable()
        self._begin()

    def _begin(self) -> None:
        self._seen: tuple[Message, ...] = ()
        self._total = 0
        self._touched: int | None = None
        self._first: int | None = None
        self._answers: deque[int] = deque(maxlen=max(self._settings.keep_assistants, 1))
        self._looked = 0
        self._whole: deque[int] = deque()
        self._left = 0
        self._changed: dict[int, Message] = {}
        self.report = Report()
        self.steps: Steps = ()

    def on(self, messages: tuple[Message, ...]) -> None:
        """Look at `messages`: at what is new, or, where the history is another one, at all of it."""
        known = len(self._seen)
        if known > len(messages) or not _alike(messages, self._seen):
            self._begin()
            known = 0
        for at in range(known, len(messages)):
            self._take(messages, at)
        self._seen = messages

    def view(self, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        """`messages` as they are sent; the same objects but for those that are made smaller."""
        if self._settings.mode == "off":
            return messages
        self.on(messages)
        if not self._changed:
            return messages
        shown = list(messages)
        for at, message in self._changed.items():
            shown[at] = message
        return tuple(shown)

    def _take(self, messages: tuple[Message, ...], at: int) -> None:
        message = messages[at]
        self._total += chars(message)
        if isinstance(message, Assistant):
            self._answers.append(at)
            if message.stop not in ("error", "aborted"):
                self._touched = message.timestamp
            return
        if self._first is None and isinstance(message, User):
            self._first = at
        if self._touched is not None and message.timestamp - self._touched >= self._settings.ttl_ms:
            self._round(messages, at)

    def _round(self, messages: Sequence[Message], at: int) -> None:
        """The cache is cold: make smaller what may be."""
        keep = self._settings.keep_assistants
        if self._first is None or len(self._answers) < keep or self._full < self._settings.soft_ratio:
            return
        end = self._answers[0] if keep else len(messages)
        before = self._total
        for old in range(max(self._looked, self._first), end):
            self._soften(messages[old], old)
        self._looked = max(self._looked, end)
        self._clear(messages)
        if self._total != before:
            saved, rounds = self.report.saved + before - self._total, self.report.rounds + 1
            self.report = replace(self.report, saved=saved, rounds=rounds)
            self.steps = (*self.steps, (at, saved))
            self._touched = messages[at].timestamp

    @property
    def _full(self) -> float:
        return self._total / self._room

    def _soften(self, message: Message, at: int) -> None:
        if isinstance(message, User):
            if any(isinstance(part, Image) for part in message.content):
                self._put(at, message, _blind(message))
        elif isinstance(message, ToolResult) and self._may(message.name):
            shown = self._trimmed(message)
            if shown is not message:
                self._put(at, message, shown)
            self._whole.append(at)
            self._left += chars(shown)

    def _trimmed(self, message: ToolResult) -> ToolResult:
        settings = self._settings
        blind = _blind(message) if any(isinstance(part, Image) for part in message.content) else message
        text = blind.text
        if len(text) <= settings.most:
            return blind
        self.report = replace(self.report, trimmed=self.report.trimmed + 1)
        kept = f"first {settings.head:,} and the last {settings.tail:,} of {len(text):,} characters"
        end = text[-settings.tail :] if settings.tail else ""
        return replace(
            blind, content=(Text(f"{text[: settings.head]}\n...\n{end}\n\n[Trimmed: the {kept} are kept.]"),)
        )

    def _clear(self, messages: Sequence[Message]) -> None:
        settings = self._settings
        if not settings.clears or self._full < settings.hard_ratio or self._left < settings.min_chars:
            return
        while self._whole and self._full >= settings.hard_ratio:
            at = self._whole.popleft()
            found = self._changed.get(at, messages[at])
            assert isinstance(found, ToolResult)
            self._left -= chars(found)
            empty = replace(found, content=(Text(settings.placeholder),))
            if chars(empty) < chars(found):
                self.report = replace(self.report, cleared=self.report.cleared + 1)
                self._put(at, found, empty)

    def _put(self, at: int, before: ToolResult | User, after: ToolResult | User) -> None:
        gone = sum(isinstance(part, Image) for part in before.content)
        self.report = replace(self.report, pictures=self.report.pictures + gone)
        self._total += chars(after) - chars(before)
        self._changed[at] = after


def _blind(message: T) -> T:
    """Words in place of pictures."""
    shown = tuple(Text(NO_PICTURE) if isinstance(part, Image) else part for part in message.content)
    return replace(message, content=shown)


def _alike(messages: Sequence[Message], start: Sequence[Message]) -> bool:
    """Whether `messages` begin with `start`: object for object, or word for word."""
    end, old = len(start), max(0, len(start) - RECENT)
    if messages[:old] == start[:old]:  # a comparison of tuples looks into nothing that is the same object
        return all(map(_same, start[old:], messages[old:end]))
    return all(map(_same, start, messages))


def _same(one: Message, other: Message) -> bool:
    if one is other:
        return True
    return type(one) is type(other) and one.timestamp == other.timestamp and one.content == other.content
