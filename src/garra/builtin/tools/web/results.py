"""What searchers answer, read into rows."""

from __future__ import annotations

from collections.abc import Mapping
from html import unescape
from html.parser import HTMLParser
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec

from garra.core.value import frozen
from garra.sdk.searcher import Searcher

MOST_ROWS = 50


@frozen
class Row:
    """One result. `age` is as the searcher says it."""

    title: str
    url: str
    text: str
    age: str = ""


class Challenged(ValueError):
    """The searcher wants a person to show that he is one."""


class Unreadable(ValueError):
    """The answer is not of the form it should have."""


def rows(searcher: Searcher, data: bytes) -> tuple[Row, ...]:
    """The results in `data`. Raises Unreadable, Challenged."""
    if searcher.reads == "duckduckgo":
        return duckduckgo(data.decode("utf-8", "replace"))
    try:
        found: Any = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):
        raise Unreadable("the answer is no JSON") from None
    for key in searcher.rows.split("."):
        found = found.get(key) if isinstance(found, Mapping) else None
    if found is None:
        return ()
    if not isinstance(found, list):
        raise Unreadable(f"the answer has no list under {searcher.rows}")
    listed = (_row(searcher.fields, item) for item in found[:MOST_ROWS] if isinstance(item, Mapping))
    return tuple(row for row in listed if row.url)


def _row(fields: Mapping[str, str], item: Mapping[str, Any]) -> Row:
    said = {name: _plain(str(item.get(key) or "")) for name, key in fields.items()}
    return Row(said.get("title", ""), _address(said.get("url", "")), said.get("text", ""), said.get("age", ""))


def _plain(text: str) -> str:
    """Words without the tags with which some searchers mark what was found in them."""
    for tag in ("<strong>", "</strong>", "<b>", "</b>", "<em>", "</em>"):
        text = text.replace(tag, "")
    return " ".join(unescape(text).split())


def _address(url: str) -> str:
    return url if url.startswith(("http://", "https://")) and len(url) <= 2_000 else ""


class _Results(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[list[str]] = []
        self._into = -1

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = dict(attrs)
        classes = (told.get("class") or "").split()
        if "anomaly-modal" in " ".join(classes) or told.get("id") == "challenge-form":
            raise Challenged("it asks for a proof that a person is searching")
        if "result__a" in classes and len(self.found) < MOST_ROWS:
            self.found.append([unwrapped(told.get("href") or ""), "", ""])
            self._into = 1
        elif "result__snippet" in classes and self.found:
            self._into = 2

    def handle_endtag(self, tag: str) -> None:
        if tag in ("a", "div", "td", "h2"):
            self._into = -1

    def handle_data(self, data: str) -> None:
        if self._into > 0:
            self.found[-1][self._into] += data


def duckduckgo(page: str) -> tuple[Row, ...]:
    """The results of its page without JavaScript. Raises Challenged."""
    parser = _Results()
    parser.feed(page)
    listed = (Row(" ".join(title.split()), _address(url), " ".join(text.split())) for url, title, text in parser.found)
    return tuple(row for row in listed if row.url and "duckduckgo.com/y.js" not in row.url)


def unwrapped(url: str) -> str:
    """Where a link of its really leads: it counts clicks by an address of its own."""
    whole = f"https:{url}" if url.startswith("//") else url
    parts = urlsplit(whole)
    if (parts.hostname or "").endswith("duckduckgo.com") and parts.path == "/l/":
        return parse_qs(parts.query).get("uddg", [""])[0]
    return whole
