"""Every mark names a row, and the page says of every row what the tests say."""

from __future__ import annotations

from tests.architecture import requirements
from tests.architecture.caps import TESTS, files


def test_the_page_and_the_marks_are_equal() -> None:
    proved = requirements.marked()
    listed = requirements.rows()
    assert proved <= {row.id for row in listed}
    stale = [f"{row.id}: {row.state}" for row in listed if row.state != requirements.state(row, proved)]
    assert not stale, "run: python -m tests.architecture.requirements"


def test_a_mark_names_few_rows() -> None:
    crowded = [
        f"{path}:{line}" for path in files(TESTS) for line, ids in requirements.marks(path) if not 1 <= len(ids) <= 4
    ]
    assert not crowded
