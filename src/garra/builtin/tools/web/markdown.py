"""A page as Markdown: what a reader sees of it, without what stands around."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from urllib.parse import urljoin

LONGEST = 4 << 20
"""Characters that are written at most."""
SILENT = frozenset(
    {"script", "style", "noscript", "template", "svg", "canvas", "iframe", "object", "embed", "head", "nav", "footer",
     "aside", "form", "button", "select", "dialog", "menu"}
)  # fmt: skip
HEADS = {f"h{level}": level for level in range(1, 7)}
BLOCKS = frozenset(
    {"p", "div", "section", "article", "main", "header", "figure", "figcaption", "dl", "dt", "dd", "details", "summary",
     "address", "hr"}
)  # fmt: skip
VOID = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"}
)  # fmt: skip
MARKS = {"strong": "**", "b": "**", "em": "*", "i": "*", "del": "~~", "s": "~~"}
DEEP = 12
"""Lists are set in so far at most."""


class Writer(HTMLParser):
    """Feed it a page, then take `text()`. Nothing in it grows with the depth of a page's tags but a counter."""

    def __init__(self, base: str) -> None:
        super().__init__(convert_charrefs=True)
        self._base = base
        self._out: list[str] = []
        self._size = 0
        self._silent: list[str] = []
        self._lists: list[int] = []
        self._links: list[str] = []
        self._pre = 0
        self._quote = 0
        self._cell = False
        self._row: list[str] = []
        self._rows = 0

    def text(self) -> str:
        """What was written, with no more than one empty line between two blocks."""
        joined = "".join(self._out)
        return re.sub(r"[ \t]+\n", "\n", re.sub(r"\n{3,}", "\n\n", joined)).strip()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in SILENT and tag not in VOID and len(self._silent) < 1_000:
            self._silent.append(tag)
        if self._silent:
            return
        found = dict(attrs)
        if tag in HEADS:
            self._put("\n\n" + "#" * HEADS[tag] + " ")
        elif tag in ("ul", "ol"):
            self._open_list(tag)
        elif tag == "li":
            self._item()
        elif tag == "a":
            self._links.append(self._target(found.get("href")))
            self._put("[" if self._links[-1] else "")
        elif tag in ("pre", "blockquote"):
            self._open_block(tag)
        elif tag in ("table", "tr", "td", "th"):
            self._open_table(tag)
        else:
            self._open_plain(tag, found)

    def handle_endtag(self, tag: str) -> None:
        if self._silent:
            if tag in self._silent:
                del self._silent[len(self._silent) - 1 - self._silent[::-1].index(tag) :]
            return
        if tag in ("ul", "ol") and self._lists:
            self._lists.pop()
            self._put("\n" if self._lists else "\n\n")
        elif tag == "a" and self._links:
            target = self._links.pop()
            self._put(f"]({target})" if target else "")
        elif tag in ("pre", "blockquote"):
            self._close_block(tag)
        elif tag in ("table", "tr", "td", "th"):
            self._close_table(tag)
        elif tag in HEADS or tag in BLOCKS:
            self._put("\n\n")
        elif tag == "code" and not self._pre:
            self._put("`")
        elif tag in MARKS:
            self._put(MARKS[tag])

    def handle_data(self, data: str) -> None:
        if self._silent:
            return
        if self._pre:
            self._put(data)
            return
        words = re.sub(r"\s+", " ", data)
        if self._fresh():
            words = words.lstrip()
        self._put(words.replace("\n", " "))

    def _open_list(self, tag: str) -> None:
        if len(self._lists) < DEEP:
            self._lists.append(1 if tag == "ol" else 0)
        self._put("\n")

    def _item(self) -> None:
        inset = "  " * max(0, len(self._lists) - 1)
        number = self._lists[-1] if self._lists else 0
        if number:
            self._lists[-1] += 1
        self._put(f"\n{inset}{f'{number}.' if number else '-'} ")

    def _open_block(self, tag: str) -> None:
        if tag == "pre":
            self._pre += 1
            self._put("\n\n```\n")
        else:
            self._quote += 1
            self._put("\n\n> ")

    def _close_block(self, tag: str) -> None:
        if tag == "pre" and self._pre:
            self._pre -= 1
            self._put("\n```\n\n")
        elif tag == "blockquote" and self._quote:
            self._quote -= 1
            self._put("\n\n")

    def _open_table(self, tag: str) -> None:
        if tag == "table":
            self._rows = 0
            self._put("\n\n")
        elif tag == "tr":
            self._row = []
            self._put("\n|")
        else:
            self._row.append(tag)
            self._put(" ")

    def _close_table(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._put(" |")
        elif tag == "tr":
            self._rows += 1
            if self._rows == 1 and self._row:
                self._put("\n|" + " --- |" * len(self._row))
        else:
            self._put("\n\n")

    def _open_plain(self, tag: str, attrs: dict[str, str | None]) -> None:
        if tag == "br":
            self._put("\n" if not self._row else " ")
        elif tag in BLOCKS:
            self._put(" " if self._row and tag in ("p", "div") else "\n\n")
        elif tag == "code" and not self._pre:
            self._put("`")
        elif tag in MARKS:
            self._put(MARKS[tag])
        elif tag == "img" and (words := " ".join((attrs.get("alt") or "").split())):
            self._put(f"[image: {words[:200]}]")

    def _target(self, href: str | None) -> str:
        try:
            target = urljoin(self._base, (href or "").strip())
        except ValueError:
            return ""
        wanted = target.startswith(("http://", "https://", "mailto:")) and not (href or "#").startswith("#")
        return re.sub(r"[\s()<>]", _quoted, target)[:2_000] if wanted else ""

    def _fresh(self) -> bool:
        return not self._out or self._out[-1].endswith(("\n", " "))

    def _put(self, text: str) -> None:
        if text and self._size < LONGEST:
            self._out.append(text)
            self._size += len(text)


def _quoted(found: re.Match[str]) -> str:
    return f"%{ord(found[0]):02X}"


def markdown(page: str, base: str) -> str:
    """`page`, or a part of one, as Markdown; links are made whole by `base`."""
    writer = Writer(base)
    writer.feed(page)
    writer.close()
    return writer.text()
