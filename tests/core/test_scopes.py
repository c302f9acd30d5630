"""Which right includes which."""

from __future__ import annotations

from garra.core.scopes import ADMIN, PAIRING, READ, TALK, WRITE, covers, reaches


def test_admin_reaches_everything_even_a_name_nobody_knows() -> None:
    assert all(reaches(frozenset({ADMIN}), scope) for scope in (ADMIN, READ, WRITE, PAIRING, "operator.new"))


def test_write_includes_read_and_talk_and_nothing_else() -> None:
    held = frozenset({WRITE})
    assert reaches(held, READ)
    assert reaches(held, TALK)
    assert not reaches(held, PAIRING)
    assert not reaches(held, ADMIN)
    assert not reaches(frozenset({READ}), WRITE)


def test_nothing_held_reaches_nothing_but_nothing() -> None:
    assert not reaches(frozenset(), READ)
    assert covers((), ())
    assert not covers((), (READ,))
    assert covers((WRITE,), (READ, WRITE))
    assert not covers((WRITE,), (READ, PAIRING))
