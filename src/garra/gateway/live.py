"""Words as they arrive, paced.

Each live event repeats everything said so far (that is what the clients read), so a reply of n bytes costs n²/2. Three
things bound it: one event in 75 ms at most, the text is kept and sent as JSON text that is never escaped twice, and
once a run has sent `BUDGET` bytes a watcher gets no more than `RATE` bytes a second.
"""

from __future__ import annotations

import msgspec

INTERVAL_S = 0.075
BUDGET = 128 << 20
RATE = 2 << 20


def _escaped(text: str) -> bytes:
    try:
        return msgspec.json.encode(text)[1:-1]
    except UnicodeEncodeError:
        return msgspec.json.encode(text.encode("utf-8", "replace").decode())[1:-1]


def quoted(parts: bytes | bytearray | memoryview) -> msgspec.Raw:
    """A JSON string of text that is already escaped."""
    return msgspec.Raw(b"".join((b'"', parts, b'"')))


class LiveText:
    """The words of one run: `whole` over all its messages, `item` of the message at hand, `fresh` not sent yet."""

    __slots__ = ("_fresh", "_item", "_joint", "_sent", "_whole", "sent_at")

    def __init__(self) -> None:
        self._whole = bytearray()
        self._item = 0
        self._fresh = 0
        self._joint = 0
        self._sent = 0
        self.sent_at: float | None = None

    def begin(self) -> None:
        """Another message starts; its words stand in a paragraph of their own."""
        self._item = len(self._whole)
        self._joint = 0

    def add(self, delta: str) -> None:
        words = _escaped(delta)
        if self._item == len(self._whole) and self._item and words:
            self._whole += b"\\n\\n"
            self._joint = 4
        self._whole += words

    def __bool__(self) -> bool:
        """Whether there is something to send."""
        return self._fresh < len(self._whole)

    @property
    def text(self) -> str:
        return msgspec.json.decode(quoted(self._whole), type=str)

    def due(self, now: float) -> float:
        """Seconds until the next event may go out; 0 or less is now."""
        if self.sent_at is None:
            return 0.0
        pause = INTERVAL_S if self._sent < BUDGET else max(INTERVAL_S, 2 * len(self._whole) / RATE)
        return self.sent_at + pause - now

    def take(self, now: float) -> tuple[msgspec.Raw, msgspec.Raw, msgspec.Raw, msgspec.Raw]:
        """(new words of the run, all its words, new words of this message, all words of it); now they count as sent."""
        whole = memoryview(self._whole)
        own = self._item + self._joint
        parts = (
            quoted(whole[self._fresh :]),
            quoted(whole),
            quoted(whole[max(self._fresh, own) :]),
            quoted(whole[own:]),
        )
        whole.release()
        self._fresh = len(self._whole)
        self._sent += 2 * len(self._whole)
        self.sent_at = now
        return parts
