"""No fault, note or refusal of any channel tells a credential, whatever the platform answered."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from garra.app.discreet import Discreet
from garra.core.redact import cleaner
from garra.sdk.channel import (
    Address,
    Channel,
    Identity,
    Limits,
    LinkRefused,
    Media,
    Outbound,
    Pulse,
    Receive,
    SendFailed,
)
from garra.testing.channels import Heard, outbound

TOKEN = "800000:two"
CHAT = Address("toy", "default", "7", "direct")


class Plain:
    """A channel that repeats its token in every word it says."""

    limits = Limits(100)

    async def run(self, receive: Receive, pulse: Pulse) -> None:
        pulse.connected(Identity("1"))
        pulse.alive()
        pulse.note(f"note {TOKEN}")
        raise LinkRefused(f"refused {TOKEN}", details={"retryAfterS": 3})

    async def send(self, message: Outbound) -> str:
        raise SendFailed("passing", f"x {TOKEN} y", 7.0)


class Rich(Plain):
    path = "/hook"

    async def edit(self, message_id: str, message: Outbound) -> None:
        raise SendFailed("gone", f"x {TOKEN} y")

    async def open_direct(self, user: str) -> Address:
        return CHAT

    async def fetch(self, media: Media, limit: int) -> AsyncIterator[bytes]:
        yield b"first"
        raise SendFailed("too_large", f"x {TOKEN} y")


def discreet(channel: Channel) -> Discreet:
    return Discreet(channel, cleaner([TOKEN]))


async def test_a_failed_send_keeps_its_meaning_and_loses_the_token() -> None:
    with pytest.raises(SendFailed) as raised:
        await discreet(Plain()).send(outbound(CHAT, "hi"))
    fault = raised.value
    assert (fault.message, str(fault), fault.fault, fault.retry_after_s) == ("x *** y", "x *** y", "passing", 7.0)


async def test_notes_and_the_end_of_a_link_are_cleaned() -> None:
    heard = Heard()
    with pytest.raises(LinkRefused, match=r"refused \*\*\*") as raised:
        await discreet(Plain()).run(heard.receive, heard)
    assert raised.value.details == {"retryAfterS": 3}
    assert (heard.notes, heard.beats, heard.me) == (["note ***"], 1, Identity("1"))


async def test_what_only_some_channels_have_is_cleaned_too_and_missing_where_it_is_missing() -> None:
    rich = discreet(Rich())
    with pytest.raises(SendFailed, match=r"x \*\*\* y"):
        await rich.edit("1", outbound(CHAT, "hi"))
    got = []
    with pytest.raises(SendFailed, match=r"x \*\*\* y"):
        async for chunk in rich.fetch(Media("file", "r"), 10):
            got.append(chunk)  # noqa: PERF401 - what came before the fault counts
    assert (got, rich.path, await rich.open_direct("7")) == ([b"first"], "/hook", CHAT)
    assert getattr(discreet(Plain()), "edit", None) is None
