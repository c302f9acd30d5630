"""HTML as tags and words, in one pass over it: whatever a stranger writes, a letter is looked at a few times. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from typing import Final

from garra.core.value import frozen

_TAG: Final = re.compile(r"<(/?)([A-Za-z][^\s/>]*+)((?:[^>\"']++|\"[^\"]*+\"|'[^']*+')*+)>")
_LOOSE: Final = re.compile(r"<(/?)([A-Za-z][^\s/>]*+)([^>]*+)>")
_ATTRIBUTE: Final = re.compile(r"([^\s=/\"'>]++)\s*+=\s*+(\"[^\"]*+\"|'[^']*+'|[^\s\"'>]++)")
_OPENS: Final = re.compile(r"</?[A-Za-z]")
_RAW: Final = {name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE) for name in ("script", "style")}
ATTRIBUTES: Final = 4_096
"""So many characters of a tag are looked at for what it says."""


@frozen
class Tag:
    """One that opens or closes; `said` is what stands in it behind its name."""

    name: str
    closes: bool = False
    said: str = ""

    def attributes(self) -> dict[str, str]:
        """The first of each name, as in browsers."""
        found: dict[str, str] = {}
        for name, value in _ATTRIBUTE.findall(self.said[:ATTRIBUTES]):
            found.setdefault(name.lower(), unescape(value.strip("\"'")))
        return found


def scan(markup: str) -> Iterator[Tag | str]:
    """The tags, and the words between them. Comments, and what is no words in scripts and styles, are left out; what is
    not closed runs to the end.
    """
    at, end, pattern = 0, len(markup), _TAG
    while at < end:
        start = markup.find("<", at)
        if start != at:
            start = end if start < 0 else start
            yield unescape(markup[at:start])
            at = start
        elif markup.startswith(("<!", "<?"), at):
            at = _behind(markup, "-->" if markup.startswith("<!--", at) else ">", at + 2)
        elif _OPENS.match(markup, at) is None:
            yield "<"
            at += 1
        elif found := pattern.match(markup, at):
            tag = Tag(found[2].lower(), bool(found[1]), found[3])
            yield tag
            at = _after(markup, tag, found.end())
        elif pattern is _TAG:
            pattern = _LOOSE  # a quote never ends; if quotes went on to hold, each tag would be read to the end
        else:
            return


def _behind(markup: str, mark: str, at: int) -> int:
    found = markup.find(mark, at)
    return len(markup) if found < 0 else found + len(mark)


def _after(markup: str, tag: Tag, at: int) -> int:
    """Where reading goes on behind a tag: what a script or style holds is no words."""
    raw = None if tag.closes else _RAW.get(tag.name)
    if raw is None:
        return at
    found = raw.search(markup, at)
    return len(markup) if found is None else found.start()
