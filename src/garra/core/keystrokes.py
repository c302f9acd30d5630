"""Names of keys, and what a terminal sends for them."""

from __future__ import annotations

from collections.abc import Iterable

from garra.core.errors import ToolFailed

_NAMED = {
    "enter": "\r", "return": "\r", "tab": "\t", "escape": "\x1b", "esc": "\x1b", "space": " ", "backspace": "\x7f",
    "up": "\x1b[A", "down": "\x1b[B", "right": "\x1b[C", "left": "\x1b[D", "home": "\x1b[H", "end": "\x1b[F",
    "insert": "\x1b[2~", "delete": "\x1b[3~", "pageup": "\x1b[5~", "pagedown": "\x1b[6~", "btab": "\x1b[Z",
    "f1": "\x1bOP", "f2": "\x1bOQ", "f3": "\x1bOR", "f4": "\x1bOS", "f5": "\x1b[15~", "f6": "\x1b[17~",
    "f7": "\x1b[18~", "f8": "\x1b[19~", "f9": "\x1b[20~", "f10": "\x1b[21~", "f11": "\x1b[23~", "f12": "\x1b[24~",
}  # fmt: skip


def encode(keys: Iterable[str]) -> bytes:
    """The bytes for `keys`: names (`Enter`, `Up`, `F5`), `C-c` with control, `M-x` with meta, or single characters.

    Raises ToolFailed for what is no key.
    """
    return "".join(_one(key) for key in keys).encode()


def _one(key: str) -> str:
    if len(key) == 1:
        return key
    named = _NAMED.get(key.lower())
    if named is not None:
        return named
    head, _, rest = key.partition("-")
    if head.upper() in {"M", "ALT", "META"} and rest:
        return "\x1b" + _one(rest)
    if head.upper() in {"C", "CTRL"} or key.startswith("^"):
        return _control(key, rest if head.upper() in {"C", "CTRL"} else key[1:])
    raise ToolFailed(f"keys: {key!r} is no key; use names such as Enter, Up, C-c, or send text with action write")


def _control(key: str, rest: str) -> str:
    if len(rest) == 1 and "@" <= rest.upper() <= "_":
        return chr(ord(rest.upper()) & 0x1F)
    if rest.lower() == "space":
        return "\0"
    raise ToolFailed(f"keys: {key!r} is no key with control")
