"""What searchers answer, read into rows."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import msgspec

from garra.core.value import frozen
from garra.sdk.searcher import Searcher

MOST_ROWS = 50
PAGE = "garra.builtin.tools.web.duckduckgo"
"""What reads a page: loaded when there is one."""


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
        found: tuple[Row, ...] = importlib.import_module(PAGE).rows(data.decode("utf-8", "replace"))
        return found
    try:
        answer: Any = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):
        raise Unreadable("the answer is no JSON") from None
    for key in searcher.rows.split("."):
        answer = answer.get(key) if isinstance(answer, Mapping) else None
    if answer is None:
        return ()
    if not isinstance(answer, list):
        raise Unreadable(f"the answer has no list under {searcher.rows}")
    listed = (_row(searcher.fields, item) for item in answer[:MOST_ROWS] if isinstance(item, Mapping))
    return tuple(row for row in listed if row.url)


def _row(fields: Mapping[str, str], item: Mapping[str, Any]) -> Row:
    said = {name: _plain(str(item.get(key) or "")) for name, key in fields.items()}
    return Row(said.get("title", ""), address(said.get("url", "")), said.get("text", ""), said.get("age", ""))


def _plain(text: str) -> str:
    """Words without the tags with which some searchers mark what was found in them."""
    for tag in ("<strong>", "</strong>", "<b>", "</b>", "<em>", "</em>"):
        text = text.replace(tag, "")
    return " ".join(importlib.import_module("html").unescape(text).split())


def address(url: str) -> str:
    return url if url.startswith(("http://", "https://")) and len(url) <= 2_000 else ""
