"""A document written in the format of a platform: Telegram's HTML, Slack's mrkdwn, Discord's Markdown, plain text, …

Every format here is a `Style`; `core.html` writes the one that has real blocks. What is written is always valid in its
format: marks closed and nested, text escaped, only what the platform knows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import groupby, pairwise

from garra.core import html
from garra.core.inline import Pair, Pen, same, write
from garra.core.markup import Block, Document, Mark, Span, Unit, grid, size
from garra.core.patterns import later
from garra.core.value import frozen

RAW = 4
"""Where a platform counts only what is seen, what is sent may be at most this many times its limit."""


def _as_is(text: str, _: str) -> str:
    return text


def _plainly(text: str, _: int) -> str:
    return text


def _pointed(text: str, level: int) -> str:
    mark = "> " * level
    return "\n".join((mark + line).rstrip() for line in text.split("\n"))


def fenced(code: str, info: str) -> str:
    """A code block between marks that are longer than any in it."""
    longest = max((len(run) for run in re.findall(r"`{3,}", code)), default=2)
    mark = "`" * max(3, longest + 1)
    return f"{mark}{info}\n{code}\n{mark}"


@frozen
class Style:
    """How blocks are written. `fence` takes code and its language, `quote` and `heading` a text and its level.

    `indent` stands before what is in a list, for each list; before code too, if `deep`. `loud`: a heading is bold.
    `counted` is how the platform counts, where it does not count what is sent.
    """

    pen: Pen
    fence: Callable[[str, str], str] = _as_is
    quote: Callable[[str, int], str] = _pointed
    heading: Callable[[str, int], str] = _plainly
    loud: bool = False
    bullet: str = "•"
    rule: str = "──────────"
    indent: str = "  "
    deep: bool = True
    counted: Style | None = None


def _tagged(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _anchor(href: str, label: str, _: str) -> str:
    return f'<a href="{html.attribute(href)}">{label}</a>'


def _telegram_fence(code: str, info: str) -> str:
    language = html.language(info)
    inner = f'<code class="language-{language}">{_tagged(code)}</code>' if language else _tagged(code)
    return f"<pre>{inner}</pre>"


def _tag(name: str) -> Pair:
    return f"<{name}>", f"</{name}>"


def _sign(sign: str) -> Pair:
    return sign, sign


def _label(_: str, label: str, __: str) -> str:
    return label


_TELEGRAM = Style(
    Pen(
        {
            "bold": _tag("b"),
            "italic": _tag("i"),
            "strike": _tag("s"),
            "spoiler": _tag("tg-spoiler"),
            "code": _tag("code"),
        },
        _tagged,
        _anchor,
        _tagged,
        linked_code=False,
    ),
    _telegram_fence,
    lambda text, _: f"<blockquote>{text}</blockquote>",
    loud=True,
    deep=False,
    counted=Style(Pen({}, link=_label), quote=_plainly, deep=False),
)

_ANCHOR = later(r'<a href="([^"]*)">(.*?)</a>', re.S)
_RICH = later(r"</?(?:blockquote|tg-spoiler)>|(?<=<pre>)<code[^>]*>")


def basic(text: str) -> str:
    """Telegram's HTML with nothing in it but bold, italic, strike-through and code; links are written out."""
    plain = _RICH.sub("", _ANCHOR.sub(r"\2 (\1)", text).replace("</code></pre>", "</pre>"))
    return plain.replace("&quot;", '"')


_LINE = later(r"^([^\S\n]*\d*)(?=[#>+\-=.)])", re.M)
_SIGNS = later(r"[\\`*_~|\[\]<>&]")


def escaped(text: str) -> str:
    """Text in which Markdown finds no mark."""
    text = _SIGNS.sub(r"\\\g<0>", text)
    return _LINE.sub(r"\1\\", text)


def ticked(code: str) -> str:
    """Code in a line, between marks that are longer than any in it."""
    longest = max((len(run) for run in re.findall(r"`+", code)), default=0)
    mark = "`" * (longest + 1)
    pad = " " if code[:1] in " `" or code[-1:] in " `" else ""
    return f"{mark}{pad}{code}{pad}{mark}"


def _once(code: str) -> str:
    """Code in a line where its marks cannot be longer."""
    return f"`{code.replace('`', 'ˋ')}`"


def _angled(url: str) -> str:
    return f"<{url}>"


_HARD = later(r"[<>\\\n]")


def _percent(found: re.Match[str]) -> str:
    return f"%{ord(found[0]):02X}"


def _markdown_link(href: str, label: str, _: str) -> str:
    return f"[{label}](<{_HARD.sub(_percent, href)}>)"


def _short_heading(text: str, level: int) -> str:
    return f"{'#' * min(level, 3)} {text}"


_MARKDOWN_MARKS: Mapping[Mark, Pair] = {
    "bold": _sign("**"),
    "italic": _sign("*"),
    "strike": _sign("~~"),
    "code": ("", ""),
}
_MARKDOWN = Style(
    Pen(_MARKDOWN_MARKS, escaped, _markdown_link, _angled, ticked, signs=True, loose=True),
    fenced,
    heading=lambda text, level: f"{'#' * level} {text}",
    bullet="-",
    rule="***",
    indent="    ",
)
_DISCORD = replace(
    _MARKDOWN,
    pen=replace(_MARKDOWN.pen, marks={**_MARKDOWN_MARKS, "spoiler": _sign("||")}, bare=same),
    heading=_short_heading,
    rule="──────────",
    indent="  ",
    deep=False,
)


