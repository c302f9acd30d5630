"""Where a person writes: Enter sends, ctrl+j starts a new line, the arrows bring back what was sent before."""

from __future__ import annotations

from dataclasses import dataclass

from textual import events
from textual.message import Message
from textual.widgets import TextArea

NEW_LINE = frozenset({"ctrl+j", "shift+enter", "alt+enter"})
KEPT = 200


class Composer(TextArea):
    """A text area that knows what was sent before."""

    @dataclass
    class Sent(Message):
        """The person pressed Enter on these words."""

        text: str

    def __init__(self) -> None:
        super().__init__(show_line_numbers=False, soft_wrap=True, compact=True, placeholder="Message Garra")
        self.highlight_cursor_line = False
        self._sent: list[str] = []
        self._at = 0

    async def _on_key(self, event: events.Key) -> None:
        if event.key == "enter":
            event.prevent_default().stop()
            self._send()
        elif event.key in NEW_LINE:
            event.prevent_default().stop()
            self.insert("\n")
        elif self._recalls(event.key):
            event.prevent_default().stop()
        else:
            await super()._on_key(event)

    def put(self, text: str) -> None:
        """Replace what stands there; the cursor goes to its end."""
        self.text = text
        self.move_cursor(self.document.end)

    def _send(self) -> None:
        text = self.text.strip()
        if not text:
            return
        self._sent = [*self._sent[-KEPT:], text]
        self._at = len(self._sent)
        self.text = ""
        self.post_message(self.Sent(text))

    def _recalls(self, key: str) -> bool:
        if key == "up" and self.cursor_at_first_line:
            return self._recall(-1)
        return key == "down" and self.cursor_at_last_line and self._recall(1)

    def _recall(self, step: int) -> bool:
        at = self._at + step
        if not 0 <= at <= len(self._sent) or (self._at == len(self._sent) and self.text):
            return False
        self._at = at
        self.put(self._sent[at] if at < len(self._sent) else "")
        return True
