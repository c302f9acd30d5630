"""The `*** Begin Patch` format: read into operations, and a hunk put into its text.

A hunk is looked for as it is written, then without regard to blanks at line ends, then to blanks at line starts: models
copy text nearly right. The place found last is where the next hunk is looked for from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from garra.core.errors import ToolFailed
from garra.core.value import frozen

BEGIN, END, EOF = "*** Begin Patch", "*** End Patch", "*** End of File"
_ADD, _DELETE, _UPDATE, _MOVE = "*** Add File: ", "*** Delete File: ", "*** Update File: ", "*** Move to: "


@frozen
class Hunk:
    """`old` lines become `new` ones, after the line `context` where one is given; `last` when it ends the file."""

    context: str
    old: tuple[str, ...]
    new: tuple[str, ...]
    last: bool = False


@frozen
class Add:
    path: str
    text: str


@frozen
class Delete:
    path: str


@frozen
class Update:
    path: str
    to: str | None
    hunks: tuple[Hunk, ...]


Operation = Add | Delete | Update


def parse(text: str) -> tuple[Operation, ...]:
    """Raises ToolFailed that names the line at fault."""
    lines = _unwrapped(text.strip().splitlines())
    reader = _Reader(lines)
    found = tuple(reader.operations())
    if not found:
        raise ToolFailed("the patch holds no file")
    return found


def _unwrapped(lines: list[str]) -> list[str]:
    if lines and lines[0].startswith("<<") and len(lines) > 2:  # a shell's here-document around it
        lines = lines[1:-1]
    if not lines or lines[0].strip() != BEGIN:
        raise ToolFailed(f"the patch must begin with the line {BEGIN}")
    if lines[-1].strip() != END:
        raise ToolFailed(f"the patch must end with the line {END}")
    return lines[1:-1]


class _Reader:
    def __init__(self, lines: Sequence[str]) -> None:
        self.lines, self.at = lines, 0

    def operations(self) -> Iterator[Operation]:
        while self.at < len(self.lines):
            line = self.lines[self.at].rstrip()
            self.at += 1
            if line.startswith(_ADD):
                yield Add(_path(line, _ADD), self._added())
            elif line.startswith(_DELETE):
                yield Delete(_path(line, _DELETE))
            elif line.startswith(_UPDATE):
                yield self._update(_path(line, _UPDATE))
            elif line:
                raise self._fault(f"expected Add, Update or Delete File, got {line[:60]!r}")

    def _fault(self, what: str) -> ToolFailed:
        return ToolFailed(f"line {self.at + 1} of the patch: {what}")

    def _body(self) -> Iterator[str]:
        """The lines of this file's part."""
        while self.at < len(self.lines) and not self.lines[self.at].startswith("*** "):
            self.at += 1
            yield self.lines[self.at - 1]

    def _added(self) -> str:
        found: list[str] = []
        for line in self._body():
            if not line.startswith("+"):
                raise self._fault("every line of an added file starts with +")
            found.append(line[1:])
        return "\n".join(found) + "\n" if found else ""

    def _update(self, path: str) -> Update:
        to = None
        if self.at < len(self.lines) and self.lines[self.at].startswith(_MOVE):
            to = _path(self.lines[self.at], _MOVE)
            self.at += 1
        hunks: list[Hunk] = []
        while self.at < len(self.lines) and self._in_hunks():
            hunks.append(self._hunk())
        if not hunks and to is None:
            raise ToolFailed(f"{path}: the patch changes nothing in it")
        return Update(path, to, tuple(hunks))

    def _in_hunks(self) -> bool:
        line = self.lines[self.at]
        return not line.startswith("*** ") and bool(line.strip() or self.at + 1 < len(self.lines))

    def _hunk(self) -> Hunk:
        context = ""
        if self.lines[self.at].startswith("@@"):
            context = self.lines[self.at][2:].strip().removesuffix("@@").strip()
            self.at += 1
        old: list[str] = []
        new: list[str] = []
        for line in self._body():
            if line.startswith("@@"):
                self.at -= 1
                break
            self._take(line, old, new)
        last = self.at < len(self.lines) and self.lines[self.at].strip() == EOF
        self.at += last
        if not old and not new:
            raise self._fault("a hunk without lines")
        return Hunk(context, tuple(old), tuple(new), last)

    def _take(self, line: str, old: list[str], new: list[str]) -> None:
        sign, rest = line[:1], line[1:]
        if sign not in {"", " ", "+", "-"}:
            raise self._fault(f"a line of a hunk starts with a blank, + or -, got {line[:60]!r}")
        if sign != "+":
            old.append(rest)
        if sign != "-":
            new.append(rest)


def _path(line: str, mark: str) -> str:
    path = line.removeprefix(mark).strip()
    if not path:
        raise ToolFailed(f"{mark.strip()} names no file")
    return path


def apply(path: str, text: str, hunks: Sequence[Hunk]) -> str:
    """`text` with `hunks` put in. Line ends stay what they were. Raises ToolFailed where a hunk is not found."""
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = text.replace("\r\n", "\n").split("\n")
    if lines[-1] == "":
        lines.pop()
    at = 0
    for number, hunk in enumerate(hunks, 1):
        start = _place(lines, hunk, at)
        if start is None:
            raise ToolFailed(f"{path}: hunk {number} of {len(hunks)} is not in the file; read it and try again")
        lines[start : start + len(hunk.old)] = hunk.new
        at = start + len(hunk.new)
    return newline.join(lines) + (newline if lines else "")


def _place(lines: Sequence[str], hunk: Hunk, at: int) -> int | None:
    if hunk.context:
        found = _seek(lines, (hunk.context,), at)
        if found is None:
            return None
        at = found + 1
    if not hunk.old:
        return len(lines) if hunk.last or not hunk.context else at
    if hunk.last:
        end = len(lines) - len(hunk.old)
        return end if end >= at and _seek(lines[end:], hunk.old, 0) == 0 else None
    return _seek(lines, hunk.old, at)


def _seek(lines: Sequence[str], wanted: Sequence[str], at: int) -> int | None:
    for seen in (str, str.rstrip, str.strip):
        have, want = [seen(line) for line in lines], [seen(line) for line in wanted]
        for start in range(at, len(have) - len(want) + 1):
            if have[start : start + len(want)] == want:
                return start
    return None
