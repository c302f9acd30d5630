"""DuckDuckGo's page without JavaScript, read into rows."""

from __future__ import annotations

from html.parser import HTMLParser
from urllib.parse import parse_qs, urlsplit

from garra.builtin.tools.web.results import MOST_ROWS, Challenged, Row, address


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


def rows(page: str) -> tuple[Row, ...]:
    """The results of its page. Raises Challenged."""
    parser = _Results()
    parser.feed(page)
    listed = (Row(" ".join(title.split()), address(url), " ".join(text.split())) for url, title, text in parser.found)
    return tuple(row for row in listed if row.url and "duckduckgo.com/y.js" not in row.url)


def unwrapped(url: str) -> str:
    """Where a link of its really leads: it counts clicks by an address of its own."""
    whole = f"https:{url}" if url.startswith("//") else url
    parts = urlsplit(whole)
    if (parts.hostname or "").endswith("duckduckgo.com") and parts.path == "/l/":
        return parse_qs(parts.query).get("uddg", [""])[0]
    return whole
