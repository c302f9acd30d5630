"""What a session's agent should hear with its next turn: commands in the background that ended meanwhile."""

from __future__ import annotations

from collections import deque

from garra.core.ids import SessionKey
from garra.core.taint import Mark
from garra.sdk.ports import Ran

KEPT = 5
"""How many ends are told of; older ones are found by the process tool."""

LAST = 200
"""How many characters of a command's last output are told."""


class News:
    """Notes by session, given out once."""

    def __init__(self) -> None:
        self._notes: dict[SessionKey, deque[str]] = {}
        self._marks: dict[SessionKey, tuple[Mark, ...]] = {}

    def ended(self, session_key: SessionKey, ran: Ran) -> None:
        """A background command ended by itself."""
        how = f"exit code {ran.exit_code}" if ran.exit_code is not None else ran.status
        last = ran.output.strip()[-LAST:]
        words = f"The background command {ran.session} ended ({how})."
        note = f"{words} Its last output:\n{last}" if last else words
        self._notes.setdefault(session_key, deque(maxlen=KEPT)).append(note)
        if ran.marks:
            self._marks[session_key] = (*self._marks.get(session_key, ()), *ran.marks)[-KEPT:]

    def marks(self, session_key: SessionKey) -> tuple[Mark, ...]:
        """What of the notes is text from outside; to be asked for before they are taken, once."""
        return self._marks.pop(session_key, ())

    def take(self, session_key: SessionKey) -> tuple[str, ...]:
        """What has not been told yet; now it has."""
        return tuple(self._notes.pop(session_key, ()))
