"""The head of a Markdown file: the part of YAML that people write there, between two lines of `---`.

Maps and lists by indentation, quoted and plain words, `|` and `>` blocks, and braces or brackets over several lines
with trailing commas. No anchors, no tags, no dates: what is not understood is text.
"""

from __future__ import annotations

import re
from typing import Any

from garra.core.patterns import later

_HEAD = later(r"\A\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.S | re.M)
_PAIR = later(r"""("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s:#'"{}\[\]-][^:#]*?|-?[\w.-]+)\s*:(?:\s+(.*)|$)""")
_COMMENT = later(r"\s+#.*$")
_WORDS = {"true": True, "yes": True, "false": False, "no": False, "null": None, "~": None, "": None}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\", "/": "/"}
_ESCAPE = later(r"\\(u[0-9a-fA-F]{4}|.)", re.S)
DEPTH = 40


def split(text: str) -> tuple[dict[str, Any], str]:
    """(fields, body). No head: no fields. Never raises; a head that is no map gives no fields."""
    found = _HEAD.match(text)
    if not found:
        return {}, text
    lines = _Lines(found.group(1))
    fields = lines.block(0) if lines.left else {}
    return (fields if isinstance(fields, dict) else {}), text[found.end() :]


class _Lines:
    """The lines of a head, read once from the top."""

    def __init__(self, text: str) -> None:
        self._lines = text.replace("\t", "  ").splitlines()
        self._at = 0
        self._skip()

    @property
    def left(self) -> bool:
        return self._at < len(self._lines)

    @property
    def _indent(self) -> int:
        line = self._lines[self._at]
        return len(line) - len(line.lstrip())

    def _skip(self) -> None:
        while self.left and (not self._lines[self._at].strip() or self._lines[self._at].lstrip().startswith("#")):
            self._at += 1

    def _take(self) -> str:
        self._at += 1
        return self._lines[self._at - 1]

    def block(self, depth: int) -> Any:
        """The map, list or words that begin at this line."""
        first = self._lines[self._at].strip()
        if depth > DEPTH:
            return self._rest()
        if first == "-" or first.startswith("- "):
            return self._list(self._indent, depth)
        if first[0] not in "{[" and _PAIR.fullmatch(first):
            return self._map(self._indent, depth)
        return self._value(self._take().strip(), self._lines_indent(), depth)

    def _lines_indent(self) -> int:
        line = self._lines[self._at - 1]
        return len(line) - len(line.lstrip()) - 1

    def _rest(self) -> str:
        kept = " ".join(line.strip() for line in self._lines[self._at :])
        self._at = len(self._lines)
        return kept

    def _map(self, indent: int, depth: int) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        while self.left and self._indent == indent:
            pair = _PAIR.fullmatch(self._lines[self._at].strip())
            self._at += 1
            if pair:
                fields[str(_scalar(pair.group(1)) if pair.group(1)[0] in "'\"" else pair.group(1))] = self._value(
                    (pair.group(2) or "").strip(), indent, depth
                )
            self._skip()
        return fields

    def _list(self, indent: int, depth: int) -> list[Any]:
        items: list[Any] = []
        while self.left and self._indent == indent and self._lines[self._at].strip().startswith("-"):
            inner = self._lines[self._at].strip()[1:]
            if _PAIR.fullmatch(inner.strip()):
                self._lines[self._at] = " " * (indent + 1) + inner
                items.append(self.block(depth + 1))
            else:
                self._at += 1
                items.append(self._value(inner.strip(), indent, depth))
            self._skip()
        return items

    def _value(self, text: str, indent: int, depth: int) -> Any:
        """What follows a colon or a dash: here, or on deeper lines."""
        if re.fullmatch(r"[|>][+-]?\d?", text):
            return self._words(indent, folded=text[0] == ">")
        if text[:1] in {"{", "["}:
            return self._flow(text)
        if not text or text.startswith("#"):
            self._skip()
            deeper = self.left and (self._indent > indent or (self._indent == indent and self._dash()))
            return self.block(depth + 1) if deeper else None
        return _scalar(self._continued(text, indent))

    def _dash(self) -> bool:
        return self._lines[self._at].lstrip().startswith("- ")

    def _continued(self, text: str, indent: int) -> str:
        while self.left and self._lines[self._at].strip() and self._indent > indent:
            text += " " + self._take().strip()
        return text

    def _words(self, indent: int, *, folded: bool) -> str:
        kept: list[str] = []
        while self.left and (not self._lines[self._at].strip() or self._indent > indent):
            kept.append(self._take())
        margin = min((len(line) - len(line.lstrip()) for line in kept if line.strip()), default=0)
        lines = [line[margin:].rstrip() for line in kept]
        return ("\n".join(lines)).strip("\n") if not folded else " ".join(line for line in lines if line)

    def _flow(self, text: str) -> Any:
        while _open(text) and self.left:
            text += "\n" + self._take()
        return _Flow(text).value(0)


def _open(text: str) -> bool:
    """Whether a bracket of `text` is still open."""
    bare = re.sub(r""""(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'""", "", text)
    return sum(bare.count(mark) for mark in "{[") > sum(bare.count(mark) for mark in "}]")


def _scalar(text: str) -> Any:
    if len(text) > 1 and text[0] == text[-1] == '"':
        return _ESCAPE.sub(_escaped, text[1:-1])
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    text = _COMMENT.sub("", text).strip()
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    return int(text) if re.fullmatch(r"-?\d{1,15}", text) else text


def _escaped(found: re.Match[str]) -> str:
    code = found.group(1)
    return chr(int(code[1:], 16)) if len(code) == 5 else _ESCAPES.get(code, code)


class _Flow:
    """A value in braces or brackets, as in JSON5; what is missing at the end is taken as closed."""

    _TOKEN = re.compile(
        r"""(?:\s|#[^\n]*|//[^\n]*)*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[{}\[\],]|:(?=\s|["'{\[])|(?:[^\s{}\[\],:"']|:(?=\S))+|.)""",
        re.S,
    )

    def __init__(self, text: str) -> None:
        self._tokens = [token for token in self._TOKEN.findall(text) if token.strip()]
        self._at = 0

    def _next(self) -> str:
        self._at += 1
        return self._tokens[self._at - 1] if self._at <= len(self._tokens) else "}"

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else "}"

    def value(self, depth: int) -> Any:
        token = self._next()
        if token == "{" and depth < DEPTH:
            return self._map(depth)
        if token == "[" and depth < DEPTH:
            return self._list(depth)
        words = [token]
        while self._peek() not in {",", "}", "]", ":"}:
            words.append(self._next())
        return _scalar(" ".join(words))

    def _map(self, depth: int) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        while self._peek() not in {"}", "]"}:
            if self._peek() == ",":
                self._next()
                continue
            key = str(self.value(depth + 1))
            if self._peek() == ":":
                self._next()
                fields[key] = self.value(depth + 1)
        self._next()
        return fields

    def _list(self, depth: int) -> list[Any]:
        items: list[Any] = []
        while self._peek() not in {"}", "]"}:
            if self._peek() in {",", ":"}:
                self._next()
                continue
            items.append(self.value(depth + 1))
        self._next()
        return items
