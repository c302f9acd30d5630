"""Reads Markdown, as models write it, into a document. HTML in it is text; a bare address is a link, and stays whole.

Importing this loads the parser (about 40 ms): it is imported when the first answer goes to a chat.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote

from markdown_it import MarkdownIt
from markdown_it.parser_inline import ParserInline
from markdown_it.rules_inline import StateInline
from markdown_it.rules_inline.state_inline import Scanned
from markdown_it.token import Token
from markdown_it.utils import EnvType

from garra.core.markup import Block, Document, Kind, Mark, Rows, Span, Spans, blank, literal

_MARKS: dict[str, Mark] = {"strong": "bold", "em": "italic", "s": "strike"}
_ORDER: tuple[Mark, ...] = ("bold", "italic", "strike", "spoiler", "code")
_URL = re.compile(r"://[^\s<>\x00-\x1f\x7f\"`|]{1,2048}")
_SCHEME = re.compile(r"(?<![A-Za-z0-9])https?$", re.I)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_TRAILING = ".,:;!?'*_~]"
_WIDE = re.compile(
    "[\u1100-\u11ff\u2e80-\ua4cf\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef\U00020000-\U0003ffff]"
)


class _State(StateInline):
    """Marks count beside Chinese, Japanese and Korean letters too, where no space parts a word from a stop."""

    def scanDelims(self, start: int, canSplitWord: bool) -> Scanned:  # noqa: N802, N803, FBT001 - the library's shape
        found = super().scanDelims(start, canSplitWord)
        end = start + found.length
        before, after = self.src[start - 1 : start], self.src[end : end + 1]
        if not canSplitWord or (found.can_open and found.can_close) or not before.strip() or not after.strip():
            return found
        opens = found.can_open or _WIDE.match(before) is not None
        closes = found.can_close or _WIDE.match(after) is not None
        return Scanned(opens, closes, found.length)


class _Inline(ParserInline):
    """As the library's, with a state of ours."""

    def parse(self, src: str, md: MarkdownIt, env: EnvType, tokens: list[Token]) -> list[Token]:
        state = _State(src, md, env, tokens)
        self.tokenize(state)
        for rule in self.ruler2.getRules(""):
            rule(state)
        return state.tokens


class _Parser(MarkdownIt):
    """Addresses are kept as they were written."""

    def __init__(self) -> None:
        super().__init__("commonmark", {"html": False})
        self.inline = _Inline()
        self.configure("commonmark", {"html": False})

    def normalizeLink(self, url: str) -> str:  # noqa: N802 - the library's name
        return quote(url, safe=";/?:@&=+$,-_.!~*'()#%[]{}|^\\")

    def normalizeLinkText(self, link: str) -> str:  # noqa: N802 - the library's name
        return link


def _address(state: StateInline, silent: bool) -> bool:  # noqa: FBT001 - the library's shape
    """`https://…` where it stands in a text, before `*` and `_` in it are taken for marks."""
    if not state.src.startswith("://", state.pos) or state.linkLevel:
        return False
    scheme = _SCHEME.search(state.pending[-len(" https") :])
    found = _URL.match(state.src, state.pos, state.posMax)
    if scheme is None or found is None:
        return False
    rest = _trimmed(found.group())
    if len(rest) <= len("://"):
        return False
    if not silent:
        state.pending = state.pending.removesuffix(scheme.group())
        token = state.push("address", "", 0)
        token.content = scheme.group() + rest
    state.pos += len(rest)
    return True


def _trimmed(url: str) -> str:
    """Without what belongs to the sentence: its stops, and a closing bracket that was opened outside."""
    while True:
        short = url.rstrip(_TRAILING)
        if short.endswith(")") and short.count(")") > short.count("("):
            short = short[:-1]
        if short == url:
            return url
        url = short


def parser() -> MarkdownIt:
    """The parser: CommonMark, tables, strike-through; no HTML, and no definitions, which would not be seen."""
    made = _Parser().enable(["table", "strikethrough"]).disable("reference")
    made.inline.ruler.before("linkify", "address", _address)
    return made


