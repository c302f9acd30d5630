"""The last gate before words leave for a chat: nothing that was meant for the machine goes with them.

Thoughts, tool calls written as words, half tags and a model's own control marks are taken out; code is left alone,
since people ask for code. A text that is nothing but a tool call is no answer.
"""

from __future__ import annotations

import json
import re

from garra.core import reply
from garra.core.markup import visible
from garra.core.patterns import later
from garra.core.value import frozen

_NAMES = r"tool_calls?|tool_use|tool_code|function_calls?|function|invoke|tool_result|tool_response|system-reminder"
_CODE = r"(?P<code>(?P<fence>`{3,}|~{3,}).*?(?:(?P=fence)|\Z)|(?P<tick>`+)[^\n]*?(?P=tick))"
_CALL = rf"<(?:antml:)?(?P<name>{_NAMES})(?:[\s=][^<>]{{0,200}})?>.*?(?:</(?:antml:)?(?P=name)>|\Z)"
_MARKS = (
    r"<[|｜][^<>\n]{1,40}[|｜]>"  # a model's own marks: <|im_end|>, <｜tool▁calls▁begin｜>
    r"|\[TOOL_CALLS\][^\n]*"
    r"|</?(?:antml:)?(?:final|answer|" + _NAMES + r")>"
)
_TAGS = r"\[\[\s*(?P<tag>reply_to_current|reply_to\s*:\s*(?P<to>[^\]\n]{1,80})|audio_as_voice)\s*\]\]"
_GATE = later("|".join((_CODE, _CALL, _MARKS, _TAGS)), re.S | re.I)
_HALF = later(r"<\s*/?\s*(?:antml:)?(?:thi|tho|reas|tool_|func|invo)[a-z_:]{0,12}\s*\Z", re.I)
_CALL_KEYS = frozenset({"name", "arguments", "parameters", "id", "type", "function", "tool", "input", "tool_calls"})


_TOKEN = 64
"""A text that is longer is more than a bare control word, whatever stands around it."""


@frozen
class Outward:
    """Words that may leave. `anchor` is the message they ask to be an answer to; `current` asks for the one at hand."""

    text: str
    anchor: str = ""
    current: bool = False


def outward(text: str) -> Outward:
    """What of a whole answer may leave; its text is empty when nothing may."""
    visible_text = reply.split(text)[0] if "<" in text else text
    anchor, current = "", False
    out: list[str] = []
    at = 0
    for found in _GATE.finditer(visible_text) if "<" in text or "[" in text else ():
        if found["code"]:
            continue
        out.append(visible_text[at : found.start()])
        at = found.end()
        anchor = (found["to"] or anchor).strip() if found["to"] else anchor
        current = current or (found["tag"] or "").lower() == "reply_to_current"
    out.append(visible_text[at:])
    words = _HALF.sub("", "".join(out)).strip()
    bare = (
        not visible(words) or (len(words) <= _TOKEN and isinstance(reply.answer(words), reply.Nothing)) or _call(words)
    )
    return Outward("" if bare else words, anchor, current)


def _call(text: str) -> bool:
    """Whether a text is one tool call as JSON, and nothing else."""
    if not (text.startswith(("{", "[")) and text.endswith(("}", "]"))):
        return False
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    items = value if isinstance(value, list) else [value]
    return bool(items) and all(_calling(item) for item in items)


def _calling(value: object) -> bool:
    if not isinstance(value, dict) or not value.keys() <= _CALL_KEYS:
        return False
    keys = set(value)
    inner = value.get("function")
    named = bool(keys & {"name", "tool"}) and bool(keys & {"arguments", "parameters", "input"})
    return named or "tool_calls" in keys or (isinstance(inner, dict) and _calling(inner))
