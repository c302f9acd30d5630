"""A message's words. Pure: what is said, who is named, and HTML of ours as the plain words beside it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html.parser import HTMLParser
from typing import Any
from urllib.parse import unquote

from garra.core.value import frozen

_PILL = re.compile(r"https://matrix\.to/#/([^\"'>\s?]+)")
_USER = re.compile(r"^@[^:\s]+:\S+$")


@frozen
class Me:
    """The account: its id, the device of this login, and what people see it as."""

    id: str
    device: str = ""
    name: str = ""

    @property
    def local(self) -> str:
        return self.id[1:].partition(":")[0]


@frozen
class Words:
    """What a message says, and whether it names the bot."""

    text: str
    mentioned: bool = False


def words(content: Mapping[str, Any], me: Me) -> Words:
    """The words without the quotation older clients put before an answer, and without the bot's own name in front."""
    body = str(content.get("body") or "")
    relation = content.get("m.relates_to")
    if isinstance(relation, Mapping) and "m.in_reply_to" in relation:
        body = unquoted(body)
    named = _named(content, body, me)
    if named:
        body = _unnamed(body, me) or body
    return Words(f"* {body}" if content.get("msgtype") == "m.emote" else body, named)


def unquoted(body: str) -> str:
    """`body` without a fallback: lines that begin with `> `, the first with whom it quotes, and the empty one after."""
    lines = body.split("\n")
    if not re.match(r"> (\* )?<[^>]+>", lines[0]):
        return body
    at = next((number for number, line in enumerate(lines) if not line.startswith(">")), len(lines))
    return "\n".join(lines[at + 1 :] if at < len(lines) and not lines[at] else lines[at:])


def _named(content: Mapping[str, Any], body: str, me: Me) -> bool:
    """`m.mentions` is the sender's word where it is there; older clients link to the bot or write its name."""
    mentions = content.get("m.mentions")
    if isinstance(mentions, Mapping):
        listed = mentions.get("user_ids")
        if isinstance(listed, list) and me.id in listed:
            return True
    formatted = str(content.get("formatted_body") or "")
    if any(unquote(found).rstrip("/") == me.id for found in _PILL.findall(_without_reply(formatted))):
        return True
    if isinstance(mentions, Mapping):
        return False
    return any(_stands(name, body) for name in (me.id, me.name) if name)


def _without_reply(formatted: str) -> str:
    return formatted.partition("</mx-reply>")[2] or formatted


def _stands(name: str, body: str) -> bool:
    return re.search(rf"(?<![\w@.])@?{re.escape(name)}(?![\w@]|:\w)", body, re.IGNORECASE) is not None


def _unnamed(body: str, me: Me) -> str:
    """Without the name where it opens the message: what follows may be a command."""
    names = sorted({name for name in (me.id, me.name, f"@{me.name}", me.local, f"@{me.local}") if name.strip("@")})
    for name in reversed(names):
        if body[: len(name)].lower() == name.lower() and re.match(r"[:,]?(\s|$)", rest := body[len(name) :]):
            return rest.lstrip(":,").lstrip()
    return body


class _Plain(HTMLParser):
    """Our own HTML (`core.html`) as words."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.out: list[str] = []
        self._lists: list[int] = []
        self._href = ""
        self._label = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "br":
            self.out.append("\n")
        elif tag in {"ul", "ol"}:
            self._break()
            self._lists.append(0 if tag == "ol" else -1)
        elif tag == "li":
            self._break()
            self.out.append("  " * (len(self._lists) - 1) + self._mark())
        elif tag == "a":
            self._href, self._label = dict(attrs).get("href") or "", len(self.out)
        elif tag == "hr":
            self._break()
            self.out.append("---\n")
        elif tag in {"td", "th"}:
            self.out += [" | "] if self.out and not self.out[-1].endswith("\n") else []
        elif tag in _BLOCKS:
            self._break()
            self.out += ["> "] if tag == "blockquote" else []

    def handle_endtag(self, tag: str) -> None:
        if tag in {"ul", "ol"}:
            self._lists[-1:] = []
            self._break()
        elif tag == "a":
            said = "".join(self.out[self._label :])
            if self._href and self._href not in said and not self._href.startswith("https://matrix.to/"):
                self.out.append(f" ({self._href})")
            self._href = ""
        elif tag in _BLOCKS:
            self._break()
            if tag in {"p", "pre", "table"} and not self._lists:
                self.out.append("\n")

    def handle_data(self, data: str) -> None:
        self.out.append(data)

    def _mark(self) -> str:
        if not self._lists or self._lists[-1] < 0:
            return "- "
        self._lists[-1] += 1
        return f"{self._lists[-1]}. "

    def _break(self) -> None:
        if self.out and not "".join(self.out[-2:]).endswith("\n"):
            self.out.append("\n")


_BLOCKS = frozenset({"p", "div", "pre", "blockquote", "h1", "h2", "h3", "h4", "h5", "h6", "tr", "table", "li"})


def plain(html: str) -> str:
    """The words of our HTML, for clients that show none."""
    reader = _Plain()
    reader.feed(html)
    reader.close()
    return re.sub(r"\n{3,}", "\n\n", "".join(reader.out)).strip("\n")


def user_id(text: str) -> str:
    """A whole user id out of what an owner may write (`matrix:`, `user:` before it); empty when it is none."""
    bare = text.strip().removeprefix("matrix:").removeprefix("user:")
    return bare if _USER.match(bare) else ""
