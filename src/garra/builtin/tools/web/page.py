"""Reads one page, as a program of its own: `python -m garra.builtin.tools.web.page`.

Standard input: a JSON line `{"base", "charset", "readability"}`, then the page. Standard output: JSON
`{"title", "text", "extractor"}`, the text as Markdown.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
from html import unescape

from garra.builtin.tools.web.markdown import markdown

SHORT = 200
"""Characters below which a part is not taken for what a page is about."""
_CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([A-Za-z0-9_.:-]{1,40})""", re.I)
_TITLE = re.compile(r"<title[^>]{0,200}>([^<]{0,2000})", re.I)


def main() -> None:
    asked = json.loads(sys.stdin.buffer.readline())
    page = decoded(sys.stdin.buffer.read(), asked["charset"])
    text, extractor = main_part(page, asked["base"]) if asked["readability"] else (markdown(page, asked["base"]), "raw")
    sys.stdout.write(json.dumps({"title": title(page), "text": text, "extractor": extractor}))


def decoded(data: bytes, charset: str) -> str:
    """The page's text: by its mark of order, by what its server said, by what it says itself, as UTF-8."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace")
    told = _CHARSET.search(data[:2_048])
    for name in (charset, told[1].decode("ascii") if told else ""):
        try:
            return data.decode(name, "replace") if name else _unsaid(data)
        except (LookupError, UnicodeError):
            continue
    return _unsaid(data)


def _unsaid(data: bytes) -> str:
    return data.decode("utf-8-sig", "replace")


def title(page: str) -> str:
    found = _TITLE.search(page)
    return " ".join(unescape(found[1]).split())[:300] if found else ""


def main_part(page: str, base: str) -> tuple[str, str]:
    """What a page is about, and how it was found: by its own `main` or `article`, else by the library where it is
    installed, or all of it without what stands around.
    """
    whole = markdown(page, base)
    for find, extractor in ((marked, "main"), (by_library, "readability")):
        text = markdown(part, base) if (part := find(page)) else ""
        if len(text) >= SHORT and len(text) * 10 >= len(whole):
            return text, extractor
    return whole, "plain"


def marked(page: str) -> str:
    """The page's only `main`, else its only `article`; empty where there is none, or several."""
    lowered = page.lower()
    for tag in ("main", "article"):
        starts = [found.start() for found in re.finditer(rf"<{tag}[\s>]", lowered)]
        if len(starts) == 1:
            end = lowered.rfind(f"</{tag}")
            return page[starts[0] : end if end > starts[0] else len(page)]
    return ""


def by_library(page: str) -> str:
    """The main part as readability finds it; empty where it is not installed, or finds nothing."""
    try:
        return str(importlib.import_module("readability").Document(page).summary(html_partial=True))
    except ImportError:
        return ""
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError, AssertionError):
        return ""  # "Unparseable", its own fault, is a ValueError


if __name__ == "__main__":
    main()
