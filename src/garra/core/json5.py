"""Where everything stands in a JSON5 text: a tree of spans, without the values' meaning.

A fast parser gives the values; this one gives the places, for edits that keep what a person wrote and for faults
that name a line and a column.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from garra.core.dotted import Path
from garra.core.patterns import later
from garra.core.value import frozen

MAX_DEPTH = 200


class Broken(Exception):
    """The text is not JSON5. `line` and `column` count from 1."""

    def __init__(self, text: str, at: int, message: str) -> None:
        self.line = text.count("\n", 0, at) + 1
        self.column = at - (text.rfind("\n", 0, at) + 1) + 1
        self.message = message
        super().__init__(f"line {self.line}, column {self.column}: {message}")


@frozen
class Node:
    """One value: it stands at `text[start:end]`. An object has members, a list has items, else it has neither."""

    kind: Literal["object", "list", "text", "word"]
    start: int
    end: int
    members: tuple[Member, ...] = ()
    items: tuple[Item, ...] = ()


@frozen
class Member:
    """One `key: value` of an object; `comma` is where the comma after it stands, None without one."""

    key: str
    start: int
    value: Node
    comma: int | None


@frozen
class Item:
    """One value of a list, and its comma."""

    value: Node
    comma: int | None


_SPACE = later(r"(?:[\s\ufeff]+|//[^\n\r\u2028\u2029]*|/\*.*?\*/)*", re.S)
_STRING = later(r"""(?s)"(?:[^"\\\n\r]|\\(?:\r\n|.))*"|'(?:[^'\\\n\r]|\\(?:\r\n|.))*'""")
_NAME = later(r"(?:[\w$\u200c\u200d]|\\u[0-9a-fA-F]{4})+")
_WORD = later(
    r"(?:true|false|null|[+-]?(?:Infinity|NaN|0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?))(?![\w$.])"
)
_ESCAPE = later(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(\r\n|.))", re.S)
_HALF = later("[\ud800-\udfff]")
_NAMED = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "0": "\0"}
_NAMED |= dict.fromkeys(("\n", "\r", "\r\n", "\u2028", "\u2029"), "")


def unescape(text: str) -> str:
    """What a quoted text (without its quotes) or a bare key says."""

    def one(found: re.Match[str]) -> str:
        code, short, plain = found.groups()
        return chr(int(code or short, 16)) if code or short else _NAMED.get(plain, plain)

    said = _ESCAPE.sub(one, text)
    if _HALF.search(said):  # two escapes may name the halves of one character
        said = said.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return said


@dataclass(slots=True)
class _Reader:
    text: str
    at: int = 0
    depth: int = field(default=0)

    def space(self) -> None:
        found = _SPACE.match(self.text, self.at)
        self.at = found.end() if found else self.at
        if self.text.startswith("/*", self.at):
            raise Broken(self.text, self.at, "this comment is never closed")

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def fault(self, wanted: str) -> Broken:
        return Broken(self.text, self.at, f"expected {wanted}, found {_name(self.peek())}")

    def value(self) -> Node:
        self.space()
        first = self.peek()
        if first in ("{", "["):
            return self.nested(first)
        if first in ('"', "'"):
            return self.string()
        found = _WORD.match(self.text, self.at)
        if found is None:
            raise self.fault("a value")
        start, self.at = self.at, found.end()
        return Node("word", start, self.at)

    def nested(self, first: str) -> Node:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Broken(self.text, self.at, "nested too deeply")
        node = self.object() if first == "{" else self.list()
        self.depth -= 1
        return node

    def string(self) -> Node:
        found = _STRING.match(self.text, self.at)
        if found is None:
            raise Broken(self.text, self.at, "this text is never closed on its line")
        start, self.at = self.at, found.end()
        return Node("text", start, self.at)

    def key(self) -> str:
        if self.peek() in ('"', "'") and self.peek():
            node = self.string()
            return unescape(self.text[node.start + 1 : node.end - 1])
        found = _NAME.match(self.text, self.at)
        if found is None or self.peek().isdecimal():
            raise self.fault("a key or }")
        self.at = found.end()
        return unescape(found.group())

    def comma(self, closing: str) -> int | None:
        """Pass the comma, if one stands here; without one, the closing bracket must."""
        self.space()
        if self.peek() == ",":
            self.at += 1
            return self.at - 1
        if self.peek() != closing:
            raise self.fault(f"a comma or {closing}")
        return None

    def object(self) -> Node:
        start = self.at
        self.at += 1
        members: list[Member] = []
        while True:
            self.space()
            if self.peek() == "}":
                self.at += 1
                return Node("object", start, self.at, members=tuple(members))
            begin, key = self.at, self.key()
            self.space()
            if self.peek() != ":":
                raise self.fault(f"a colon after the key '{key}'")
            self.at += 1
            value = self.value()
            members.append(Member(key, begin, value, self.comma("}")))

    def list(self) -> Node:
        start = self.at
        self.at += 1
        items: list[Item] = []
        while True:
            self.space()
            if self.peek() == "]":
                self.at += 1
                return Node("list", start, self.at, items=tuple(items))
            value = self.value()
            items.append(Item(value, self.comma("]")))


def _name(character: str) -> str:
    if not character:
        return "the end of the file"
    return "the end of the line" if character in "\n\r" else f"'{character}'"


def parse(text: str) -> Node:
    """The tree of a JSON5 text. Raises Broken with line and column."""
    reader = _Reader(text)
    node = reader.value()
    reader.space()
    if reader.at < len(text):
        raise reader.fault("the end of the file")
    return node


def child(node: Node, part: str | int) -> Node | None:
    """The value below a key (of several equal ones the last counts) or at a position."""
    if isinstance(part, int) and node.kind == "list":
        return node.items[part].value if part < len(node.items) else None
    return next((member.value for member in reversed(node.members) if member.key == str(part)), None)


def find(root: Node, path: Path) -> Node | None:
    """The value at a path, or None."""
    node: Node | None = root
    for part in path:
        node = child(node, part) if node is not None else None
    return node


def line_of(text: str, root: Node, path: Path) -> int:
    """The line (from 1) of the value at a path, or of the nearest thing above it that exists."""
    node = root
    for part in path:
        below = child(node, part)
        if below is None:
            break
        node = below
    return text.count("\n", 0, node.start) + 1


def leaves(node: Node, at: Path = ()) -> Iterator[tuple[Path, Node]]:
    """Every single value with its path."""
    for member in node.members:
        yield from leaves(member.value, (*at, member.key))
    for index, item in enumerate(node.items):
        yield from leaves(item.value, (*at, index))
    if node.kind in ("text", "word"):
        yield at, node
