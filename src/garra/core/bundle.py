"""What a skill that is to be installed consists of: files with names that stay in its folder, so many, so large.

What is refused is refused whole, with the one entry that is the cause: nobody learns from half a skill what was left
out of it.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal

from garra.core.characters import escaped
from garra.core.errors import UserError
from garra.core.patterns import later
from garra.core.value import frozen

MAIN: Final = "SKILL.md"
FILES: Final = 256
FILE_BYTES: Final = 1 << 20
WHOLE: Final = 8 << 20
DEPTH: Final = 8
NAME: Final = 200
ENTRIES: Final = 20_000
"""So many entries of an archive or a folder are looked at."""
PASSED_OVER: Final = frozenset(
    (".git", ".hg", ".svn", "__MACOSX", ".DS_Store", "node_modules", "__pycache__", ".venv", ".clawhub")
)
"""What lies beside a skill and is no part of it."""
SLUG: Final = 64

Kind = Literal["file", "folder", "link", "other"]

_SLUG = later(r"[a-z0-9][a-z0-9._-]*")
_NOT_SLUG = later(r"[^a-z0-9._-]+")


@frozen
class Entry:
    """One entry of an archive or a folder: its name as it stands there, what it is, the bytes it says it has."""

    name: str
    size: int = 0
    kind: Kind = "file"


@frozen
class Chosen:
    """The files of a skill: `files` leads from each path in the skill's folder to the entry that is to be there."""

    files: Mapping[str, Entry]

    @property
    def size(self) -> int:
        return sum(entry.size for entry in self.files.values())


def chosen(entries: Sequence[Entry], inside: str = "") -> Chosen:
    """The files of the one skill in `entries`: in the folder `inside` of it, else at its top or in its only folder.

    Raises UserError for what is no skill, or is not to be let in.
    """
    if len(entries) > ENTRIES:
        raise UserError(f"more than {ENTRIES:,} entries: that is no skill")
    placed = [(place(entry.name), entry) for entry in entries if entry.kind != "folder"]
    root = _root([path for path, _ in placed], inside)
    files: dict[str, Entry] = {}
    for path, entry in placed:
        if path.startswith(root) and not PASSED_OVER.intersection(path[len(root) :].split("/")):
            _admit(files, path[len(root) :], entry)
    return Chosen(files)


def _root(paths: Sequence[str], inside: str) -> str:
    """What the paths of the skill's files begin with: empty, or ends in /."""
    if inside:
        root = f"{place(inside)}/"
        if f"{root}{MAIN}" not in paths:
            raise UserError(f"there is no {MAIN} in {escaped(inside)}")
        return root
    if MAIN in paths:
        return ""
    found = sorted({path.rpartition("/")[0] for path in paths if path.rpartition("/")[2] == MAIN})
    near = [folder for folder in found if "/" not in folder]
    if len(near) == 1 or (len(found) == 1 and not near):
        return f"{(near or found)[0]}/"
    if not found:
        raise UserError(f"there is no {MAIN} in it: that is no skill")
    named = ", ".join(map(escaped, found[:8]))
    raise UserError(f"it holds {len(found)} skills ({named}{', …' * (len(found) > 8)}): choose one with --path FOLDER")


def _admit(files: dict[str, Entry], path: str, entry: Entry) -> None:
    """Raises UserError for an entry that may not be a file of a skill."""
    shown = escaped(path)
    if entry.kind == "link":
        raise UserError(f"{shown} is a link: a skill consists of files")
    if entry.kind == "other":
        raise UserError(f"{shown} is neither a file nor a folder")
    if entry.size > FILE_BYTES:
        raise UserError(f"{shown} is larger than {FILE_BYTES >> 20} MiB")
    if clash := next((known for known in files if _clash(_folded(known), _folded(path))), ""):
        raise UserError(f"{escaped(clash)} and {shown} cannot both be there")
    files[path] = entry
    if len(files) > FILES:
        raise UserError(f"more than {FILES} files: that is no skill")
    if sum(each.size for each in files.values()) > WHOLE:
        raise UserError(f"more than {WHOLE >> 20} MiB of files: that is no skill")


