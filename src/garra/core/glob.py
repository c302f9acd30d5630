"""Patterns of file names: `*` and `?` within a name, `**` over folders, `[ab]`, `{a,b}`. No pattern takes long."""

from __future__ import annotations

import re
from collections.abc import Sequence

MOST = 64


def expand(pattern: str) -> list[str]:
    """The patterns that `{a,b}` stands for, at most 64."""
    found = re.search(r"\{([^{}]*)\}", pattern)
    if not found or "," not in found[1]:
        return [pattern]
    before, after = pattern[: found.start()], pattern[found.end() :]
    choices = [before + choice + after for choice in found[1].split(",")]
    return [done for choice in choices[:MOST] for done in expand(choice)][:MOST]


def matches(pattern: str, path: str) -> bool:
    """Whether `path` (with `/`) fits; a pattern without `/` is about the last name only."""
    return any(_fits(one, path) for one in expand(pattern))


def _fits(pattern: str, path: str) -> bool:
    names = path.split("/")
    if "/" not in pattern:
        return _name(pattern, names[-1])
    reached = {0}  # how many names may have been used up so far
    for part in pattern.removeprefix("./").strip("/").split("/"):
        if part == "**":
            reached = set(range(min(reached), len(names) + 1)) if reached else set()
        else:
            reached = {at + 1 for at in reached if at < len(names) and _name(part, names[at])}
    return len(names) in reached


def _name(pattern: str, name: str) -> bool:
    tokens = _tokens(pattern)
    at = token = 0
    star, back = -1, 0
    while at < len(name):
        if token < len(tokens) and tokens[token] == "*":
            star, back = token, at
            token += 1
        elif token < len(tokens) and _char(tokens[token], name[at]):
            at, token = at + 1, token + 1
        elif star >= 0:
            back += 1
            at, token = back, star + 1
        else:
            return False
    return all(rest == "*" for rest in tokens[token:])


def _tokens(pattern: str) -> Sequence[str]:
    return re.findall(r"\[[!^]?\]?[^\]]*\]|.", pattern, re.S)


def _char(token: str, char: str) -> bool:
    if len(token) < 3:
        return token in {"?", char}
    inside = token[1:-1]
    wanted = not inside.startswith(("!", "^"))
    inside = inside if wanted else inside[1:]
    ranges = re.findall(r"(.)-(.)|(.)", inside, re.S)
    return any(low <= char <= high if low else char == one for low, high, one in ranges) == wanted
