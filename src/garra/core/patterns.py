"""Patterns that are compiled when they are first used: a start knows hundreds of them and needs a few."""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast


class _Later:
    """Becomes what it is asked for: each of the pattern's own attributes, once it has been used, is its own too."""

    def __init__(self, pattern: str | bytes, flags: int) -> None:
        self._made: tuple[Any, int] = (pattern, flags)

    def __getattr__(self, name: str) -> Any:
        found = getattr(re.compile(*self._made), name)
        setattr(self, name, found)
        return found


def later(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """`re.compile(pattern, flags)`, done with the first use of it; a fault in it shows then.

    It has all that a pattern has, but is none to the functions of `re` themselves: `later(…).sub(…)`, not `re.sub`.
    """
    return cast("re.Pattern[AnyStr]", _Later(pattern, flags))
