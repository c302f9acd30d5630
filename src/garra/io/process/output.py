"""What a program said, of which a bounded part is kept: how it began and how it goes on."""

from __future__ import annotations

HEAD, TAIL = 64_000, 136_000
"""Bytes kept of the beginning and of the end."""


class Output:
    """All a program says goes in; memory stays the same however much that is."""

    def __init__(self, head: int = HEAD, tail: int = TAIL) -> None:
        self._most_head, self._most_tail = head, tail
        self._head = bytearray()
        self._tail = bytearray()
        self.total = 0

    def append(self, data: bytes) -> None:
        self.total += len(data)
        room = self._most_head - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        self._tail += data[-self._most_tail :]
        if len(self._tail) > self._most_tail:
            del self._tail[: len(self._tail) - self._most_tail]

    @property
    def missing(self) -> int:
        """How many bytes between head and tail were let go."""
        return self.total - len(self._head) - len(self._tail)

    def text(self) -> str:
        """All that is kept, with a line where something is left out."""
        if not self.missing:
            return (self._head + self._tail).decode(errors="replace")
        return f"{_whole_end(self._head)}\n… {self.missing} bytes left out …\n{_whole_start(self._tail)}"

    def last(self, most: int) -> str:
        """The last `most` bytes, in whole characters."""
        kept = self._tail if self.missing else self._head + self._tail
        return _whole_start(kept[-most:]) if len(kept) > most else kept.decode(errors="replace")

    def since(self, mark: int) -> str:
        """What came after byte `mark` of it all, with a line where something is left out."""
        start = self.total - len(self._tail)
        if not self.missing:
            return _whole_start((self._head + self._tail)[mark:]) if mark else self.text()
        if mark >= start:
            return _whole_start(self._tail[mark - start :])
        if mark >= len(self._head):
            return f"… {start - mark} bytes left out …\n{_whole_start(self._tail)}"
        return f"{_whole_end(self._head[mark:])}\n… {self.missing} bytes left out …\n{_whole_start(self._tail)}"


def _whole_start(data: bytes | bytearray) -> str:
    """Text that may begin within a character: what is left of that one goes."""
    skip = 0
    while skip < min(3, len(data)) and data[skip] & 0xC0 == 0x80:
        skip += 1
    return data[skip:].decode(errors="replace")


def _whole_end(data: bytes | bytearray) -> str:
    """Text that may end within a character: what is there of that one goes."""
    text = data.decode(errors="replace")
    return text[:-1] if text.endswith("\ufffd") else text
