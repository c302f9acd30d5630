"""What a mail says: its own words, without the mails before it. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html.parser import HTMLParser

_INTRO = re.compile(
    r"^\s*(?:On\b.{4,200}\bwrote|Am\b.{4,200}\bschrieb\b.{0,120}|Le\b.{4,200}\ba écrit|El\b.{4,200}\bescribió"
    r"|Il\b.{4,200}\bha scritto|Em\b.{4,200}\bescreveu|Op\b.{4,200}\bschreef\b.{0,120}|W dniu\b.{4,200}\bnapisał.{0,3}"
    r"|[^\n]*[\d@][^\n]{0,200}(?:\bwrote|写道))\s*[:：]\s*$",
    re.IGNORECASE | re.DOTALL,
)
_RULE = re.compile(
    r"^\s*-{2,}\s*(?:Original Message|Ursprüngliche Nachricht|Message d'origine|Mensaje original|原始邮件)\s*-{2,}\s*$",
    re.IGNORECASE,
)
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
        if _INTRO.match("\n".join(lines[at : at + width])):
            return width
    return 0


def _outlook(lines: Sequence[str], at: int) -> bool:
    """The head of the mail before, as Outlook writes it: From, then Sent, perhaps below a line."""
    start = at + 1 if _LINE.match(lines[at]) else at
    head = [line for line in lines[start : start + 3] if line.strip()]
    return len(head) >= 2 and bool(_FROM.match(head[0])) and bool(_SENT.match(head[1]))


def from_html(markup: str) -> str:
    """HTML as plain words; what it quotes gets `> ` before each line."""
    reader = _Reader()
    reader.feed(markup)
    reader.close()
    return reader.text()


class _Reader(HTMLParser):
    """Collects words by line. Nothing of it is trusted to be well formed."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._lines: list[str] = []
        self._line = ""
        self._dropped = 0
        self._quoted = 0
        self._pre = 0
        self._href = ""
        self._divs: list[bool] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = {key: value or "" for key, value in attrs}
        if tag in _DROPPED:
            self._dropped += 1
        elif tag == "br":
            self._end()
        elif tag == "li":
            self._break()
            self._line = "- "
        elif tag == "a":
            self._href = named.get("href", "")
        elif tag in _BLOCKS or tag == "blockquote":
            self._block(tag, named)

    def _block(self, tag: str, named: dict[str, str]) -> None:
        self._break()
        quotes = tag == "blockquote"
        if tag == "div":
            quotes = bool(_QUOTES.search(f"{named.get('class', '')} {named.get('id', '')}"))
            self._divs.append(quotes)
        self._quoted += quotes
        self._pre += tag == "pre"

    def handle_endtag(self, tag: str) -> None:
        if tag in _DROPPED:
            self._dropped = max(0, self._dropped - 1)
        elif tag == "a":
            self._link()
        elif tag in {"td", "th"}:
            self._line += " "
        elif tag in _BLOCKS or tag in {"blockquote", "li"}:
            self._break()
            quoted = tag == "blockquote" or (tag == "div" and bool(self._divs) and self._divs.pop())
            self._quoted = max(0, self._quoted - quoted)
            self._pre = max(0, self._pre - (tag == "pre"))
            if tag == "p":
                self._lines.append("")

    def handle_data(self, data: str) -> None:
        if self._dropped:
            return
        if self._pre:
            first, *more = data.split("\n")
            self._line += first
            for line in more:
                self._end()
                self._line = line
            return
        words = " ".join(data.split())
        lead = " " if data[:1].isspace() and self._line and not self._line.endswith(" ") else ""
        self._line += lead + words + (" " if words and data[-1:].isspace() else "")

    def _link(self) -> None:
        href, self._href = self._href, ""
        if href.startswith(("http://", "https://")) and href.rstrip("/") not in self._line:
            self._line += f" ({href})"

    def _break(self) -> None:
        if self._line.strip():
            self._end()

    def _end(self) -> None:
        line = self._line if self._pre else self._line.strip()
        self._lines.append("> " * self._quoted + line if line or self._quoted else "")
        self._line = ""

    def text(self) -> str:
        self._break()
        return re.sub(r"\n{3,}", "\n\n", "\n".join(self._lines)).strip()