@dataclass(slots=True)
class _Reading:
    """Where in the text we are: in which lists and quotations, and the marker the next block takes."""

    blocks: list[Block] = field(default_factory=list)
    markers: list[str] = field(default_factory=list)
    pending: str = ""
    quote: int = 0
    end: int = -1

    def add(self, lines: Sequence[int] | None, kind: Kind = "text", **more: Any) -> None:
        start, end = (lines[0], lines[1]) if lines else (self.end, self.end)
        close = bool(self.blocks) and start <= self.end
        depth = len(self.markers)
        self.blocks.append(Block(kind, depth=depth, marker=self.pending, quote=self.quote, close=close, **more))
        self.pending, self.end = "", end

    def item(self, token: Token) -> None:
        self.flush(token.map)
        self.pending = f"{token.info}." if token.info else "•"
        self.markers.append(self.pending)

    def flush(self, lines: Sequence[int] | None = None) -> None:
        """An item with nothing in it is still an item."""
        if self.pending:
            self.add([lines[0], lines[0]] if lines else None)

    def leave(self) -> None:
        self.flush()
        self.markers.pop()


class Reader:
    """Markdown to documents, one parser for all."""

    def __init__(self) -> None:
        self._parser = parser()

    def read(self, text: str) -> Document:
        """The document of a text. Words that Markdown would make disappear are shown as they were written."""
        text = _sound(text)
        document = _document(self._parser.parse(text))
        return literal(text.strip()) if blank(document) and text.strip() else document


def _sound(text: str) -> str:
    """The text as it can be sent: halves of characters are joined or replaced, control characters left out."""
    if not text.isascii():
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return _CONTROL.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def _document(tokens: Sequence[Token]) -> Document:
    reading = _Reading()
    stream = iter(tokens)
    for token in stream:
        match token.type:
            case "blockquote_open":
                reading.quote += 1
            case "blockquote_close":
                reading.quote -= 1
            case "list_item_open":
                reading.item(token)
            case "list_item_close":
                reading.leave()
            case _:
                _leaf(token, stream, reading)
    return tuple(reading.blocks)


def _leaf(token: Token, stream: Iterator[Token], reading: _Reading) -> None:
    match token.type:
        case "paragraph_open":
            _spoken(token, stream, reading)
        case "heading_open":
            _spoken(token, stream, reading, "heading", level=int(token.tag[1:]))
        case "fence" | "code_block":
            code = token.content.removesuffix("\n")
            if code.strip():
                reading.add(token.map, "code", code=code, info=token.info.strip())
        case "hr":
            reading.add(token.map, "rule")
        case "table_open":
            reading.add(token.map, "table", rows=_rows(stream))
        case _:
            pass


def _spoken(token: Token, stream: Iterator[Token], reading: _Reading, kind: Kind = "text", *, level: int = 0) -> None:
    spans = _spans(next(stream).children or ())
    if spans:
        reading.add(token.map, kind, spans=spans, level=level)


def _rows(stream: Iterator[Token]) -> Rows:
    rows: list[list[Spans]] = []
    for token in stream:
        if token.type == "table_close":
            break
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "inline":
            rows[-1].append(_spans(token.children or ()))
    return tuple(tuple(row) for row in rows)


def _spans(tokens: Sequence[Token]) -> Spans:
    out: list[Span] = []
    marks: list[Mark] = []
    href = ""
    for token in tokens:
        kind = token.type
        if kind == "link_open":
            href = _reached(token.attrs.get("href"))
        elif kind == "link_close":
            href = ""
        elif kind.endswith("_open"):
            marks.append(_MARKS[kind.removesuffix("_open")])
        elif kind.endswith("_close"):
            marks.remove(_MARKS[kind.removesuffix("_close")])
        else:
            _say(out, _span(token, marks, href))
    return tuple(out)


def _span(token: Token, marks: Sequence[Mark], href: str) -> Span:
    worn = tuple(mark for mark in _ORDER if mark in marks)
    match token.type:
        case "code_inline":
            return Span(token.content, ("code",), href)
        case "softbreak" | "hardbreak":
            return Span("\n", worn, href)
        case "image":
            source = _reached(token.attrs.get("src"))
            return Span(_flat(token.content) or source, worn, href or source)
        case "address":
            return Span(token.content, worn, href or token.content)
        case _:
            return Span(_flat(token.content), worn, href)


def _reached(address: object) -> str:
    """An address; a picture that is written out in full is none."""
    text = str(address or "")
    return "" if text.startswith("data:") else text


def _flat(text: str) -> str:
    return text.replace("\n", " ")


def _say(out: list[Span], span: Span) -> None:
    """Add a span, to the one before where they are alike."""
    if not span.text:
        return
    if out and out[-1].marks == span.marks and out[-1].href == span.href and "code" not in span.marks:
        out[-1] = replace(span, text=out[-1].text + span.text)
    else:
        out.append(span)
