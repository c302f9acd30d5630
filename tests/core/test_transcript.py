"""Transcripts as trees of lines."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from garra.core import taint, transcript
from garra.core.messages import Assistant, Image, Message, Text, ToolCall, ToolResult, User
from garra.core.taint import Mark
from garra.core.transcript import Entry

NOW = 1_796_044_636_255


def said(text: str) -> User:
    return User((Text(text),), NOW)


def chain(*texts: str) -> list[Entry]:
    entries: list[Entry] = []
    for text in texts:
        entries.append(
            transcript.message_entry(said(text), id_=f"m-{text}", parent=transcript.tip(entries), now_ms=NOW)
        )
    return entries


def file(entries: list[Entry], head: bytes | None = None) -> bytes:
    first = transcript.encode(transcript.header("s-1", "/w", NOW)) if head is None else head
    return b"\n".join([first, *(entry.raw for entry in entries), b""])


def active(entries: list[Entry]) -> list[str]:
    index = {entry.id: entry for entry in entries}
    return [entry.id for entry in transcript.branch(index, transcript.tip(entries))]


def words(entries: list[Entry]) -> list[str]:
    index = {entry.id: entry for entry in entries}
    return [message.text for message in transcript.visible(transcript.branch(index, transcript.tip(entries)))]


@pytest.mark.req("SESS-02")
def test_the_header_says_what_it_is() -> None:
    assert transcript.header("s-1", "/w", NOW) == {
        "type": "session", "version": 4, "id": "s-1", "timestamp": "2026-11-30T13:17:16.255Z", "cwd": "/w",
    }  # fmt: skip
    assert transcript.header("s-1", "/w", NOW, parentSession="s-0")["parentSession"] == "s-0"


def test_a_file_is_read_as_it_was_written() -> None:
    entries = chain("a", "b")
    loaded = transcript.load(file(entries))
    assert loaded.header["id"] == "s-1"
    assert list(loaded.entries) == entries
    assert entries[1].message == said("b")
    assert json.loads(entries[1].raw)["parentId"] == "m-a"


@pytest.mark.req("SESS-05")
def test_going_on_elsewhere_leaves_the_old_lines_and_makes_a_new_branch_active() -> None:
    entries = chain("a", "b", "c")
    before = file(entries)
    entries.append(transcript.leaf_entry("m-a", id_="l-1", now_ms=NOW))
    entries.append(
        transcript.message_entry(said("d"), id_="m-d", parent=transcript.tip(entries), now_ms=NOW),
    )
    after = file(entries)
    assert after.startswith(before)
    loaded = transcript.load(after)
    assert active(list(loaded.entries)) == ["m-a", "m-d"]
    assert words(list(loaded.entries)) == ["a", "d"]


def test_going_back_to_the_very_beginning() -> None:
    entries = chain("a")
    entries.append(transcript.leaf_entry(None, id_="l-1", now_ms=NOW))
    assert active(entries) == []
    entries += [transcript.message_entry(said("b"), id_="m-b", parent=None, now_ms=NOW)]
    assert active(list(transcript.load(file(entries)).entries)) == ["m-b"]
    assert transcript.tip([]) is None


@pytest.mark.req("SESS-04")
def test_what_cannot_be_stored_raises() -> None:
    with pytest.raises(TypeError):
        transcript.encode({"details": object()})


def test_half_characters_are_stored_as_replacement_characters() -> None:
    raw = transcript.encode({"a": ["x\ud83d", {"\udc00": ("\ud83d\ude00", 1)}]})
    assert json.loads(raw) == {"a": ["x\ufffd", {"\ufffd": ["\U0001f600", 1]}]}


def test_lines_that_cannot_be_read_are_skipped_and_their_children_kept() -> None:
    entries = chain("a", "b", "c")
    broken = [
        entries[0].raw,
        b'{"type":"mess',
        b"\x00\x00",
        b"[1]",
        b'{"type":"message"}',
        entries[2].raw,
        b"",
        b"\xff",
    ]
    loaded = transcript.load(b"\n".join([transcript.encode(transcript.header("s", "/w", NOW)), *broken]))
    assert loaded.skipped == 5
    assert [entry.parent for entry in loaded.entries] == [None, "m-a"]
    assert words(list(loaded.entries)) == ["a", "c"]


def test_a_line_that_stands_twice_counts_once() -> None:
    entries = chain("a", "b")
    loaded = transcript.load(file([*entries, entries[0]]))
    assert (len(loaded.entries), loaded.skipped) == (2, 1)


@pytest.mark.parametrize("head", [b"", b"{torn", b"[]", b'{"type":"message","id":"x"}'])
def test_a_lost_header_loses_no_message(head: bytes) -> None:
    loaded = transcript.load(file(chain("a"), head))
    assert loaded.header == {}
    assert words(list(loaded.entries)) == ["a"]


def test_nothing_is_read_from_nothing() -> None:
    assert transcript.load(b"") == transcript.Loaded({}, (), 0)


def note(kind: str, parent: str | None, **body: Any) -> Entry:
    return transcript.entry(kind, body, id_=f"n-{kind}", parent=parent, now_ms=NOW)


def test_a_summary_stands_for_what_was_compacted_away() -> None:
    entries = chain("a", "b", "c")
    entries.append(note("compaction", "m-c", summary="so far", firstKeptEntryId="m-c", tokensBefore=9))
    entries.append(transcript.message_entry(said("d"), id_="m-d", parent="n-compaction", now_ms=NOW))
    assert words(entries) == ["so far", "c", "d"]
    assert transcript.visible(entries)[0].timestamp == NOW


def test_a_summary_that_keeps_nothing() -> None:
    entries = chain("a", "b")
    entries.append(note("compaction", "m-b", summary="so far", firstKeptEntryId="gone"))
    assert words(entries) == ["so far"]


def results(*sizes: int) -> list[Entry]:
    entries: list[Entry] = []
    for at, size in enumerate(sizes):
        message = ToolResult(f"c{at}", "exec", (Text("r" * size), Image("image/png", "AA")), NOW)
        entries.append(transcript.message_entry(message, id_=f"r{at}", parent=transcript.tip(entries), now_ms=NOW))
    return entries


@pytest.mark.req("SESS-05")
def test_results_are_clipped_by_a_line_and_the_old_lines_stay_as_they_are() -> None:
    entries = results(5_000, 5_000, 5_000)
    before = [entry.raw for entry in entries]
    body = {"customType": "garra:clipped", "data": {"clipped": [["r0", 200], ["gone", 10], ["r1", 1_000], "odd"]}}
    entries.append(note("custom", "r2", **body))
    shown = transcript.shown(entries)
    lengths = [len(message.text) for _, message in shown.rows]
    assert 200 < lengths[0] < 400
    assert 1_000 < lengths[1] < 1_200
    assert lengths[2] == 5_000
    assert shown.rows[0][1].text.endswith("[1 pictures left out here]")
    assert shown.since == NOW
    assert not shown.summed
    assert [entry.raw for entry in entries[:3]] == before


def test_a_clip_that_cannot_be_read_clips_nothing() -> None:
    entries = [*results(5_000), note("custom", "r0", customType="garra:clipped")]
    assert len(transcript.visible(entries)[0].content) == 2
    other = note("custom", "r0", customType="somebody's", data="garra:clipped")
    assert not transcript.shrinks(other)
    assert not transcript.shrinks(note("custom", "r0", customType="other"))


def test_short_results_and_words_are_not_clipped() -> None:
    entries = [*chain("a"), note("custom", "m-a", customType="garra:clipped", data={"clipped": [["m-a", 0]]})]
    assert words(entries) == ["a"]
    plain = ToolResult("c", "exec", (Text("r" * 900),), NOW)
    whole = [transcript.message_entry(plain, id_="r", parent=None, now_ms=NOW)]
    whole.append(note("custom", "r", customType="garra:clipped", data={"clipped": [["r", 200]]}))
    assert "pictures" not in transcript.visible(whole)[0].text


def test_a_summary_may_keep_more_than_the_end() -> None:
    entries = chain("a", "b", "c", "d")
    body = {"summary": "so far", "firstKeptEntryId": "m-d", "alsoKeptEntryIds": ["m-b"], "clipped": [["m-d", 10]]}
    entries.append(note("compaction", "m-d", **body))
    assert words(entries) == ["so far", "b", "d"]
    assert transcript.shown(entries).summed


def test_behind_a_reset_only_what_it_keeps_is_told() -> None:
    entries = chain("a", "b", "c")
    entries.append(note("reset", "m-c", firstKeptEntryId="m-c"))
    assert words(entries) == ["c"]
    assert transcript.shrinks(entries[-1])


def test_a_summary_has_the_marks_of_all_it_sums_up() -> None:
    page, mail = Mark("web", "https://example.org/"), Mark("mail", "ann@example.org")
    entries = chain("a")
    marked = replace(said("b"), meta=taint.stored([page]))
    entries.append(transcript.message_entry(marked, id_="m-b", parent="m-a", now_ms=NOW))
    entries.append(transcript.message_entry(said("c"), id_="m-c", parent="m-b", now_ms=NOW))
    entries.append(note("compaction", "m-c", summary="so far", firstKeptEntryId="m-c", **taint.stored([mail])))
    shown = transcript.visible(entries)
    assert [message.text for message in shown] == ["so far", "c"]
    assert taint.of(shown[0].meta) == (mail, page)
    assert shown[1].meta == {}


def test_a_stored_note_has_its_marks() -> None:
    page = Mark("web", "https://example.org/")
    summary = note("branch_summary", None, summary="it was tried", **taint.stored([page]))
    told = transcript.told(summary)
    assert told is not None
    assert taint.of(told.meta) == (page,)


def test_what_is_told_to_a_model_besides_messages() -> None:
    entries = [
        note("model_change", None, provider="p", modelId="m"),
        note("custom_message", "n-model_change", content="by the way"),
        note("branch_summary", "n-custom_message", summary="over there"),
        note("label", "n-branch_summary", label="x"),
    ]
    assert words(entries) == ["by the way", "over there"]
    assert words([note("custom_message", None, content=[{"type": "text"}])]) == []
    odd = Entry("x", None, "custom_message", b'{"content":"hi","timestamp":"never"}')
    assert transcript.visible([odd]) == (User((Text("hi"),), 0),)


@pytest.mark.parametrize("body", [b"{}", b'{"message":{"role":"alien"}}', b'{"message":5}'])
def test_a_message_that_cannot_be_read_is_left_out(body: bytes) -> None:
    assert Entry("x", None, "message", body).message is None
    assert transcript.visible([Entry("x", None, "message", body)]) == ()


def test_other_entries_are_no_messages() -> None:
    assert Entry("x", None, "custom", b"{}").message is None


def test_times_are_text_and_back() -> None:
    assert transcript.unstamp(transcript.stamp(NOW)) == NOW
    assert transcript.stamp(0) == "1970-01-01T00:00:00.000Z"


def test_calls_without_a_result_are_told() -> None:
    one, two = ToolCall("1", "exec", {}), ToolCall("2", "read", {})
    asked = Assistant((one, two), NOW)
    result = ToolResult("1", "exec", (Text("done"),), NOW)
    assert transcript.unanswered([said("a"), asked]) == (one, two)
    assert transcript.unanswered([asked, result, said("still there?")]) == (two,)
    assert transcript.unanswered([said("a")]) == ()
    assert transcript.unanswered([asked, Assistant((Text("ok"),), NOW)]) == ()


steps = st.lists(st.one_of(st.text(max_size=3), st.none(), st.integers(0, 20)), max_size=30)


@pytest.mark.req("SESS-05")
@given(steps)
def test_any_order_of_words_and_returns_reads_back_the_same(order: list[str | int | None]) -> None:
    """The branch that was followed while writing is the branch that is read."""
    entries: list[Entry] = []
    leaf: str | None = None
    parents: dict[str, str | None] = {}
    spoken: dict[str, Message] = {}
    for number, step in enumerate(order):
        if isinstance(step, str):
            id_ = f"m{number}"
            parents[id_], spoken[id_] = leaf, said(step)
            entries.append(transcript.message_entry(said(step), id_=id_, parent=leaf, now_ms=NOW))
            leaf = id_
        else:
            leaf = None if step is None or not spoken else sorted(spoken)[step % len(spoken)]
            entries.append(transcript.leaf_entry(leaf, id_=f"l{number}", now_ms=NOW))
    expected: list[Message] = []
    while leaf is not None:
        expected.insert(0, spoken[leaf])
        leaf = parents[leaf]
    loaded = transcript.load(file(entries)).entries
    index = {entry.id: entry for entry in loaded}
    assert list(transcript.visible(transcript.branch(index, transcript.tip(loaded)))) == expected
