"""When a conversation grows too large for its model, and what of it is then told in brief: decisions, no deeds.

A history is measured in characters and told in tokens. The measure is put right by what providers counted: see
`Measure`. The ladder, from what costs nothing to what loses most, each step only where the one before is not enough:

    trim    long results of tools, but the newest, keep their beginning and their end
    cut     what is old is summed up; the newest stays as it is, and the last turn of a person always does
    trim    where that failed: all results, as far as is needed
    drop    what is old is left out with a note that says so
    ""      nothing helps: the person is told
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from garra.core.messages import Assistant, Image, Message, Text, Thinking, ToolResult, User
from garra.core.value import frozen

IMAGE_CHARS: Final = 8_000
"""What a picture counts."""
CHARS: Final = 4
"""Characters of a token, about."""
SPARSE: Final = 0.5
DENSE: Final = 4.0
"""How many tokens a model counts for one that is estimated: as few, as many."""
FRAME: Final = 16
"""What stands around a message."""
FLOOR: Final = 20_000
"""Tokens that stay free for the answer and for housekeeping, where the window is large enough."""
KEEP: Final = 20_000
"""Tokens of the newest messages that are kept as they are, where the window is large enough."""
SUMMARY: Final = 4_000
"""Tokens that a summary may have at most."""
ENOUGH: Final = 0.9
"""What is left must be at most so much of what was there: a step that frees less is none."""
EASED: Final = 0.7
"""Trimming alone is enough where it leaves so much of the limit, so that the next one is not due at once."""
TRIMMED: Final = 2_000
"""Characters that trimming leaves of an old result."""
NOTE: Final = 128
"""What stands in place of what was clipped, and around it."""
CAPS: Final = (16_000, 8_000, 4_000, 2_000, 1_000, 500, 200)
NEWEST: Final = 8
"""The results that the model has not answered yet keep so many times more."""

Step = Literal["trim", "cut", "drop"]
Steps = tuple[tuple[int, int], ...]
"""(index, characters): how much less than what is stored a model is sent, from the message at the index on."""
Span = tuple[int, int]
"""All tool results before this index (and behind the span before) have at most so many characters."""


def weight(text: str) -> int:
    """Characters of ASCII, bytes of anything else: a Chinese character is most of a token."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


def chars(message: Message) -> int:
    """What a message counts: its words, thoughts, calls and pictures. `details` and the like go to no model."""
    size = FRAME
    for part in message.content:
        if isinstance(part, Text | Thinking):
            size += weight(part.text)
        elif isinstance(part, Image):
            size += IMAGE_CHARS
        else:
            size += FRAME + len(part.name) + _json(part.arguments)
    return size


def _json(value: object) -> int:
    try:
        return len(msgspec.json.encode(value))
    except (UnicodeEncodeError, TypeError):
        return len(repr(value))


@frozen
class Limits:
    """Of one model: tokens of its `window`, and `limit`, from which on a history is too large for it."""

    window: int
    limit: int

    @property
    def reserve(self) -> int:
        return self.window - self.limit


