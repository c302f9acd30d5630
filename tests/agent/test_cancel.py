"""One switch, set once."""

from __future__ import annotations

from garra.agent.cancel import Cancel


def test_the_first_reason_stays_and_everybody_hears_once() -> None:
    heard: list[str] = []
    cancel = Cancel()
    cancel.attach(lambda: heard.append("a"))
    detach = cancel.attach(lambda: heard.append("b"))
    detach()
    detach()
    cancel.set("rpc")
    cancel.set("timeout")
    assert (cancel.is_set, cancel.reason, heard) == (True, "rpc", ["a"])
    cancel.attach(lambda: heard.append("late"))
    assert heard == ["a", "late"]
