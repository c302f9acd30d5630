"""A document as HTML with real blocks, for platforms that show it: lists, tables, quotations, headings."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import groupby

from garra.core.inline import Pair, Pen, write
from garra.core.markup import Block, Document, Spans


def text(words: str) -> str:
    """Words with nothing in them that HTML could understand; a line's end is one."""
    return words.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("\n", "<br>")


def attribute(value: str) -> str:
    """A value to stand between double quotes."""
    return value.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def language(info: str) -> str:
    """The language of a code block, of what was written behind its opening mark; empty when it is none."""
    found = re.match(r"[\w+#.-]{1,32}(?=\s|$)", info, re.ASCII)
    return found.group() if found else ""


def _link(href: str, label: str, _: str) -> str:
    return f'<a href="{attribute(href)}">{label}</a>'


def _tag(name: str) -> Pair:
    return f"<{name}>", f"</{name}>"


_PEN = Pen(
    {
        "bold": _tag("strong"),
        "italic": _tag("em"),
        "strike": _tag("del"),
        "spoiler": ("<span data-mx-spoiler>", "</span>"),
        "code": _tag("code"),
    },
    text,
    _link,
    lambda url: _link(url, text(url), url),
)


def page(document: Document) -> str:
    """The document's HTML, without a frame."""
    parts = groupby(document, lambda block: block.quote)
    return "".join(_quoted(level, tuple(blocks)) for level, blocks in parts)


def _quoted(level: int, blocks: Document) -> str:
    return "<blockquote>" * level + _flow(blocks) + "</blockquote>" * level


def _flow(blocks: Document) -> str:
    """Blocks with their lists, each list opened when its first item comes and closed when no more do."""
    out: list[str] = []
    lists: list[str] = []
    for block in blocks:
        while len(lists) > block.depth:
            out.append(f"</li></{lists.pop()}>")
        if block.marker:
            _item(block, lists, out)
        out.append(_block(block))
    out.extend(f"</li></{name}>" for name in reversed(lists))
    return "".join(out)


def _item(block: Block, lists: list[str], out: list[str]) -> None:
    name = "ul" if block.marker == "•" else "ol"
    if len(lists) == block.depth and lists[-1] == name:
        out.append("</li><li>")
        return
    if len(lists) == block.depth:
        out.append(f"</li></{lists.pop()}>")
    while len(lists) < block.depth:
        start = "" if name == "ul" or block.marker == "1." else f' start="{block.marker[:-1]}"'
        out.append(f"<{name}{start}><li>")
        lists.append(name)


def _block(block: Block) -> str:
    return _WRITERS[block.kind](block)


def _words(block: Block) -> str:
    inner = write(block.spans, _PEN)
    return inner if block.marker else f"<p>{inner}</p>"


def _heading(block: Block) -> str:
    return f"<h{block.level}>{write(block.spans, _PEN)}</h{block.level}>"


def _code(block: Block) -> str:
    name = language(block.info)
    mark = f' class="language-{name}"' if name else ""
    return f"<pre><code{mark}>{text(block.code).replace('<br>', chr(10))}\n</code></pre>"


def _table(block: Block) -> str:
    head, *rest = block.rows
    rows = "".join(_row(row, "td") for row in rest)
    return f"<table><thead>{_row(head, 'th')}</thead><tbody>{rows}</tbody></table>"


def _row(cells: tuple[Spans, ...], tag: str) -> str:
    return "<tr>" + "".join(f"<{tag}>{write(cell, _PEN)}</{tag}>" for cell in cells) + "</tr>"


def _rule(_: Block) -> str:
    return "<hr>"


_WRITERS: dict[str, Callable[[Block], str]] = {
    "text": _words,
    "heading": _heading,
    "code": _code,
    "table": _table,
    "rule": _rule,
}