def _slack_link(href: str, label: str, _: str) -> str:
    return f"<{_tagged(href).replace('|', '%7C')}|{label.replace('|', '¦')}>"


_STYLING = Style(
    Pen(
        {"bold": _sign("*"), "italic": _sign("_"), "strike": _sign("~"), "code": ("", "")},
        code=_once,
        signs=True,
    ),
    lambda code, _: f"```\n{code.replace('```', 'ˋˋˋ')}\n```",
    loud=True,
)
_SLACK = replace(
    _STYLING,
    pen=replace(_STYLING.pen, escape=_tagged, link=_slack_link, bare=_tagged, code=lambda code: _tagged(_once(code))),
    fence=lambda code, _: f"```\n{_tagged(code.replace('```', 'ˋˋˋ'))}\n```",
    quote=lambda text, level: _pointed(text, min(level, 1)),
    deep=False,
)


def _printable(text: str) -> str:
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f]", "", text)


_IRC = Style(
    Pen(
        {"bold": _sign("\x02"), "italic": _sign("\x1d"), "strike": _sign("\x1e"), "code": _sign("\x11")},
        _printable,
    ),
    lambda code, _: _printable(code),
    loud=True,
)
_PLAIN = Style(Pen({}))

SIMPLER: Mapping[str, Callable[[str], str]] = {"telegram-html": basic}
"""Makes a text of a format simpler, in the same format: the next try, where the platform refused the first."""

STYLES: Mapping[str, Style] = {
    "plain": _PLAIN,
    "telegram-html": _TELEGRAM,
    "slack-mrkdwn": _SLACK,
    "discord-md": _DISCORD,
    "markdown": _MARKDOWN,
    "styling": _STYLING,
    "irc": _IRC,
}
HTML = frozenset({"matrix-html", "html"})


class Writer:
    """Writes in one format; a block is written once, however often it is measured or asked for."""

    def __init__(self, format: str) -> None:  # noqa: A002 - the word of the contract
        self._style = STYLES.get(format, _PLAIN)
        self._html = format in HTML
        self._counted = None if self._style.counted is None else _Page(self._style.counted)
        self._page = _Page(self._style)

    def text(self, document: Document) -> str:
        """The document in this format."""
        settled = _settled(document)
        return html.page(settled) if self._html else self._page.text(settled)

    def length(self, block: Block, unit: Unit) -> int:
        """How much of a platform's limit a block takes, at most: it may be less where blocks stand together."""
        if self._html:
            return size(html.page((block,)), unit)
        raw = size(self._page.text((block,)), unit)
        return raw if self._counted is None else max(size(self._counted.text((block,)), unit), -(-raw // RAW))


def render(document: Document, format: str) -> str:  # noqa: A002
    """The document in a format; one that is not known is written plainly."""
    return Writer(format).text(document)


def _settled(document: Document) -> Document:
    """Each block in at most one list more than the one before, and in none without an item, in each quotation."""
    out: list[Block] = []
    deepest = 0
    for block in document:
        deepest = deepest if out and out[-1].quote == block.quote else 0
        deepest = min(block.depth, deepest + 1 if block.marker else deepest)
        out.append(block if block.depth == deepest else replace(block, depth=deepest))
    return tuple(out)


class _Page:
    """A style at work. What it has written of a block is kept as long as the block is."""

    def __init__(self, style: Style) -> None:
        self._style = style
        self._written: dict[int, tuple[Block, str]] = {}

    def text(self, document: Document) -> str:
        if len(document) == 1:
            return self._quoted(document[0].quote, document)
        groups = [(level, tuple(group)) for level, group in groupby(document, lambda block: block.quote)]
        texts = [self._quoted(level, group) for level, group in groups]
        gaps = ["", *("\n\n" if before > level else _gap(after[0]) for (before, _), (level, after) in pairwise(groups))]
        return "".join(gap + text for gap, text in zip(gaps, texts, strict=False))

    def _quoted(self, level: int, group: Document) -> str:
        text = "".join((_gap(block) if at else "") + self._block(block) for at, block in enumerate(group))
        return self._style.quote(text, level) if level else text

    def _block(self, block: Block) -> str:
        known = self._written.get(id(block))
        if known is None:
            known = self._written[id(block)] = (block, _block(block, self._style))
        return known[1]


def _gap(block: Block) -> str:
    return "\n" if block.close else "\n\n"


def _block(block: Block, style: Style) -> str:
    body = _body(block, style)
    if not block.depth:
        return body
    marker = style.bullet if block.marker == "•" else block.marker
    opening = style.indent * (block.depth - 1) + f"{marker} " if marker else style.indent * block.depth
    if block.kind in ("code", "table") and not style.deep:
        return f"{opening if marker else ''}{body}"
    inner = "\n" + style.indent * block.depth
    return opening + inner.join(body.split("\n"))


def _bold(span: Span) -> Span:
    return span if "bold" in span.marks or "code" in span.marks else replace(span, marks=("bold", *span.marks))


def _body(block: Block, style: Style) -> str:
    match block.kind:
        case "heading":
            spans = tuple(map(_bold, block.spans)) if style.loud else block.spans
            return style.heading(write(spans, style.pen), block.level)
        case "code":
            return style.fence(block.code, block.info)
        case "table":
            return style.fence(grid(block.rows), "")
        case "rule":
            return style.rule
        case _:
            return write(block.spans, style.pen)
