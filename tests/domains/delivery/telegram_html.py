"""Telegram's HTML as the Bot API documents it, read strictly: what it would refuse is an error here."""

from __future__ import annotations

import html
import re

ALONE = {"b", "i", "s", "code", "pre", "tg-spoiler", "blockquote"}
TOKEN = re.compile(r"<(/?)([a-z-]+)((?:\s[^<>]*)?)>|&(lt|gt|amp|quot);|([^<>&]+)|(.)", re.S)
LINK = re.compile(r' href="(?:https?|tg|mailto|tel):[^"<>]*"\Z')
LANGUAGE = re.compile(r' class="language-[\w+#.-]+"\Z', re.ASCII)


class Refused(Exception):
    """Can't parse entities."""


def seen(text: str) -> str:
    """What a reader sees. Raises Refused."""
    stack: list[str] = []
    out: list[str] = []
    for found in TOKEN.finditer(text):
        close, tag, attributes, entity, words, stray = found.groups()
        if stray is not None:
            raise Refused(f"{stray!r} stands unescaped at {found.start()}")
        if tag is None:
            out.append(html.unescape(f"&{entity};") if entity else words)
        elif close:
            if not stack or stack.pop() != tag:
                raise Refused(f"</{tag}> closes nothing at {found.start()}")
        else:
            _allowed(tag, attributes, stack)
            stack.append(tag)
    if stack:
        raise Refused(f"<{stack[-1]}> is not closed")
    return "".join(out)


def _allowed(tag: str, attributes: str, stack: list[str]) -> None:
    inside = stack[-1] if stack else ""
    if tag == "a":
        fits = bool(LINK.match(attributes)) and "a" not in stack
    elif tag == "code" and inside == "pre":
        fits = bool(LANGUAGE.match(attributes))
    else:
        fits = tag in ALONE and not attributes and tag not in stack
    if not fits or "code" in stack or ("pre" in stack and tag != "code") or ("a" in stack and tag in ("code", "pre")):
        raise Refused(f"<{tag}{attributes}> may not stand in {stack}")


def units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2
