"""What became of a message, in a sentence."""

from __future__ import annotations

from typing import Any

import pytest

from garra.core.access import Drop, Observe
from garra.faces.cli.messages_words import WHYS, fate

FAILED = [{"station": "answered", "detail": "fake/fake: check the key (HTTP 401: no such key)"}]


def came(state: str = "done", reason: str = "answered") -> dict[str, Any]:
    return {"direction": "in", "state": state, "reason": reason}


def went(state: str, reason: str = "") -> dict[str, Any]:
    return {"direction": "out", "state": state, "reason": reason}


@pytest.mark.parametrize(
    ("message", "answers", "timeline", "told"),
    [
        (came(), [went("sent")], [], "Its answer arrived."),
        (came(), [went("sent"), went("dead", "the chat is gone")], [], "Its answer did not arrive: the chat is gone."),
        (came(), [went("unsure")], [], "Its answer was sent, but may not have arrived."),
        (came(), [went("pending", "no connection")], [], "Its answer waits to be sent: no connection."),
        (came(), [went("sending")], [], "Its answer is with the platform."),
        (came(), [], [], "Its answer is on no record any more."),
        (came(reason="command status"), [went("sent")], [], "Its answer arrived."),
        (
            came(reason="failed"),
            [went("sent")],
            FAILED,
            "It was not answered: fake/fake: check the key (HTTP 401: no such key). The line that says so arrived.",
        ),
        (
            came(reason="failed"),
            [went("dead", "blocked")],
            [],
            "It was not answered: a fault kept its run from an end. The line that says so did not arrive: blocked.",
        ),
        (came("adopted", ""), [], [], "An agent is at work on it."),
        (came("dead", "x"), [], [], "It was given up, and no answer was made."),
        (came(reason="reaction"), [], [], "It was not something to answer."),
        (came(reason="pairing"), [went("sent")], [], WHYS["pairing"]),
        (went("sent"), [], [], ""),
    ],
)
def test_it_says_what_became_of_it(
    message: dict[str, Any], answers: list[dict[str, Any]], timeline: list[dict[str, Any]], told: str
) -> None:
    assert fate(message, answers, timeline) == told


def test_every_reason_of_the_gate_has_a_sentence() -> None:
    """Those that stand in `core/access`."""
    reasons = {"own", "no-sender-id", "dm-disabled", "dm-not-listed", "bot", "not-paired", "group-disabled"}
    reasons |= {"group-not-listed", "sender-is-group", "group-sender-not-listed", "not-mentioned"}
    assert reasons <= WHYS.keys()
    assert Drop("own").reason in WHYS
    assert Observe("not-mentioned").reason in WHYS
