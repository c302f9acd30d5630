"""Patterns of file names: `*` and `?` within a name, `**` over folders, `[ab]`, `{a,b}`. No pattern takes long."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

MOST = 64


def expand(pattern: str) -> list[str]:
    """The patterns that `{a,b}` stands for, at most 64."""
    done: list[str] = []
    waiting = [pattern]
    while waiting and len(done) < MOST:
        one = waiting.pop(0)
        found = re.search(r"\{([^{}]*,[^{}]*)\}", one)
        if not found:
            done.append(one)
            continue
        before, after = one[: found.start()], one[found.end() :]
        waiting = [*(before + choice + after for choice in found[1].split(",")), *waiting][:MOST]
    return done


def compiled(pattern: str) -> Callable[[str], bool]:
    """Says whether a path (with `/`) fits; a pattern without `/` is about the last name only."""
    choices = [[_tokens(part) for part in _parts(one)] for one in expand(pattern)]
    anywhere = "/" not in pattern

    def fits(path: str) -> bool:
        names = path.split("/")[-1:] if anywhere else path.split("/")
        return any(_fits(parts, names) for parts in choices)

    return fits


def matches(pattern: str, path: str) -> bool:
    """Whether `path` fits `pattern`; to ask more than once take `compiled`."""
    return compiled(pattern)(path)


def _parts(pattern: str) -> list[str]:
    return pattern.removeprefix("./").strip("/").split("/")


def _fits(parts: Sequence[Sequence[str]], names: Sequence[str]) -> bool:
    reached = {0}  # how many names may have been used up so far
    for tokens in parts:
        if tokens == ["*", "*"]:
            reached = set(range(min(reached), len(names) + 1)) if reached else set()
        else:
            reached = {at + 1 for at in reached if at < len(names) and _name(tokens, names[at])}
    return len(names) in reached


def _name(tokens: Sequence[str], name: str) -> bool:
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


def _tokens(pattern: str) -> list[str]:
    return re.findall(r"\[[!^]?\]?[^\]]*\]|.", pattern, re.S)


def _char(token: str, char: str) -> bool:
    if len(token) < 3:
        return token in {"?", char}
    inside = token[1:-1]
    wanted = not inside.startswith(("!", "^"))
    inside = inside if wanted else inside[1:]
    ranges = re.findall(r"(.)-(.)|(.)", inside, re.S)
    return any(low <= char <= high if low else char == one for low, high, one in ranges) == wanted
