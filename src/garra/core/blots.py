"""Keeping known secrets out of everything that leaves: chats, models, transcripts, events, exports.

A secret is known by its text and by the forms that programs give it without meaning to hide it: JSON text, percent
encoding, hex, base64 at each of its three alignments. What somebody writes in order to hide it (backwards, spelled
out, encrypted) no search can find; against that helps only that no tool is ever given a secret.
"""

from __future__ import annotations

import base64
import json
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar
from urllib.parse import quote, quote_plus

from garra.core.messages import Assistant, Message, Part, Text, Thinking, ToolCall, ToolResult
from garra.core.patterns import later
from garra.core.value import frozen, replace

BLOT = "***"
"""What stands where a secret was."""
LONG = 16
"""A text of so many characters is taken for a secret whatever it is made of."""
SHORT = 8
"""Shorter ones are not searched for in what people read, nor are plain words (`lm-studio`)."""
FEW = 64
"""So many are looked for one by one: cheaper than to find the runs of letters first."""
ENCODED = 10
"""Shorter encodings are left out: they would blot out innocent text."""

_WORD = later(r"[a-z]+(?:[-_ .][a-z]+)*")
_RUNS = later(r"[^\s\"'<>`|]{8,}")
_APART = frozenset(" \t\n\r\"'<>`|")
"""What no run of letters has in it (`_RUNS`)."""

_M = TypeVar("_M", bound=Message)


def weighty(text: str) -> bool:
    """Whether a secret is searched for in what people read: long, or no plain word."""
    return len(text) >= LONG or (len(text) >= SHORT and _WORD.fullmatch(text) is None)


def forms(secret: str) -> frozenset[str]:
    """The texts under which a secret may show."""
    data = secret.encode("utf-8", "surrogatepass")
    found = {secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}
    found |= {quote(data, safe=""), quote(data), quote_plus(data)}
    encoded = {data.hex(), data.hex().upper()}
    for shift in range(3):
        text = base64.b64encode(b"\0" * shift + data).decode()
        inner = text[(shift * 8 + 5) // 6 : (shift + len(data)) * 8 // 6]
        encoded |= {inner, inner.replace("+", "-").replace("/", "_")}
    return frozenset(text for text in found if text) | {text for text in encoded if len(text) >= ENCODED}


@frozen
class Blots:
    """The secrets of one moment. Made by `blots`; one that knows none costs nothing."""

    tight: tuple[str, ...] = ()
    loose: tuple[str, ...] = ()
    ordered: tuple[str, ...] = ()
    longest: int = 0
    starts: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.ordered)

    def text(self, text: str) -> str:
        """`text` without them; the same object where there is none in it."""
        if not self.ordered or len(text) < SHORT:
            return text
        for needle in self._in(text):
            text = text.replace(needle, BLOT)
        return text

    def _in(self, text: str) -> list[str]:
        """Those in `text`, the longest first. Most have no gap, and most text is short words: where there are many to
        look for, those are passed over.
        """
        found = [needle for needle in self.loose if needle in text]
        runs = text if len(self.tight) <= FEW else "\n".join(_RUNS.findall(text))
        found += [needle for needle in self.tight if needle in runs] if runs else ()
        return sorted(found, key=len, reverse=True)

    def value(self, value: Any) -> Any:
        """A JSON value without them, names of keys too; the same object where there is none in it."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            made = {self.text(k) if isinstance(k, str) else k: self.value(below) for k, below in value.items()}
            same = all(k in value and value[k] is below for k, below in made.items())
            return value if same else made
        if isinstance(value, list | tuple):
            parts = [self.value(below) for below in value]
            same = all(old is new for old, new in zip(value, parts, strict=True))
            return value if same else parts
        return value

    def data(self, data: bytes) -> bytes:
        """JSON (or other UTF-8) without them; the same object where there is none in it."""
        if not self.ordered:
            return data
        text = data.decode("utf-8", "surrogateescape")
        clean = self.text(text)
        return data if clean is text else clean.encode("utf-8", "surrogateescape")

    def parts(self, parts: tuple[Part, ...]) -> tuple[Part, ...]:
        """Parts of a message without them."""
        made = tuple(self._part(part) for part in parts)
        return parts if all(old is new for old, new in zip(parts, made, strict=True)) else made

    def _part(self, part: Part) -> Part:
        match part:
            case Text() | Thinking():
                text = self.text(part.text)
                return part if text is part.text else replace(part, text=text)
            case ToolCall():
                arguments = self.value(part.arguments)
                return part if arguments is part.arguments else replace(part, arguments=arguments)
            case _:
                return part

    def message(self, message: _M) -> _M:
        """A message without them; the same object where there is none in it."""
        if not self.ordered:
            return message
        changes: dict[str, Any] = {"content": self.parts(message.content), "meta": self.value(message.meta)}
        if isinstance(message, Assistant):
            changes["error"] = message.error and self.text(message.error)
        elif isinstance(message, ToolResult):
            changes["details"] = self.value(message.details)
        changed = {name: new for name, new in changes.items() if new is not getattr(message, name)}
        return replace(message, **changed) if changed else message

    def open(self, text: str) -> int:
        """How many letters at the end of `text` may be the beginning of one, with any that ends within them."""
        edge = len(text)
        for at in range(max(0, edge - self.longest + 1), edge):
            if text[at] in self.starts and self._begins(text[at:]):
                edge = at
                break
        if edge == len(text):
            return 0
        for needle in self._in(text):
            start = text.rfind(needle)
            if start < edge < start + len(needle):
                edge = start
        return len(text) - edge

    def _begins(self, text: str) -> bool:
        """Whether one begins with `text` and goes on."""
        at = bisect_left(self.ordered, text)
        while at < len(self.ordered) and self.ordered[at].startswith(text):
            if len(self.ordered[at]) > len(text):
                return True
            at += 1
        return False


NONE = Blots()


def blots(secrets: Iterable[str]) -> Blots:
    """What finds these secrets, as far as they are weighty; those with line breaks by their long lines too."""
    known = {text.strip() for text in secrets}
    known |= {line.strip() for text in known if "\n" in text for line in text.splitlines() if len(line) >= LONG}
    needles = {form for text in known if weighty(text) for form in forms(text)}
    loose = {needle for needle in needles if not _APART.isdisjoint(needle) or any(map(str.isspace, needle))}
    return Blots(
        tuple(sorted(needles - loose, key=len, reverse=True)),
        tuple(sorted(loose, key=len, reverse=True)),
        tuple(sorted(needles)),
        max(map(len, needles), default=0),
        frozenset(needle[0] for needle in needles),
    )


@frozen
class Flow:
    """Words that arrive in pieces: what may be the beginning of a secret waits for what follows it."""

    blots: Blots
    held: str = ""

    def step(self, delta: str) -> tuple[Flow, str]:
        """The flow after `delta`, and what of the words may be shown by now."""
        text = self.held + delta
        keep = self.blots.open(text) if self.blots else 0
        shown = text[: len(text) - keep]
        return Flow(self.blots, text[len(text) - keep :]), self.blots.text(shown)

    def rest(self) -> str:
        """What waited, when nothing follows."""
        return self.blots.text(self.held)
