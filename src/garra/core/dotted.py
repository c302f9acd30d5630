"""Paths into a configuration: `agents.list[0].model`, `models.providers["a.b"].apiKey`."""

from __future__ import annotations

import re

from garra.core.errors import UserError
from garra.core.patterns import later

Path = tuple[str | int, ...]
"""Keys and list positions, from the root."""

_PART = later(r"""\.?([^.\[\]"']+)|\[(\d+)\]|\[?"((?:[^"\\]|\\.)*)"\]?|\[?'((?:[^'\\]|\\.)*)'\]?|\[([^\]"']+)\]""")


def parse(text: str) -> Path:
    """Read a path. Raises UserError that names what cannot be read."""
    text = text.strip()
    parts: list[str | int] = []
    at = 0
    while at < len(text):
        start = at + 1 if text[at] == "." and at + 1 < len(text) and text[at + 1] in "\"'" else at
        found = _PART.match(text, start)
        if found is None:
            raise UserError(f"'{text}' is no path: it cannot be read from '{text[at:]}' on (write a.b[0].c)")
        parts.append(_part(found))
        at = found.end()
    if not parts:
        raise UserError("a path is needed, such as gateway.port")
    return tuple(parts)


def _part(found: re.Match[str]) -> str | int:
    plain, index, double, single, bracketed = found.groups()
    if index is not None:
        return int(index)
    quoted = double if double is not None else single
    if quoted is not None:
        return re.sub(r"\\(.)", r"\1", quoted)
    return str(plain if plain is not None else bracketed)


def show(path: Path) -> str:
    """A path as a person writes it."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif re.fullmatch(r"[^.\[\]\"'\s]+", part):
            text += f".{part}" if text else part
        else:
            text += '["' + part.replace("\\", "\\\\").replace('"', '\\"') + '"]'
    return text
