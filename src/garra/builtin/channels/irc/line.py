"""Lines of IRC: tags, source, command, words; names compared as servers do; text made fit for a line. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field

from garra.core.value import frozen

MOST = 512
_RAW = str.maketrans({":": ";", "s": " ", "\\": "\\", "r": "\r", "n": "\n"})
_TAGGED = str.maketrans({";": r"\:", " ": r"\s", "\\": r"\\", "\r": r"\r", "\n": r"\n"})
_UNSAID = re.compile(r"[\x00\x01]")
_BREAKS = re.compile(r"[\r\n\x0b\x0c\x85\u2028\u2029]+")
_LOOKS = re.compile(
    r"\x03(?:\d{1,2}(?:,\d{1,2})?)?|\x04(?:[0-9a-fA-F]{6}(?:,[0-9a-fA-F]{6})?)?|[\x02\x0f\x11\x16\x1d-\x1f]"
)
_CASES: Mapping[str, tuple[str, str]] = {
    "rfc1459": ("[]\\~", "{}|^"),
    "strict-rfc1459": ("[]\\", "{}|"),
    "ascii": ("", ""),
}
_UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@frozen
class Line:
    """One line. `source` is `nick!user@host`, or a server's name, or empty; a command is in capitals."""

    command: str
    params: tuple[str, ...] = ()
    source: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)

    def param(self, at: int) -> str:
        """One of its words, empty where there are fewer."""
        return self.params[at] if -len(self.params) <= at < len(self.params) else ""

    @property
    def nick(self) -> str:
        return self.source.partition("!")[0]

    @property
    def personal(self) -> bool:
        """A person or program said it, no server."""
        return "!" in self.source


def read(raw: bytes) -> Line | None:
    """A line without its end. None: it has no command. Bytes that are no UTF-8 are read as Latin-1."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        text = raw.decode("latin-1")
    text = text.replace("\x00", "").strip("\r\n")
    tags, source = "", ""
    if text.startswith("@"):
        tags, _, text = text[1:].partition(" ")
    text = text.lstrip(" ")
    if text.startswith(":"):
        source, _, text = text[1:].partition(" ")
    head, mark, tail = text.partition(" :")
    words = head.split()
    if not words:
        return None
    params = (*words[1:], tail) if mark else tuple(words[1:])
    return Line(words[0].upper(), params, source, dict(_tags(tags)))


def _tags(text: str) -> Iterator[tuple[str, str]]:
    for part in filter(None, text.split(";")):
        key, _, value = part.partition("=")
        yield key, re.sub(r"\\(.?)", lambda found: found[1].translate(_RAW), value, flags=re.DOTALL)


def write(command: str, *params: str, tags: Mapping[str, str] | None = None) -> bytes:
    """A line with its end. The last word may hold spaces; no word can begin another line.

    Raises ValueError for a word in the middle that is empty, has a space or begins with a colon.
    """
    flat = [_UNSAFE.sub(" ", param) for param in params]
    if any(not param or " " in param or param.startswith(":") for param in flat[:-1]):
        raise ValueError(f"not words of an IRC line: {command}")
    if flat:
        flat[-1] = ":" + flat[-1]
    head = "@" + ";".join(f"{key}={value.translate(_TAGGED)}" for key, value in tags.items()) + " " if tags else ""
    return (head + " ".join([command, *flat]) + "\r\n").encode("utf-8", "replace")


_UNSAFE = re.compile(r"[\x00\r\n]")


def fold(name: str, casemapping: str = "rfc1459") -> str:
    """A nick, account or channel as the server compares it: small letters."""
    upper, lower = _CASES.get(casemapping, _CASES["rfc1459"])
    return name.translate(str.maketrans(_UPPER + upper, _UPPER.lower() + lower))


def seen(text: str) -> str:
    """What a person reads: without colours, bold and the like."""
    return _LOOKS.sub("", text)


def ctcp(text: str) -> tuple[str, str]:
    """A request inside a message (`ACTION` and its words), else nothing and the text."""
    if not text.startswith("\x01"):
        return "", text
    command, _, rest = text.strip("\x01").partition(" ")
    return command.upper() or "EMPTY", rest


def spoken(text: str, room: int) -> list[str]:
    """The lines that say `text`, each of at most `room` bytes: broken at line ends, then at spaces, else anywhere but
    inside a character."""
    lines = (_UNSAID.sub("", line).rstrip() for line in _BREAKS.split(text))
    return [part for line in lines if seen(line).strip() for part in _broken(line, max(room, 4))]


def _broken(line: str, room: int) -> Iterator[str]:
    while len(line.encode("utf-8", "replace")) > room:
        head = line.encode("utf-8", "replace")[:room].decode("utf-8", "ignore")
        space = head.rfind(" ") if line[len(head) : len(head) + 1] != " " else len(head)
        cut = space if space > 0 and head[:space].strip() else len(head)
        yield line[:cut].rstrip()
        line = line[cut:].lstrip(" ")
    if line:
        yield line


def room(source: str, target: str) -> int:
    """Bytes left for words in a message of `source` to `target`, as others receive it."""
    return MOST - len(f":{source} PRIVMSG {target} :\r\n".encode())
