"""A background command's end is told once, with the next turn of its own session."""

from __future__ import annotations

from garra.core.ids import SessionKey
from garra.runs.news import KEPT, News
from garra.sdk.ports import Ran

A, B = SessionKey("agent:main:a"), SessionKey("agent:main:b")


def test_told_once_and_to_nobody_else() -> None:
    news = News()
    news.ended(A, Ran("completed", "built\n", exit_code=0, session="quick-fox"))
    assert news.take(B) == ()
    assert news.take(A) == ("The background command quick-fox ended (exit code 0). Its last output:\nbuilt",)
    assert news.take(A) == ()


def test_only_the_newest_are_told() -> None:
    news = News()
    for number in range(KEPT + 3):
        news.ended(A, Ran("timeout", "", session=f"job-{number}"))
    notes = news.take(A)
    assert len(notes) == KEPT
    assert notes[-1] == f"The background command job-{KEPT + 2} ended (timeout)."
