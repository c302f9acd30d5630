from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from garra.core.sse import Event, last, split


def test_lines_of_every_kind() -> None:
    assert split(b"data: a\n\ndata:b\r\n\r\ndata: c\r\rdata: half") == (
        [Event("", b"a"), Event("", b"b"), Event("", b"c")],
        b"data: half",
    )


def test_comments_names_and_unknown_fields() -> None:
    events, rest = split(b": ping\n\nevent: delta\nid: 7\nretry\ndata: x\ndata: y\n\n")
    assert events == [Event("delta", b"x\ny")]
    assert rest == b""


def test_the_mark_of_byte_order_is_dropped() -> None:
    assert split(b"\xef\xbb\xbfdata: a\n\n")[0] == [Event("", b"a")]


def test_nothing_whole_yet() -> None:
    assert split(b"data: a\n") == ([], b"data: a\n")


def test_a_return_at_the_end_waits_for_its_line_feed() -> None:
    events, rest = split(b"data: a\r\n\r")
    assert events == []
    assert split(rest + b"\ndata: b") == ([Event("", b"a")], b"data: b")


def test_the_last_event_needs_no_blank_line() -> None:
    assert last(b"data: [DONE]\r\n") == [Event("", b"[DONE]")]
    assert last(b": bye") == []
    assert last(b"") == []


@given(
    st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=9), min_size=1, max_size=6),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.data(),
)
def test_it_does_not_matter_where_the_bytes_are_cut(words: list[str], end: str, data: st.DataObject) -> None:
    wire = "".join(f"data: {word}{end}{end}" for word in words).encode()
    found: list[bytes] = []
    rest = b""
    while wire:
        size = data.draw(st.integers(1, len(wire)))
        events, rest = split(rest + wire[:size])
        found += [event.data for event in events]
        wire = wire[size:]
    found += [event.data for event in last(rest)]
    assert [item.decode() for item in found] == words
