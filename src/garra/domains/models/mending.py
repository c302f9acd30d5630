"""What a provider's refusal can be mended with, once: foreign thoughts left out, pictures replaced by words."""

from __future__ import annotations

import re
from dataclasses import replace

from garra.core.errors import Failure, FailureKind
from garra.core.messages import Assistant, Content, Image, Message, Text, Thinking, ToolResult, User
from garra.sdk.model import ModelRequest

_THOUGHT = r"signature|thinking|reasoning.{0,20}(content|encrypted|item)"
_PICTURE = r"image|picture|media|vision"
_STUB = Text("[a picture that this model did not accept]")


def mended(request: ModelRequest, failure: Failure) -> ModelRequest | None:
    """The request to try instead; None when nothing in it answers to what was refused."""
    if failure.kind not in {FailureKind.REFUSED, FailureKind.UNKNOWN} and failure.status != 413:
        return None
    for pattern, mend in ((_THOUGHT, _unthought), (_PICTURE, _blind)):
        if re.search(pattern, failure.message, re.I):
            messages = tuple(mend(message) for message in request.messages)
            if any(new is not old for new, old in zip(messages, request.messages, strict=True)):
                return replace(request, messages=messages, session="")
    return None


def _unthought(message: Message) -> Message:
    if not isinstance(message, Assistant) or not any(isinstance(part, Thinking) for part in message.content):
        return message
    return replace(message, content=tuple(part for part in message.content if not isinstance(part, Thinking)))


def _blind(message: Message) -> Message:
    if isinstance(message, User | ToolResult) and any(isinstance(part, Image) for part in message.content):
        return replace(message, content=_words(message.content))
    return message


def _words(content: Content) -> Content:
    return tuple(_STUB if isinstance(part, Image) else part for part in content)
