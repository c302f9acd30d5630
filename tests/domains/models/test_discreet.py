"""A model's answer in pieces shows no secret, whole or in parts, and loses no word."""

from __future__ import annotations

from garra.core.blots import NONE, blots
from garra.core.errors import Failure, FailureKind
from garra.core.events import CallDelta, Done, Failed, StreamEvent, TextDelta, ThinkingDelta
from garra.core.messages import Assistant, Text
from garra.domains.models.discreet import Discreet

KEY = "sk-known-5f3c9a7e1b2d4c6f8a0e"
HIDES = blots([KEY])


def said(events: list[StreamEvent]) -> str:
    return "".join(event.delta for event in events if isinstance(event, TextDelta))


def test_a_secret_in_pieces_of_every_size() -> None:
    for size in range(1, len(KEY) + 2):
        out: list[StreamEvent] = []
        quiet = Discreet(out.append, HIDES)
        text = f"It is {KEY}, I think. sk-known"
        for at in range(0, len(text), size):
            quiet.push(TextDelta(0, text[at : at + size]))
            assert KEY not in said(out)
        quiet.push(Done(Assistant((Text(text),), 1)))
        assert said(out) == "It is ***, I think. sk-known"
        end = out[-1]
        assert isinstance(end, Done)
        assert end.message.text == "It is ***, I think. sk-known"


def test_what_waits_comes_before_what_is_of_another_kind() -> None:
    out: list[StreamEvent] = []
    quiet = Discreet(out.append, HIDES)
    quiet.push(ThinkingDelta(0, "so sk-kn"))
    quiet.push(TextDelta(1, "own"))
    quiet.push(CallDelta(2, "c", "exec", "{}"))
    assert out == [
        ThinkingDelta(0, "so "),
        ThinkingDelta(0, "sk-kn"),
        TextDelta(1, "own"),
        CallDelta(2, "c", "exec", "{}"),
    ]


def test_an_answer_that_breaks() -> None:
    out: list[StreamEvent] = []
    quiet = Discreet(out.append, HIDES)
    quiet.push(TextDelta(0, "half sk-kno"))
    failed = quiet.failed(Failed(Assistant((Text(KEY),), 1), Failure(FailureKind.AUTH, f"bad {KEY}")))
    assert said(out) == "half sk-kno"
    assert KEY not in repr(failed)


def test_where_nothing_is_known_nothing_is_touched() -> None:
    out: list[StreamEvent] = []
    quiet = Discreet(out.append, NONE)
    events: list[StreamEvent] = [TextDelta(0, "sk-"), Done(Assistant((Text("sk-"),), 1))]
    for event in events:
        quiet.push(event)
    assert all(one is other for one, other in zip(out, events, strict=True))
    failed = Failed(Assistant((), 1), Failure(FailureKind.AUTH, "no"))
    assert quiet.failed(failed) is failed
