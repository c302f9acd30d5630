"""What a call says, and what an answer of a receiver means."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any

import pytest

from garra.builtin.channels.webhook import codec
from garra.builtin.channels.webhook.codec import Call, Misread
from garra.builtin.channels.webhook.faults import failed, lost, pause
from garra.core.errors import Unavailable
from garra.sdk.channel import Address, Button, File, Ignored, Inbound, Media, Outbound, Sender

CALL = Call("msg_1", 1_700_000_000)
NOW = 1_700_000_000


def read(**body: Any) -> Inbound | Ignored:
    whole = {"chat": "c1", "sender": {"id": "u1"}, **body}
    return codec.read("work", CALL, json.dumps(whole).encode())


def test_the_least_there_is() -> None:
    assert read(text="hello") == Inbound(
        "msg_1",
        "message",
        Address("webhook", "work", "c1", "direct"),
        Sender("u1"),
        text="hello",
        timestamp=1_700_000_000_000,
    )


def test_all_there_is() -> None:
    event = read(
        id="m7",
        text="look",
        kind="group",
        thread="t",
        mentioned=True,
        replyTo="m6",
        replyText="before",
        sender={"id": "u1", "name": "Ann", "handle": "ann", "bot": True},
        media=[{"url": "https://files.test/a.png", "kind": "image", "name": "a.png", "mime": "image/png", "size": 7}],
        unknown={"is": "left alone"},
    )
    assert isinstance(event, Inbound)
    assert (event.id, event.address.thread, event.address.kind, event.mentioned) == ("m7", "t", "group", True)
    assert (event.reply_to, event.reply_text) == ("m6", "before")
    assert event.sender == Sender("u1", "Ann", "ann", is_bot=True)
    assert event.media == (Media("image", "https://files.test/a.png", "a.png", "image/png", 7),)


def test_a_button_and_nothing_at_all() -> None:
    pressed = read(button="yes")
    assert isinstance(pressed, Inbound)
    assert (pressed.event, pressed.data) == ("button", "yes")
    assert read(text=" \n") == Ignored("msg_1", Address("webhook", "work", "c1", "direct"), "empty")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"\xff",
        b'{"chat": "c"}',
        b'{"chat": "c", "sender": {}}',
        b'{"chat": "c", "sender": {"id": ""}, "text": "x"}',
        b'{"chat": "c", "sender": {"id": 7}, "text": "x"}',
        b'{"chat": "", "sender": {"id": "u"}, "text": "x"}',
        b'{"chat": "c", "sender": {"id": "u"}, "text": "x", "kind": "secret"}',
        b'{"chat": "c", "sender": {"id": "u"}, "text": "x", "type": "edit"}',
        b'{"chat": "c", "sender": {"id": "u"}, "media": [{"url": "file:///etc/passwd"}]}',
        b"[" * 100_000,
    ],
)
def test_what_is_no_message(body: bytes) -> None:
    with pytest.raises(Misread) as caught:
        codec.read("work", CALL, body)
    assert str(caught.value)


def test_what_goes_out_and_that_it_cannot_come_back_in() -> None:
    place = Address("webhook", "work", "c1", "group", thread="t")
    file = File("image", "webhook/a.png", "a.png", "image/png", 3)
    out = Outbound("out:1", place, "**hi**", "markdown", "m7", ((Button("Yes", "y"),),), (file,), silent=True)
    body = codec.written(out, {"webhook/a.png": b"abc"})
    assert json.loads(body) == {
        "type": "message",
        "id": "out:1",
        "chat": "c1",
        "kind": "group",
        "text": "**hi**",
        "format": "markdown",
        "thread": "t",
        "replyTo": "m7",
        "buttons": [[{"label": "Yes", "data": "y"}]],
        "files": [{"kind": "image", "name": "a.png", "mime": "image/png", "size": 3, "data": "YWJj"}],
        "silent": True,
    }
    with pytest.raises(Misread):
        codec.read("work", CALL, body)


@pytest.mark.parametrize(
    ("status", "fault"),
    [
        (301, "refused"), (400, "refused"), (401, "auth"), (403, "refused"), (404, "refused"), (408, "passing"),
        (410, "gone"), (413, "too_long"), (422, "refused"), (425, "passing"), (429, "passing"), (500, "unsure"),
        (502, "unsure"), (503, "passing"), (504, "unsure"),
    ],
)  # fmt: skip
def test_what_an_answer_means(status: int, fault: str) -> None:
    assert failed(status, {}, NOW, files=False).fault == fault
    assert failed(413, {}, NOW, files=True).fault == "too_large"


def test_when_it_is_to_be_tried_again() -> None:
    assert failed(429, {"retry-after": "7"}, NOW, files=False).retry_after_s == 7.0
    assert failed(503, {"retry-after": format_datetime(datetime.fromtimestamp(NOW + 90, UTC))}, NOW, files=False
                  ).retry_after_s == 90.0  # fmt: skip
    assert failed(410, {"retry-after": "7"}, NOW, files=False).retry_after_s is None
    assert pause("9" * 30, NOW) == 86_400.0
    assert pause("soon", NOW) is None
    assert pause("", NOW) is None
    assert pause("Mon, 01 Jan 2001 00:00:00 GMT", NOW) == 0.0


@pytest.mark.parametrize(
    ("kind", "fault"), [("connect", "passing"), ("refused", "refused"), ("timeout", "unsure"), ("cut", "unsure")]
)
def test_what_silence_means(kind: str, fault: str) -> None:
    assert lost(Unavailable("x", details={"kind": kind})).fault == fault
