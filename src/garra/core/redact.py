"""Keeping secrets out of what is shown: known ones by their text, others by their shape or by their key's name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from garra.core.dotted import Path
from garra.core.patterns import later

SENTINEL = "__OPENCLAW_REDACTED__"
"""What stands in a shown configuration where a secret is; the name is part of the wire protocol."""

SHORTEST = 6
"""Shorter texts are not searched for: they would blot out innocent words."""

_SHAPES = later(
    r"\b(?:sk-(?:ant-|proj-|or-)?[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|xox[abprse]-[\w-]{10,}"
    r"|xapp-[\w-]{10,}|AIza[\w-]{30,}|gsk_\w{20,}|glpat-[\w-]{16,}|hf_[A-Za-z0-9]{20,}|npm_[A-Za-z0-9]{30,}"
    r"|AKIA[0-9A-Z]{16}|\d{6,12}:[A-Za-z0-9_-]{30,}|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]{5,})"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)"
    r"|(?<=[Bb]earer )[A-Za-z0-9._~+/=-]{12,}"
    r"|(?<=://)[^/\s:@]+:[^/\s@]+(?=@)",
    re.S,
)
_KEYS = later(
    r"(?:token|password|passwd|passphrase|secret|api_?-?key|private_?-?key|access_?-?key|signing_?-?key|credentials?|authorization"
    r"|cookie|webhook_?url|service_?account)$",
    re.I,
)
_INNOCENT = later(r"(?:max|min|reserve|keep|context|budget|total|input|output).*tokens?$|tokens$", re.I)
_WHOLE = later(r"/(.+)/([a-z]*)", re.S)
_REFERENCE = later(r"\$?\$\{[A-Z_][A-Z0-9_]*\}")


def cleaner(known: Iterable[str], patterns: Iterable[str] = ()) -> Callable[[str], str]:
    """A function that blots out the known secrets, and whatever is shaped like a key or matches a pattern, in a text.

    A pattern is as in `logging.redactPatterns`: `text`, or `/text/flags`; one that is none is left out.
    """
    texts = sorted({text for text in known if len(text) >= SHORTEST}, key=len, reverse=True)
    exact = re.compile("|".join(map(re.escape, texts))) if texts else None
    more = [found for text in patterns if (found := pattern(text)) is not None]

    def clean(text: str) -> str:
        if exact is not None:
            text = exact.sub("***", text)
        for each in more:
            text = each.sub("***", text)
        return _SHAPES.sub("***", text)

    return clean


def pattern(text: str) -> re.Pattern[str] | None:
    """A pattern of the configuration, without regard to case; None for one that cannot be read or matches nothing."""
    whole = _WHOLE.fullmatch(text)
    body, flags = (whole[1], whole[2]) if whole else (text, "i")
    wanted = (re.I if "i" in flags else 0) | (re.S if "s" in flags else 0) | (re.M if "m" in flags else 0)
    try:
        found = re.compile(body, wanted)
    except (re.error, OverflowError, RecursionError):
        return None
    return None if found.fullmatch("") else found


def sensitive(key: str) -> bool:
    """Whether a key of this name holds a secret."""
    return bool(_KEYS.search(key)) and not _INNOCENT.search(key)


def is_reference(text: str) -> bool:
    """Whether a text only names where the secret is (`${VARIABLE}`), and so tells nothing."""
    return bool(_REFERENCE.fullmatch(text.strip()))


def masked(value: Any, secret: Callable[[Path], bool], at: Path = ()) -> Any:
    """A JSON value with the sentinel at each place that `secret` names, and below keys that are named like secrets."""
    if isinstance(value, dict):
        return {key: masked(below, secret, (*at, key)) for key, below in value.items()}
    if isinstance(value, list):
        return [masked(below, secret, (*at, index)) for index, below in enumerate(value)]
    if isinstance(value, str) and value and not is_reference(value) and hidden(at, secret):
        return SENTINEL
    return value


def hidden(at: Path, secret: Callable[[Path], bool]) -> bool:
    """Whether a text at this place is to be hidden."""
    keys = [part for part in at if isinstance(part, str)]
    return secret(at) or (bool(keys) and sensitive(keys[-1]))
