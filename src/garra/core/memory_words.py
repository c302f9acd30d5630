"""Words as the memory's index holds and looks for them.

SQLite's own tokenizers find no Chinese word of two characters. So each run of characters that are written without
blanks becomes its characters and its pairs; other words stay words, and the index cuts their endings.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from typing import Final

TERMS: Final = 32
"""Words of a question that are looked for, at most."""
LONGEST: Final = 64
"""Characters of a word; what is longer is no word."""

_CJK: Final = (
    "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0002fa1f"  # kana, han, hangul
)

_STOP: Final = frozenset((
    "a", "about", "am", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by", "can", "could", "did",
    "do", "does", "doing", "for", "from", "get", "give", "go", "had", "has", "have", "he", "her", "him", "his",
    "how", "i", "if", "in", "into", "is", "it", "its", "just", "know", "let", "like", "may", "me", "mine", "my",
    "need", "no", "not", "of", "off", "on", "or", "our", "out", "please", "remember", "remind", "s", "say", "she",
    "should", "so", "some", "t", "tell", "than", "that", "the", "their", "them", "then", "there", "these", "they",
    "this", "those", "to", "up", "us", "used", "was", "we", "were", "what", "when", "where", "which", "who",
    "whom", "whose", "why", "will", "with", "would", "you", "your",
))  # fmt: skip
_STOP_CJK: Final = frozenset("的了吗呢吧啊我你他她它是在有和也都就要会能个这那什么怎哪谁请把被给跟与及或")
_STOP_PAIRS: Final = frozenset((
    "什么", "怎么", "哪里", "哪个", "多少", "时候", "告诉", "一下", "知道", "记得", "请问", "是不", "不是",
    "我的", "你的", "是什", "叫什", "是谁", "在哪", "我们", "你们", "他们", "可以", "有没", "没有",
))  # fmt: skip


@cache
def _pattern() -> re.Pattern[str]:
    return re.compile(f"[{_CJK}]+|[^\\W_{_CJK}]+")


def runs(text: str) -> Iterator[tuple[str, bool]]:
    """The words of a text in their order, and whether each is a run of characters written without blanks."""
    for found in _pattern().findall(unicodedata.normalize("NFKC", text).lower()):
        yield found, is_cjk(found[0])


def is_cjk(character: str) -> bool:
    """Whether it is written without blanks between words."""
    code = ord(character)
    return (
        0x3040 <= code <= 0x30FF
        or 0x3400 <= code <= 0x4DBF
        or 0x4E00 <= code <= 0x9FFF
        or 0xAC00 <= code <= 0xD7AF
        or 0xF900 <= code <= 0xFAFF
        or 0x20000 <= code <= 0x2FA1F
    )


def split(text: str) -> str:
    """What the index is given for a text: its words with blanks between them."""
    out: list[str] = []
    for run, cjk in runs(text):
        if cjk:
            out.extend(run)
            out.extend(run[at : at + 2] for at in range(len(run) - 1))
        elif len(run) <= LONGEST:
            out.append(run)
    return " ".join(out)


def terms(query: str) -> tuple[str, ...]:
    """What is looked for: words that say something, pairs of characters rather than single ones. Where a question has
    nothing else, the words that say little.
    """
    told: dict[str, None] = {}
    little: dict[str, None] = {}
    for run, cjk in runs(query):
        for word in _parts(run) if cjk else (run,):
            if len(word) <= LONGEST:
                (little if _says_little(word, cjk=cjk) else told)[word] = None
    return tuple(told or little)[:TERMS]


def _parts(run: str) -> tuple[str, ...]:
    return tuple(run[at : at + 2] for at in range(len(run) - 1)) if len(run) > 1 else (run,)


def _says_little(word: str, *, cjk: bool) -> bool:
    if not cjk:
        return word in _STOP
    return word in _STOP_PAIRS or all(character in _STOP_CJK for character in word)


def match(query: str) -> str:
    """The question as FTS5 understands it; empty where it has no word. Never a fault of syntax: each word is quoted
    and holds letters and digits only.
    """
    return " OR ".join(f'"{term}"' for term in terms(query))


def tokens(text: str) -> int:
    """About how many tokens a text is: four letters, or one character written without blanks."""
    wide = sum(map(is_cjk, text)) if not text.isascii() else 0
    return wide + (len(text) - wide + 3) // 4
