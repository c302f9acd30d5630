"""Texts that cannot be stored, and ids that must not become each other."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from garra.core.characters import certain, escaped, keyed, mended, plain, quoted, sound

ANY = st.text(st.characters(categories=("Cs", "Lu", "Cc")))


@given(ANY)
def test_what_is_mended_is_sound_and_what_is_sound_stays(text: str) -> None:
    assert sound(mended(text))
    if sound(text):
        assert mended(text) == keyed(text) == text


def test_halves_that_belong_together_are_joined() -> None:
    assert mended("a\ud83d\ude00b") == "a😀b"
    assert mended("a\ud83db\0c") == "a\ufffdb\ufffdc"


@given(ANY, ANY)
def test_two_keys_stay_two(one: str, other: str) -> None:
    assert sound(keyed(one))
    assert (keyed(one) == keyed(other)) == (one == other)


def test_an_id_that_may_stand_for_another_is_not_certain() -> None:
    assert certain("@ann:example.org")
    assert not any(certain(name) for name in ("a\ud800", "a\0", "a\ufffd"))


def test_json_is_mended_in_every_corner() -> None:
    assert plain({"a\ud800": ["\0", {"b": "\udfff"}, 1, None]}) == {"a\ufffd": ["\ufffd", {"b": "\ufffd"}, 1, None]}


def test_what_is_not_seen_is_written_out_and_nothing_else_changes() -> None:
    assert escaped("Änne 🦀 \\ [42]") == "Änne 🦀 \\ [42]"
    assert escaped("a\r\nb\x1b[2J\u202e\u2028\ud800") == r"a\r\nb\x1b[2J\u202e\u2028\ud800"
    assert quoted('x" y\n') == r'"x\" y\n"'
