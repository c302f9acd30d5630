"""Text from outside as the model reads it: data in a marked part, which nothing in it can end, or pass for.

    <<<EXTERNAL_UNTRUSTED_CONTENT id="6f0c…">>>
    Source: web https://example.org/
    ---
    what stands there
    <<<END_EXTERNAL_UNTRUSTED_CONTENT id="6f0c…">>>

The marks are the original's. The id is a hash of what stands between them, so whoever wrote that could not know it, and
the same text always reads the same.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache
from typing import Final

from garra.core.patterns import later
from garra.core.taint import Mark

NAME: Final = "EXTERNAL_UNTRUSTED_CONTENT"
CONTEXT: Final = "OPENCLAW_INTERNAL_CONTEXT"
"""What marks a message to the model that holds no words of a person."""
GONE: Final = "[marker removed]"
WHERE: Final = 300
"""Characters of an address or a name that are shown."""

_HIDDEN = "\u00ad\u061c\u180e\u200b-\u200f\u2060-\u2064\ufe00-\ufe0f\ufeff"


def _letter(letter: str) -> str:
    """A letter as it may be written: either case, full width, with what is not seen behind it."""
    wide = "".join(chr(ord(each) + 0xFEE0) for each in (letter.upper(), letter.lower()))
    return f"[{letter.upper()}{letter.lower()}{wide}][{_HIDDEN}]{{0,8}}"


def _word(word: str) -> str:
    return "".join(map(_letter, word))


_GAP = rf"[\s_\-\uff3f{_HIDDEN}]{{1,8}}"


@cache
def _marker() -> re.Pattern[str]:
    """What could be read as a mark of ours; it is long, so it is made when it is first used."""
    return re.compile(
        f"(?:{_word('END')}{_GAP})?{_GAP.join(map(_word, NAME.split('_')))}"
        f"|(?:{_word('BEGIN')}|{_word('END')}){_GAP}{_GAP.join(map(_word, CONTEXT.split('_')))}"
    )


_UNSEEN = later(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\U000e0000-\U000e007f]")
"""Control characters, changes of the writing's direction, and the tags in which words can be hidden from people."""
_TOKENS = later(
    r"<(?=\|[A-Za-z0-9_]{1,40}\|>|\uff5c[^\uff5c<>\n]{1,40}\uff5c>|<SYS>>|</SYS>>|(?:start|end)_of_turn>"
    r"|/s>|bos>|eos>|pad>)"
    r"|\[(?=/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_RESULTS|TOOL_CALLS)\])"
)
"""The first letter of what local models' chat templates take for the end of a turn or the beginning of another."""


def _tagged(word: str) -> str:
    return "".join(chr(0xE0000 + ord(letter)) for letter in word)


_TAGS = later(
    f"(\U0001f3f4(?:{'|'.join(map(_tagged, ('gbeng', 'gbsct', 'gbwls')))})\U000e007f)|[\U000e0000-\U000e007f]+"
)


def seen(text: str) -> str:
    """`text` without the tags in which words can be hidden from people; the flags that are made of them stay."""
    return _TAGS.sub(lambda found: found[1] or "", text)


def neutral(text: str) -> str:
    """`text` without what could pass for a mark of ours or a model's own signs, and without what no person sees."""
    text = _UNSEEN.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    return untokened(_marker().sub(GONE, text))


def untokened(text: str) -> str:
    """`text` without a model's own signs."""
    return _TOKENS.sub(r"\g<0> ", text)


def name(text: str, most: int = WHERE) -> str:
    """A name, title or address from outside in one line of at most `most` characters."""
    line = " ".join(neutral(text[: 4 * most]).split())
    return line if len(line) <= most else line[: most - 1] + "…"


def forms(address: str) -> tuple[str, ...]:
    """How an address may have been written where it was read: without its fragment, its scheme, its last slash."""
    plain = address.strip().partition("#")[0]
    short = plain.partition("://")[2] or plain
    return tuple(dict.fromkeys(each for each in (plain, short.rstrip("/")) if each))


def wrap(text: str, mark: Mark) -> str:
    """`text` in its marked part. Bound it first: the marks must not be cut off."""
    source, body = f"{mark.source} {name(mark.where)}".rstrip(), neutral(text)
    id_ = hashlib.sha256(f"{source}\n{body}".encode("utf-8", "replace")).hexdigest()[:16]
    return f'<<<{NAME} id="{id_}">>>\nSource: {source}\n---\n{body}\n<<<END_{NAME} id="{id_}">>>'


_PART = later(rf'<<<{NAME} id="([0-9a-f]{{16}})">>>\nSource: [^\n]*\n---\n(.*?)\n<<<END_{NAME} id="\1">>>', re.DOTALL)


def bare(text: str) -> str:
    """`text` for people, without the marks around what came from outside. Nothing that a model reads is made by it."""
    return _PART.sub(r"\2", text) if NAME in text else text