def _clash(one: str, other: str) -> bool:
    """Whether they are one file to some system, or one of them would have to be a folder for the other to be there."""
    return one == other or one.startswith(f"{other}/") or other.startswith(f"{one}/")


def _folded(path: str) -> str:
    """The same for two names that some file system holds for one."""
    return unicodedata.normalize("NFC", path).casefold()


def place(name: str) -> str:
    """A name in an archive as a path below the skill's folder. Raises UserError for one that leads elsewhere."""
    shown = escaped(name[:NAME])
    if not name or len(name) > NAME:
        raise UserError(f"a name of {len(name)} characters is no name of a file: {shown}")
    if "\\" in name or ":" in name or not name.isprintable() or unseen(name):
        raise UserError(f"the name {shown} holds a character that no name in a skill may have")
    if name.startswith("/"):
        raise UserError(f"{shown} leads out of the skill's folder")
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if ".." in parts or not parts:
        raise UserError(f"{shown} leads out of the skill's folder")
    if any(part != part.strip() or part.endswith(".") for part in parts):
        raise UserError(f"the name {shown} begins or ends with what some systems leave out")
    if len(parts) > DEPTH:
        raise UserError(f"{shown} lies deeper than {DEPTH} folders")
    return "/".join(parts)


def slug(*names: str) -> str:
    """The name of a skill's folder: the first of `names` that gives one. Raises UserError where none does."""
    for name in names:
        made = _NOT_SLUG.sub("-", name.strip().lower()).strip("-._")[:SLUG].strip("-._")
        if made and _SLUG.fullmatch(made):
            return made
    raise UserError(f"{escaped(names[0][:SLUG]) or 'that'} gives no name for a folder: say one with --as NAME")


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def digests(files: Mapping[str, bytes]) -> dict[str, str]:
    """The SHA-256 of each file."""
    return {path: digest(data) for path, data in sorted(files.items())}


@frozen
class Changes:
    """How files differ from what they were: paths, sorted."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.gone)

    def lines(self) -> Iterator[str]:
        """`+ path`, `~ path`, `- path`."""
        for mark, paths in (("+", self.added), ("~", self.changed), ("-", self.gone)):
            yield from (f"{mark} {escaped(path)}" for path in paths)

    def words(self) -> str:
        """In a line."""
        named = (("changed", self.changed), ("new", self.added), ("gone", self.gone))
        return ", ".join(f"{word}: {', '.join(map(escaped, paths))}" for word, paths in named if paths)


def compared(before: Mapping[str, str], now: Mapping[str, str]) -> Changes:
    """From the digests of then to those of now."""
    return Changes(
        tuple(sorted(now.keys() - before.keys())),
        tuple(sorted(path for path in now.keys() & before.keys() if now[path] != before[path])),
        tuple(sorted(before.keys() - now.keys())),
    )


def unseen(text: str) -> tuple[str, ...]:
    """The characters in it that a person does not see, or that turn its direction: `line 3: U+200B ZERO WIDTH SPACE`.

    Those that join the pictures of one emoji are left out.
    """
    found: dict[str, None] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if not line.isascii():
            found |= {f"line {number}: {name}": None for name in _named(line)}
    return tuple(found)


def _named(line: str) -> Iterable[str]:
    for at, letter in enumerate(line):
        joins = letter == "\u200d" and 0 < at < len(line) - 1 and ord(line[at - 1]) > 0x2000 < ord(line[at + 1])
        if _hides(letter) and not joins and not (at == 0 and letter == "\ufeff"):
            yield f"U+{ord(letter):04X} {unicodedata.name(letter, 'without a name')}"


def _hides(letter: str) -> bool:
    code = ord(letter)
    if letter in "\u115f\u1160\u2800\u3164\uffa0\u180e\u034f" or 0xE0100 <= code <= 0xE01EF or 0xFE00 <= code <= 0xFE0D:
        return True
    return unicodedata.category(letter) in ("Cf", "Co", "Cn", "Cs") or (0x7F <= code < 0xA0 and code != 0x85)
