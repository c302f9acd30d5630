"""Lines of IRC, by examples and by properties."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from garra.builtin.channels.irc import line
from garra.builtin.channels.irc.line import Line, ctcp, fold, read, room, seen, spoken, write

WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=80)


@pytest.mark.parametrize(
    ("raw", "meant"),
    [
        (b"PING :irc.example.com", Line("PING", ("irc.example.com",))),
        (b":a!b@c PRIVMSG #x :hello  there :)", Line("PRIVMSG", ("#x", "hello  there :)"), "a!b@c")),
        (b":s 001 me\r", Line("001", ("me",), "s")),
        (b"@time=2026-01-02T03:04:05.678Z;msgid=a\\:b\\s\\\\;bot :a!b@c privmsg me :x",
         Line("PRIVMSG", ("me", "x"), "a!b@c", {"time": "2026-01-02T03:04:05.678Z", "msgid": "a;b \\", "bot": ""})),
        (b"AUTHENTICATE +", Line("AUTHENTICATE", ("+",))),
        (b":a!b@c PRIVMSG me :", Line("PRIVMSG", ("me", ""), "a!b@c")),
        (b":a!b@c PRIVMSG me :gr\xfc\xdfe", Line("PRIVMSG", ("me", "grüße"), "a!b@c")),
        (b"", None),
        (b":only", None),
        (b"@only", None),
    ],
)  # fmt: skip
def test_reading(raw: bytes, meant: Line | None) -> None:
    assert read(raw) == meant


def test_words_of_a_line() -> None:
    found = Line("X", ("a", "b"), "n!u@h")
    assert (found.param(0), found.param(-1), found.param(7), found.nick, found.personal) == ("a", "b", "", "n", True)
    assert not Line("X", source="irc.example").personal


@given(st.binary(max_size=600))
def test_whatever_comes_is_read_or_passed_over(raw: bytes) -> None:
    found = read(raw)
    assert found is None or found.command


@given(WORDS, st.dictionaries(st.sampled_from(["msgid", "+draft/reply"]), WORDS.map(lambda t: t.replace("\0", ""))))
def test_no_word_begins_another_line(text: str, tags: dict[str, str]) -> None:
    raw = write("PRIVMSG", "#x", text, tags=tags)
    assert raw.count(b"\r") == raw.count(b"\n") == 1
    assert raw.endswith(b"\r\n")
    found = read(raw[:-2])
    assert found is not None
    assert (found.command, found.param(0), found.tags) == ("PRIVMSG", "#x", tags)


@pytest.mark.parametrize("word", ["", "a b", ":a", "a\r\nQUIT"])
def test_a_target_that_would_be_more_than_one_word_is_refused(word: str) -> None:
    with pytest.raises(ValueError, match="not words"):
        write("PRIVMSG", word, "x")


@given(WORDS, st.integers(4, 120))
def test_lines_fit_and_lose_nothing(text: str, most: int) -> None:
    lines = spoken(text, most)
    assert all(0 < len(part.encode()) <= most for part in lines)
    assert not any(set(part) & set("\r\n\0\x01") for part in lines)
    kept = "".join("".join(part.split()) for part in lines)
    whole = "".join(text.replace("\0", "").replace("\x01", "").split())
    assert kept == whole or len(seen(whole)) < len(whole)


def test_lines_break_at_spaces_where_they_can() -> None:
    assert spoken("one two three", 8) == ["one two", "three"]
    assert spoken("ééééé", 4) == ["éé", "éé", "é"]
    assert spoken("a\r\nQUIT :x\n\n \x02\x02\nb", 100) == ["a", "QUIT :x", "b"]
    assert spoken("  \x01VERSION\x01", 100) == ["  VERSION"]


def test_room_counts_what_others_receive() -> None:
    left = room("nick!~user@host", "#chan")
    assert len(b":nick!~user@host PRIVMSG #chan :" + b"x" * left + b"\r\n") == 512


def test_names_are_compared_as_servers_do() -> None:
    assert fold("Nick[A]\\~") == "nick{a}|^"
    assert fold("Nick[A]~", "ascii") == "nick[a]~"
    assert fold("N~", "strict-rfc1459") == "n~"
    assert fold("Ünï", "rfc7613") == "Ünï".replace("N", "n")


def test_looks_and_requests_are_taken_off() -> None:
    assert seen("\x02bold\x02 \x0304,12red\x03 \x1di\x1d \x0fplain \x04ff0000x") == "bold red i plain x"
    assert ctcp("\x01ACTION waves\x01") == ("ACTION", "waves")
    assert ctcp("\x01\x01") == ("EMPTY", "")
    assert ctcp("plain") == ("", "plain")
    assert line.MOST == 512
