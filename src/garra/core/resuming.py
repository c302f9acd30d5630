"""An answer that broke after words of it were shown: what was shown stays, and the next call goes on behind it."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from garra.core.events import CallDelta, Done, Failed, StreamEvent, TextDelta, ThinkingDelta
from garra.core.messages import Assistant, Message, Part, Text, Thinking, User

NOTE: Final = (
    "[Your last message was cut off by a fault of the connection. The person has seen it as far as it goes. Go on"
    " exactly where it stops: repeat nothing of it, and do not speak of the fault.]"
)
STRIDE: Final = 1_000
"""So far the parts of one answer are numbered apart from those of the next."""


def shown(parts: tuple[Part, ...]) -> str:
    """The words among `parts` that a person has seen."""
    return "".join(part.text for part in parts if isinstance(part, Text))


def continued(messages: tuple[Message, ...], said: str, now_ms: int) -> tuple[Message, ...]:
    """The history with what was shown, and the word to go on."""
    if not said.strip():
        return messages
    return (*messages, Assistant((Text(said),), now_ms), User((Text(NOTE),), now_ms))


def moved(event: StreamEvent, calls: int) -> StreamEvent:
    """An event of the call number `calls` (from 0), its parts numbered behind those before."""
    if not calls or not isinstance(event, TextDelta | ThinkingDelta | CallDelta):
        return event
    return replace(event, index=event.index + calls * STRIDE)


def whole(end: Done | Failed, said: str) -> Done | Failed:
    """The end of an answer, with what was shown before in front of its words."""
    if not said:
        return end
    content = end.message.content
    at = next((at for at, part in enumerate(content) if not isinstance(part, Thinking)), len(content))
    behind = content[at:]
    if behind and isinstance(behind[0], Text):
        joined: tuple[Part, ...] = (Text(said + behind[0].text), *behind[1:])
    else:
        joined = (Text(said), *behind)
    return replace(end, message=replace(end.message, content=(*content[:at], *joined)))
