"""Characters that no text holds: halves of surrogate pairs, which neither UTF-8 nor a database takes, and NUL."""

from __future__ import annotations

from hashlib import blake2s
from typing import Any, Final

from garra.core.patterns import later

MARK: Final = "\ufffd"
"""What stands for a character that could not be kept."""

_ODD: Final = later("[\ud800-\udfff\0]")
_ID: Final = later("[\ud800-\udfff\0\ufffd]")


def sound(text: str) -> bool:
    """Whether every character of it can be stored and sent."""
    return _ODD.search(text) is None


def mended(text: str) -> str:
    """`text` for people: halves that belong together are joined, other halves and NULs become U+FFFD."""
    if sound(text):
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\0", MARK)


def escaped(text: str) -> str:
    """`text` on one line, exactly: what is not seen, or would steer a terminal, stands as Python writes it (`\\n`)."""
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)


def quoted(text: str) -> str:
    """`text` in quotes, escaped: what somebody chose to be called, told apart from what stands around it."""
    return '"' + escaped(text).replace('"', '\\"') + '"'


def certain(name: str) -> bool:
    """Whether an id is the one that was sent. U+FFFD may stand for anything, so an id with it is not."""
    return _ID.search(name) is None


def keyed(name: str) -> str:
    """An id as a key: itself where it can be stored, else a digest, so that two that differ stay two."""
    if sound(name):
        return name
    return f"unsound-{blake2s(name.encode('utf-8', 'surrogatepass'), digest_size=20).hexdigest()}"


def plain(value: Any) -> Any:
    """JSON with each text of it mended, names included."""
    match value:
        case str():
            return mended(value)
        case list():
            return [plain(each) for each in value]
        case dict():
            return {mended(str(key)): plain(each) for key, each in value.items()}
        case _:
            return value
