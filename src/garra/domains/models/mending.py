"""What a provider's refusal can be mended with, once: foreign thoughts left out, pictures replaced by words."""

from __future__ import annotations

import re
from dataclasses import replace

from garra.core.errors import Failure, FailureKind
from garra.core.requests import without_pictures, without_thinking
from garra.sdk.model import ModelRequest

_THOUGHT = r"signature|thinking|reasoning.{0,20}(content|encrypted|item)"
_PICTURE = r"image|picture|media|vision"


def mended(request: ModelRequest, failure: Failure) -> ModelRequest | None:
    """The request to try instead; None when nothing in it answers to what was refused."""
    if failure.kind not in {FailureKind.REFUSED, FailureKind.UNKNOWN} and failure.status != 413:
        return None
    for pattern, mend in ((_THOUGHT, without_thinking), (_PICTURE, without_pictures)):
        if re.search(pattern, failure.message, re.I):
            messages = mend(request.messages)
            if any(new is not old for new, old in zip(messages, request.messages, strict=False)):
                return replace(request, messages=messages, session="")
    return None


def pictures(said: str) -> bool:
    """Whether a refusal was mended, if it was, by leaving out pictures."""
    return re.search(_THOUGHT, said, re.I) is None and re.search(_PICTURE, said, re.I) is not None