def limits(window: int, wanted: int | None = None, floor: int = FLOOR) -> Limits:
    """The limit of a window. The reserve is the floor, or a quarter of a small window; more where more is `wanted`, up
    to half of the window: a small model is neither always full nor never.
    """
    window = max(window, 1)
    reserve = max(min(floor, window // 4), min(wanted or 0, window // 2))
    return Limits(window, window - reserve)


@frozen
class Room:
    """What a history may take. `fixed` tokens go with every request (the prompt, the tools); `ratio` is how many tokens
    this model counts for one that is estimated.
    """

    limits: Limits
    fixed: int = 0
    ratio: float = 1.0
    keep: int = KEEP

    @property
    def free(self) -> int:
        """Tokens for the history; where the prompt alone fills the window, a little all the same."""
        return max(self.limits.limit - self.fixed, self.limits.window // 8, 1)

    @property
    def kept(self) -> int:
        """Tokens of the newest messages that stay as they are."""
        return min(self.keep, self.free // 2)

    @property
    def summary(self) -> int:
        """Tokens of a summary."""
        return max(1, min(SUMMARY, self.free // 5))

    def tokens(self, size: int) -> int:
        return math.ceil(size / CHARS * self.ratio)

    def size(self, tokens: int) -> int:
        """The inverse of `tokens`."""
        return int(tokens * CHARS / self.ratio)


class Measure:
    """How large one history is. What was measured once is not measured again, as long as the history only grows.

    `since` is when it was last made smaller: what a provider counted before that says nothing of it. `total` is what is
    stored, `sent` what a model gets of it.
    """

    __slots__ = ("__weakref__", "_counted", "_last", "_model", "_since", "sent", "sizes", "total")

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.total = 0
        self.sent = 0
        self._last: Message | None = None
        self._since = 0
        self._counted: tuple[int, int] | None = None
        self._model = ""

    def on(self, messages: Sequence[Message], since: int = 0, steps: Steps = ()) -> None:
        """Measure `messages`, of which `steps` tell how much is not sent; only what is new costs work."""
        known = len(self.sizes)
        if since != self._since or known > len(messages) or (known and messages[known - 1] is not self._last):
            self.sizes, self.total, self._counted, known = [], 0, None, 0
            self._since = since
        for at in range(known, len(messages)):
            message = messages[at]
            size = chars(message)
            self.sizes.append(size)
            self.total += size
            if isinstance(message, Assistant) and message.usage.total and message.timestamp > since:
                asked = self.total - saved(steps, at)
                self._counted, self._model = (asked, message.usage.total), f"{message.provider}/{message.model}"
        self._last = messages[-1] if messages else None
        self.sent = self.total - saved(steps, len(messages))

    def counted(self, model: str) -> tuple[int, int] | None:
        """(characters, tokens) at the last answer of `model` (`provider/id`), where that was the last answer of all."""
        return self._counted if self._model == model else None

    def tokens(self, room: Room, model: str) -> int:
        """What the next request takes: what was counted last, and what is new; else an estimate of everything.

        Some servers count nonsense: what they say is never believed below eight characters a token.
        """
        guess = room.fixed + room.tokens(self.sent)
        found = self.counted(model)
        if found is None:
            return guess
        size, tokens = found
        return max(tokens + room.tokens(self.sent - size), int(guess * SPARSE / room.ratio))


def saved(steps: Steps, end: int) -> int:
    """How much less was sent of the messages before index `end`."""
    return next((less for at, less in reversed(steps) if at < end), 0)


def learned(old: float | None, size: int, fixed: int, tokens: int) -> float:
    """The ratio after an answer to a request of `size` characters and `fixed` estimated tokens that counted `tokens`.

    It rises at once and falls slowly: a request must not be larger than was thought.
    """
    seen = min(DENSE, max(SPARSE, tokens / max(1.0, fixed + size / CHARS)))
    return seen if old is None else max(seen, 0.7 * old + 0.3 * seen)


@frozen
class Plan:
    """One step. All before index `at` goes, but for `also`, the person's own words of a turn that is cut; `spans` clip
    what stays. `before` and `after` are tokens, `after` without a summary.
    """

    step: Step
    at: int
    spans: tuple[Span, ...]
    before: int
    after: int
    also: tuple[int, ...] = ()


def last_turn(messages: Sequence[Message], first: int = 0) -> int:
    """Where the last words of a person begin; `len(messages)` where there are none from `first` on."""
    at = len(messages)
    for index in range(len(messages) - 1, first - 1, -1):
        if isinstance(messages[index], User):
            at = index
        elif at < len(messages):
            break
    return at


def boundary(messages: Sequence[Message], sizes: Sequence[int], most: int, first: int = 0) -> int:
    """The earliest index that a history may be cut at and that leaves at most `most` characters behind it.

    No call is parted from its results. A place where somebody speaks is taken where that leaves half as much at least.
    """
    kept, pending, best, turn = 0, False, len(messages), len(messages)
    for index in range(len(messages) - 1, first - 1, -1):
        kept += sizes[index]
        if kept > most:
            break
        message = messages[index]
        if isinstance(message, ToolResult):
            pending = True
            continue
        if isinstance(message, Assistant):
            pending, best = False, index
        elif not pending:
            best = turn = index
    if turn < len(messages) and 2 * sum(sizes[turn:]) >= sum(sizes[best:]):
        return turn
    return best


def newest(messages: Sequence[Message]) -> int:
    """Where the results begin that no model has answered yet."""
    at = len(messages)
    while at > 0 and not isinstance(messages[at - 1], Assistant):
        at -= 1
    return at


def clipped(messages: Sequence[Message], sizes: Sequence[int], start: int, spans: Sequence[Span]) -> int:
    """Characters of `messages` from `start` on when `spans` clip them."""
    total, index = sum(sizes[start:]), start
    for end, most in spans:
        for at in range(max(index, start), min(end, len(messages))):
            if isinstance(messages[at], ToolResult) and sizes[at] > most + NOTE:
                total -= sizes[at] - most - NOTE
        index = end
    return total


def caps(messages: Sequence[Message], sizes: Sequence[int], start: int, most: int) -> tuple[Span, ...]:
    """How results from `start` on are clipped so that `most` characters are left: as little as helps, the newest least.

    Where nothing helps it is the most that can be done.
    """
    if sum(sizes[start:]) <= most:
        return ()
    fresh = newest(messages)
    for cap in CAPS:
        spans: tuple[Span, ...] = ((fresh, cap), (len(messages), cap * NEWEST))
        if clipped(messages, sizes, start, spans) <= most:
            return spans
    return ((len(messages), CAPS[-1]),)


def enough(before: int, after: int, limit: int) -> bool:
    """Whether a step did what it was taken for."""
    return after <= limit and after <= before * ENOUGH


@frozen
class History:
    """What a model is shown, with the characters of each message. `before` is what a request with it takes in tokens;
    the first `told` messages are a summary already.
    """

    messages: Sequence[Message]
    sizes: Sequence[int]
    before: int
    told: int = 0


def trim(history: History, room: Room) -> Plan | None:
    """Old results alone, where that is enough."""
    messages, sizes, before = history.messages, history.sizes, history.before
    end = min(boundary(messages, sizes, room.size(room.kept)), newest(messages))
    spans: tuple[Span, ...] = ((end, TRIMMED),)
    freed = sum(sizes) - clipped(messages, sizes, 0, spans)
    after = before - room.tokens(freed)
    return Plan("trim", 0, spans, before, after) if freed and after <= EASED * room.limits.limit else None


def squeeze(history: History, room: Room) -> Plan | None:
    """All results, as far as is needed, where that is enough."""
    messages, sizes, before = history.messages, history.sizes, history.before
    spans = caps(messages, sizes, 0, room.size(int(EASED * room.free)))
    after = before - room.tokens(sum(sizes) - clipped(messages, sizes, 0, spans))
    return Plan("trim", 0, spans, before, after) if enough(before, after, room.fixed + room.free) else None


def cut(history: History, room: Room) -> Plan | None:
    """What is to be summed up; None where there is nothing."""
    return _cut("cut", history, room)


def drop(history: History, room: Room) -> Plan | None:
    """What is to be left out unread; None where that would not be enough."""
    plan = _cut("drop", history, room)
    if plan is None or not enough(plan.before, plan.after + room.summary, room.fixed + room.free):
        return None
    return plan


def _cut(step: Step, history: History, room: Room) -> Plan | None:
    messages, sizes, told = history.messages, history.sizes, history.told
    most = room.size(room.kept)
    at, turn = boundary(messages, sizes, most, told), last_turn(messages, told)
    also: tuple[int, ...] = ()
    if at > turn and not _fits(history, turn, most):
        own = turn
        while own < len(messages) and isinstance(messages[own], User):
            own += 1
        also = tuple(range(turn, own))
        at = max(boundary(messages, sizes, most - sum(sizes[turn:own]), own), own)
    elif at > turn:
        at = turn
    at = _whole(messages, at)
    if at <= told or not set(range(told, at)) - set(also):
        return None
    left = sum(sizes[index] for index in also)
    spans = caps(messages, sizes, at, most - left)
    after = room.fixed + room.tokens(clipped(messages, sizes, at, spans) + left)
    return Plan(step, at, spans, history.before, after, also)


def _fits(history: History, turn: int, most: int) -> bool:
    """Whether the whole last turn may stay, with results that still say something."""
    spans = caps(history.messages, history.sizes, turn, most)
    return clipped(history.messages, history.sizes, turn, spans) <= most and spans[0][1] >= TRIMMED // 2


def _whole(messages: Sequence[Message], at: int) -> int:
    """`at`, or, where nothing would be kept, the newest call with its results."""
    end = len(messages)
    if at < end or not end or isinstance(messages[-1], User):
        return at
    while at > 0 and isinstance(messages[at - 1], ToolResult):
        at -= 1
    return at - 1 if at < end and at > 0 and isinstance(messages[at - 1], Assistant) else end


_WINDOW = r"(?:maximum|limit|window|length)\D{0,60}?(\d[\d,_]{3,9})|> ?(\d{4,9}) maximum"


def stated(said: str, most: int) -> int | None:
    """The window that a refusal names, where it is smaller than `most`, which was thought."""
    found = (one or other for one, other in re.findall(_WINDOW, said, re.IGNORECASE))
    numbers = (int(re.sub(r"\D", "", each)) for each in found)
    return next((number for number in numbers if 1_000 <= number < most), None)
