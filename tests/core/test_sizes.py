from __future__ import annotations

import pytest

from garra.core.sizes import count


@pytest.mark.parametrize(
    ("text", "bytes_"),
    [("2mb", 2 << 20), ("512 KB", 512 << 10), ("1.5g", 3 << 29), ("17", 17), ("17b", 17), (5, 5), (None, None)],
)
def test_a_size_is_read_as_people_write_it(text: object, bytes_: object) -> None:
    assert count(text) == bytes_


@pytest.mark.parametrize("text", ["2 parsecs", "mb", "", "-1mb"])
def test_what_is_no_size_stays_as_it_is(text: str) -> None:
    assert count(text) == text
