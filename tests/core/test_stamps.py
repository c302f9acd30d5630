"""Users' words carry their time to the model; what is stored stays clean."""

from __future__ import annotations

from datetime import timedelta, timezone

import pytest

from garra.core.messages import Image, Text, User
from garra.core.stamps import moment, stamped

AT = 1_760_018_580_000
ZONE = timezone(timedelta(hours=2), "CEST")


@pytest.mark.req("LOOP-11")
def test_the_same_message_renders_alike() -> None:
    message = User((Image("image/png", ""), Text("hello"), Text("again")), AT, {"k": 1})
    assert moment(AT, ZONE) == "Thu 2025-10-09 16:03 CEST"
    once = stamped(message, ZONE)
    assert once.content[1:] == (Text("[Thu 2025-10-09 16:03 CEST] hello"), Text("again"))
    assert (once.timestamp, once.meta) == (AT, {"k": 1})
    assert stamped(message, ZONE) == once
    assert stamped(once, ZONE) is once


@pytest.mark.parametrize("text", ["[Telegram Ann 2025-10-09 14:03 UTC] hi", "[Thu 2025-10-09 14:03 UTC] hi", "", "  "])
def test_what_has_its_time_or_no_words(text: str) -> None:
    message = User((Text(text),), AT)
    assert stamped(message) is message


def test_other_brackets_are_words() -> None:
    assert stamped(User((Text("[1] hi"),), AT)).text == "[Thu 2025-10-09 14:03 UTC] [1] hi"
