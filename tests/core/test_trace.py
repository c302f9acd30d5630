from __future__ import annotations

from garra.core.trace import Marks, Request, Step


def test_a_run_begins_with_nothing() -> None:
    marks = Marks(5)
    assert (marks.accepted, marks.phases, marks.ending, marks.left_out) == (5, [], "", 0)
    assert Request(1, 2, "p", "m", "success").level == "first"
    assert Step("read", 1).ended == 0
