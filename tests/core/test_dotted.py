from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from garra.core.dotted import parse, show
from garra.core.errors import UserError


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("gateway.port", ("gateway", "port")),
        ("agents.list[0].model", ("agents", "list", 0, "model")),
        ('models["a/b.c"].params', ("models", "a/b.c", "params")),
        ("models['a.b']", ("models", "a.b")),
        ("models[x-y].z", ("models", "x-y", "z")),
        (' a."b.c".d ', ("a", "b.c", "d")),
        ('a["q\\"x"]', ("a", 'q"x')),
    ],
)
def test_reads_what_people_write(text: str, path: tuple[str | int, ...]) -> None:
    assert parse(text) == path


@pytest.mark.parametrize("text", ["", "   ", "a..b", "a[", "a.b]", "."])
def test_says_what_cannot_be_read(text: str) -> None:
    with pytest.raises(UserError):
        parse(text)


@given(st.lists(st.one_of(st.text(min_size=1), st.integers(0, 99)), min_size=1, max_size=5))
def test_what_is_shown_can_be_read_again(path: list[str | int]) -> None:
    assert parse(show(tuple(path))) == tuple(path)
