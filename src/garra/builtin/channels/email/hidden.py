"""What of a mail's HTML nobody sees who looks at it: a model that read it would obey words its owner never saw. Pure.

It goes by what stands in the mail: attributes, styles, and rules for a class or an id. What only has the colour of what
lies behind it cannot be told from here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from garra.builtin.channels.email.markup import ATTRIBUTES, Tag

SHEET_CHARS: Final = 20_000
"""So many characters of a mail's style sheets are looked at."""
_COMMENT: Final = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_UNSEEN: Final = re.compile(
    r"(?:^|;)(?:display:none|visibility:(?:hidden|collapse)|opacity:0?\.?0*(?=[;%!]|$)|mso-hide:all|color:transparent"
    r"|font-size:(?:0+(?![\d.])|0*\.0|[0-2](?:\.\d+)?p[xt])|font:(?:[^;]*[^\d;])?0(?:p[xt]|em|/)"
    r"|text-indent:-\d{3,}|(?:left|top|margin-left):-\d{3,}|clip:rect\(0|transform:scale\(0)"
)
_NOTHING_HIGH: Final = re.compile(r"(?:^|;)(?:max-)?(?:height|width):0(?=\D|$)")
_CUT: Final = re.compile(r"(?:^|;)overflow(?:-[xy])?:(?:hidden|clip)")
_SHEET: Final = re.compile(r"<style(?=[\s>])[^>]*>(.*?)(?:</style|\Z)", re.IGNORECASE | re.DOTALL)
_AT: Final = re.compile(r"@[^{};@]*+(?:;|\{(?:[^{}]*+\{[^{}]*+\})*+[^{}]*+\})")
_LAST: Final = re.compile(r"[.#][\w-]+\Z")
_QUOTED: Final = re.compile(r"\"[^\"]*\"|'[^']*'")
_BARE: Final = re.compile(r"(?:^|[\s/'])hidden(?=[\s=/]|$)", re.IGNORECASE)
_VOID: Final = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
)
_HOLD: Final = frozenset({"table", "ul", "ol", "dl"})
_ENDED_BY: Final = {
    "li": frozenset({"li"}), "td": frozenset({"td", "th", "tr"}), "th": frozenset({"td", "th", "tr"}),
    "tr": frozenset({"tr"}), "dt": frozenset({"dt", "dd"}), "dd": frozenset({"dt", "dd"}),
    "p": frozenset({
        "address", "article", "blockquote", "div", "dl", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header",
        "hr", "ol", "p", "pre", "section", "table", "ul",
    }),
}  # fmt: skip
"""What begins where one of these was not closed, and ends it."""


def concealed(style: str) -> bool:
    """Whether these declarations hide what they are of."""
    plain = "".join(_COMMENT.sub("", style).lower().split())
    if _UNSEEN.search(plain):
        return True
    return bool(_NOTHING_HIGH.search(plain) and _CUT.search(plain))


def sheets(markup: str) -> frozenset[str]:
    """The classes (`.x`) and ids (`#x`) that the mail's style sheets hide on every screen."""
    found: set[str] = set()
    left = SHEET_CHARS
    for sheet in _SHEET.finditer(markup):
        text, left = sheet[1][:left], left - len(sheet[1])
        found.update(_hidden(text))
        if left <= 0:
            break
    return frozenset(found)


def _hidden(text: str) -> Iterator[str]:
    for rule in _AT.sub("", _COMMENT.sub("", text)).split("}"):
        selectors, _, style = rule.rpartition("{")
        if concealed(style):
            found = (_LAST.search(each.strip()[-200:]) for each in selectors.split(","))
            yield from (last[0].lower() for last in found if last)


class Cover:
    """Whether what is read stands in something that nobody sees. `names` are of `sheets`."""

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names
        self._name, self._depth, self._held = "", 0, 0

    @property
    def closed(self) -> bool:
        return bool(self._name)

    def passes(self, tag: Tag) -> bool:
        """Whether the tag is one of what is seen."""
        if self._name and not self._ends(tag):
            return False
        if not tag.closes and tag.name not in _VOID and self._hides(tag):
            self._name, self._depth, self._held = tag.name, 1, 0
            return False
        return True

    def _ends(self, tag: Tag) -> bool:
        """Whether the tag stands behind what is hidden already."""
        begun = not tag.closes and self._held == 0 and tag.name in _ENDED_BY.get(self._name, ())
        left = tag.closes and tag.name in _HOLD and self._held == 0 and self._name in _ENDED_BY
        if begun or left:
            self._name = ""
            return True
        if tag.name in _HOLD and self._name not in _HOLD:
            self._held = max(0, self._held + (-1 if tag.closes else 1))
        if tag.name == self._name:
            self._depth += -1 if tag.closes else 1
            if self._depth <= 0:
                self._name = ""
        return False

    def _hides(self, tag: Tag) -> bool:
        if not tag.said.strip():
            return False
        said = tag.attributes()
        own = {f".{each}" for each in said.get("class", "").lower().split()} | {f"#{said.get('id', '').lower()}"}
        return (
            bool(_BARE.search(_QUOTED.sub("''", tag.said[:ATTRIBUTES])))
            or concealed(said.get("style", ""))
            or not self._names.isdisjoint(own)
        )
