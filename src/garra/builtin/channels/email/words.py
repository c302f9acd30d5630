"""What a mail says: its own words, without the mails before it. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from garra.builtin.channels.email.hidden import Cover, sheets
from garra.builtin.channels.email.markup import Tag, scan

_INTRO = re.compile(
    r"^\s*(?:On\b.{4,200}\bwrote|Am\b.{4,200}\bschrieb\b.{0,120}|Le\b.{4,200}\ba écrit|El\b.{4,200}\bescribió"
    r"|Il\b.{4,200}\bha scritto|Em\b.{4,200}\bescreveu|Op\b.{4,200}\bschreef\b.{0,120}|W dniu\b.{4,200}\bnapisał.{0,3}"
    r")\s*[:：]\s*$",
    re.IGNORECASE | re.DOTALL,
)
_SAID = re.compile(r"(?:\bwrote|写道)\s*[:：]\s*$", re.IGNORECASE)
_WHO = re.compile(r"[\d@][^\n]{0,200}$")
_RULE = re.compile(
    r"^\s*-{2,}\s*(?:Original Message|Ursprüngliche Nachricht|Message d'origine|Mensaje original|原始邮件)\s*-{2,}\s*$",
    re.IGNORECASE,
)
DEEPEST = 8
"""What is quoted in what is quoted in … is marked so many times."""
LINE = 400
"""No line of that kind is longer."""
_LINE = re.compile(r"^\s*_{10,}\s*$")
_FROM = re.compile(r"^\s*\**(?:From|Von|De|Da|发件人)\s*[:：]\**\s*\S")
_SENT = re.compile(r"^\s*\**(?:Sent|Date|Gesendet|Datum|Envoyé|Enviado|Data|Inviato|发送时间)\s*[:：]\**\s*\S")
_DROPPED = frozenset({"script", "style", "head", "title", "template"})
_BLOCKS = frozenset(
    {
        "address", "article", "div", "dl", "dd", "dt", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6",
        "header", "hr", "ol", "p", "pre", "section", "table", "tr", "ul",
    }
)  # fmt: skip
_QUOTES = re.compile(r"\b(?:gmail_quote|yahoo_quoted|moz-cite-prefix|divRplyFwdMsg|appendonsend)\b")


def own(text: str) -> str:
    """`text` without the quoted mails it answers. Answers between the quoted lines are left with what they answer."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    at = _history(lines)
    said = "\n".join(lines[:at]).strip()
    return said or "\n".join(lines).strip()


def _history(lines: Sequence[str]) -> int:
    """The line at which the mails before begin; the number of lines where none is."""
    quoted = _quoted(lines)
    for at, line in enumerate(lines):
        if len(line) <= LINE and (_RULE.match(line) or _outlook(lines, at)):
            return at
        width = _introduced(lines, at)
        if width and quoted <= at + width < len(lines):
            return at
    return quoted


def _quoted(lines: Sequence[str]) -> int:
    """From which line on all is quoted or empty."""
    end = len(lines)
    while end and (not lines[end - 1].strip() or lines[end - 1].lstrip().startswith(">")):
        end -= 1
    return end


def _introduced(lines: Sequence[str], at: int) -> int:
    """How many lines the words "On …, … wrote:" take that begin here, at most three; 0 for none."""
    if lines[at].startswith(">"):
        return 0
    for width in (1, 2, 3):
        last = lines[at + width - 1] if at + width <= len(lines) else ""
        if not last.strip() or len(last) > LINE:
            break
        if _intro("\n".join(lines[at : at + width])):
            return width
    return 0


def _intro(text: str) -> bool:
    """Whether it says that somebody wrote: in a known form, or behind a date or an address."""
    if not text.rstrip().endswith((":", "：")):
        return False
    if _INTRO.match(text):
        return True
    said = _SAID.search(text)
    head = text[: said.start()].lstrip() if said else "\n"
    return "\n" not in head and _WHO.search(head) is not None


def _outlook(lines: Sequence[str], at: int) -> bool:
    """The head of the mail before, as Outlook writes it: From, then Sent, perhaps below a line."""
    start = at + 1 if _LINE.match(lines[at]) else at
    head = [line for line in lines[start : start + 3] if line.strip()]
    return len(head) >= 2 and bool(_FROM.match(head[0])) and bool(_SENT.match(head[1]))


def from_html(markup: str) -> str:
    """HTML as the plain words that a person sees; what it quotes gets `> ` before each line. It takes time in
    proportion to its length.
    """
    reader, cover = _Reader(), Cover(sheets(markup))
    for part in scan(markup):
        if not isinstance(part, str):
            if cover.passes(part):
                reader.tag(part)
        elif not cover.closed:
            reader.words(part)
    return reader.text()


class _Reader:
    """Collects words by line. Nothing of it is trusted to be well formed."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._line: list[str] = []
        self._full = False
        self._dropped = 0
        self._quoted = 0
        self._pre = 0
        self._href = ""
        self._link_at = 0
        self._divs: list[bool] = []

    def tag(self, tag: Tag) -> None:
        if tag.closes:
            self._close(tag.name)
        else:
            self._open(tag)

    def _open(self, tag: Tag) -> None:
        name = tag.name
        if name in _DROPPED:
            self._dropped += 1
        elif name == "br":
            self._end()
        elif name == "li":
            self._break()
            self._say("- ")
        elif name == "a":
            self._href, self._link_at = tag.attributes().get("href", ""), len(self._line)
        elif name in _BLOCKS or name == "blockquote":
            self._block(tag)

    def _block(self, tag: Tag) -> None:
        self._break()
        quotes = tag.name == "blockquote"
        if tag.name == "div":
            named = tag.attributes()
            quotes = bool(_QUOTES.search(f"{named.get('class', '')} {named.get('id', '')}"))
            self._divs.append(quotes)
        self._quoted += quotes
        self._pre += tag.name == "pre"

    def _close(self, name: str) -> None:
        if name in _DROPPED:
            self._dropped = max(0, self._dropped - 1)
        elif name == "a":
            self._link()
        elif name in {"td", "th"}:
            self._say(" ")
        elif name in _BLOCKS or name in {"blockquote", "li"}:
            self._break()
            quoted = name == "blockquote" or (name == "div" and bool(self._divs) and self._divs.pop())
            self._quoted = max(0, self._quoted - quoted)
            self._pre = max(0, self._pre - (name == "pre"))
            if name == "p":
                self._lines.append("")

    def words(self, said: str) -> None:
        if self._dropped:
            return
        if self._pre:
            first, *more = said.split("\n")
            self._say(first)
            for line in more:
                self._end()
                self._say(line)
            return
        words = " ".join(said.split())
        begun = bool(self._line) and not self._line[-1].endswith(" ")
        lead = " " if said[:1].isspace() and begun else ""
        self._say(lead + words + (" " if words and said[-1:].isspace() else ""))

    def _say(self, piece: str) -> None:
        if piece:
            self._line.append(piece)
            self._full = self._full or not piece.isspace()

    def _link(self) -> None:
        href, self._href = self._href, ""
        if href.startswith(("http://", "https://")) and href.rstrip("/") not in "".join(self._line[self._link_at :]):
            self._say(f" ({href})")

    def _break(self) -> None:
        if self._full:
            self._end()

    def _end(self) -> None:
        line = "".join(self._line)
        line = line if self._pre else line.strip()
        self._lines.append("> " * min(self._quoted, DEEPEST) + line if line or self._quoted else "")
        self._line, self._full, self._link_at = [], False, 0

    def text(self) -> str:
        self._break()
        return re.sub(r"\n{3,}", "\n\n", "\n".join(self._lines)).strip()
