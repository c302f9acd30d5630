"""Pages of a transcript."""

from __future__ import annotations

from typing import Any

import msgspec

from garra.gateway.history import CAP, Cursor, activity, cursor_from, cursor_text, page, stamp


class Line:
    def __init__(self, body: dict[str, Any]) -> None:
        self.body = body


def entry(number: int, text: str, role: str = "user") -> Line:
    content: Any = text if role == "user" else [{"type": "text", "text": text}]
    message = {"role": role, "content": content, "timestamp": number, "idempotencyKey": f"r{number}:user"}
    at = "2026-11-30T13:17:16.255Z"
    return Line({"type": "message", "id": f"e{number}", "timestamp": at, "message": message})


def test_a_page_is_the_end_of_the_session_oldest_first() -> None:
    entries = [entry(number, f"m{number}") for number in range(10)]
    got = page(entries, limit=3)
    assert [row["content"] for row in got.rows] == ["m7", "m8", "m9"]
    assert [row["__openclaw"]["seq"] for row in got.rows] == [8, 9, 10]
    assert got.rows[0]["__openclaw"]["idempotencyKey"] == "r7:user"
    assert got.rows[0]["__openclaw"]["recordTimestampMs"] == 1796044636255
    assert got.more
    older = page(entries, limit=8, offset=3)
    assert [row["content"] for row in older.rows] == [f"m{number}" for number in range(7)]
    assert not older.more


def test_a_page_fits_what_the_client_can_take() -> None:
    entries = [entry(number, "x" * 1000) for number in range(50)]
    got = page(entries, limit=50, max_bytes=10_000)
    assert 5 <= len(got.rows) < 10
    assert len(msgspec.json.encode(got.rows)) <= 10_000
    assert got.more


def test_no_answer_is_larger_than_the_cap() -> None:
    entries = [entry(number, "x" * 150_000) for number in range(100)]
    assert len(msgspec.json.encode(page(entries, limit=100).rows)) <= CAP


def test_a_long_text_is_cut_and_says_so() -> None:
    row = page([entry(1, "x" * 300_000, "assistant")], limit=1).rows[0]
    text = row["content"][0]["text"]
    assert len(text) < 210_000
    assert "100000 more characters" in text
    assert row["__openclaw"]["truncated"] is True


def test_a_message_that_fits_no_page_has_a_placeholder() -> None:
    rows = page([entry(1, "short"), entry(2, "x" * 5000)], limit=5, max_bytes=2000).rows
    assert [row["role"] for row in rows] == ["user", "user"]
    assert "too large" in rows[-1]["content"][0]["text"]
    assert rows[-1]["__openclaw"]["id"] == "e2"


def test_a_picture_too_large_is_told_in_words() -> None:
    big = entry(1, "")
    big.body["message"]["content"] = [{"type": "image", "mimeType": "image/png", "data": "A" * 300_000}, "odd"]
    row = page([big], limit=1).rows[0]
    assert row["content"][0]["text"].startswith("[picture not shown")


def test_cursors_go_there_and_back() -> None:
    cursor = Cursor("s1", 7, "e7")
    assert cursor_from(cursor_text(cursor)) == cursor
    assert cursor_from("nonsense") is None
    assert cursor_from("!!!") is None


def test_odd_times_are_no_reason_to_fail() -> None:
    assert stamp({"timestamp": "yesterday"}) is None
    assert stamp({"timestamp": 5}) == 5


def test_activity_lists_calls_with_how_they_ended() -> None:
    call = {"type": "toolCall", "id": "c1", "name": "exec", "arguments": {}}
    rows: list[dict[str, Any]] = [
        {"role": "assistant", "content": [call], "__openclaw": {"id": "a"}},
        {"role": "toolResult", "toolCallId": "c1", "toolName": "exec", "isError": True, "__openclaw": {"id": "b"}},
        {"role": "assistant", "content": [{**call, "id": "c2"}], "__openclaw": {"id": "c"}},
        {"role": "user", "content": "hi", "__openclaw": {"id": "d"}},
    ]
    items = [(shown["messageId"], shown["items"][0]["status"]) for shown in activity(rows)]
    assert items == [("a", "failed"), ("b", "failed"), ("c", "running")]
