"""A history's bytes: written once, cut only where nothing that follows changes them, and in slices."""

from __future__ import annotations

import asyncio
import itertools

from garra.core.messages import Assistant, Image, Message, Text, ToolCall, User
from garra.sdk.written import PIECE, SHORT, SLICE, Messages, Pieces, Written, begins, closed, ends, longer, shared


def said(text: str) -> User:
    return User((Text(text),), 1)


def answered(text: str) -> Assistant:
    return Assistant((Text(text),), 1)


def talk(turns: int, words: str = "word " * 40) -> Messages:
    return tuple(itertools.chain.from_iterable((said(f"{n} {words}"), answered(words)) for n in range(turns)))


class Pen:
    """Writes each message as a line, and remembers how many it was given at a time, and what stood before."""

    def __init__(self) -> None:
        self.given: list[tuple[int, int]] = []

    def write(self, messages: Messages, before: int) -> bytes:
        self.given.append((len(messages), before))
        return b"".join(line(message) for message in messages)


def line(message: Message) -> bytes:
    return message.content[0].text.encode() + b"," if isinstance(message.content[0], Text) else b","


def everywhere(_: Messages, __: int) -> bool:
    return True


async def work_of_a_turn(turns: int) -> tuple[int, int, int]:
    """What one more turn costs behind `turns` others: messages written, bytes made, new pieces."""
    written, pen, history = Written[str](everywhere), Pen(), talk(turns)
    before = await written.pieces("s", history, pen.write)
    pen.given.clear()
    more = (*history, said("and now?"), answered("so it is"))
    after = await written.pieces("s", more, pen.write)
    assert b"".join(after) == b"".join(map(line, more))
    fresh = [piece for piece in after if not any(piece is old for old in before)]
    return sum(count for count, _ in pen.given), sum(map(len, fresh)), len(fresh)


async def test_a_turn_costs_what_is_new_in_it_however_long_the_history_is() -> None:
    for turns in (10, 500, 5_000):
        messages, made, pieces = await work_of_a_turn(turns)
        assert messages == 2
        assert made <= 2 * PIECE
        assert pieces == 1


async def test_a_long_history_is_written_in_slices_with_others_in_between() -> None:
    written, pen, history = Written[str](everywhere), Pen(), talk(1_000)
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    beside = asyncio.create_task(other())
    await written.pieces("s", history, pen.write)
    beside.cancel()
    assert [count for count, _ in pen.given] == [SLICE] * (2_000 // SLICE)
    assert [before for _, before in pen.given] == list(range(0, 2_000, SLICE))
    assert turns >= 2_000 // SLICE - 1


async def test_it_is_cut_only_where_it_may_be() -> None:
    written, pen, history = Written[str](lambda _, at: at % 7 == 0), Pen(), talk(200)
    pieces = await written.pieces("s", history, pen.write)
    assert all(before % 7 == 0 for _, before in pen.given)
    assert b"".join(pieces) == b"".join(map(line, history))


async def test_another_history_is_written_anew_and_without_a_key_nothing_is_kept() -> None:
    written, pen, history = Written[str](everywhere), Pen(), talk(3)
    await written.pieces(None, history, pen.write)
    assert len(written) == 0
    await written.pieces("s", history, pen.write)
    other = (said("another"), *history[1:])
    assert b"".join(await written.pieces("s", other, pen.write)) == b"".join(map(line, other))
    assert b"".join(await written.pieces("s", history[:2], pen.write)) == b"".join(map(line, history[:2]))
    assert await written.pieces("s", (), pen.write) == ()


def test_a_small_last_piece_grows_and_a_full_one_does_not() -> None:
    full, small = b"x" * PIECE, b"y"
    assert longer((full, small), b"z") == (full, b"yz")
    grown: Pieces = longer((full,), b"z")
    assert grown == (full, b"z")
    assert grown[0] is full
    assert longer((full,), b"") == (full,)


def test_the_end_of_a_list_is_closed() -> None:
    assert closed((b"[", b"1,", b"2,", b"")) == (b"[", b"1,", b"2]}")
    assert closed((b"[",)) == (b"[]}",)


def test_how_many_objects_are_shared() -> None:
    history = talk(4)
    assert shared((*history, said("more")), history) == 8
    assert shared(history[:3], history) == 3
    assert shared((*history[:5], said("else")), history) == 5
    assert shared(talk(4), history) == 0


async def test_between_slices_it_is_rested_as_the_caller_says_and_the_bytes_are_the_same() -> None:
    history, told = talk(1_000), list[int]()
    pen = Pen()

    async def rest() -> None:
        told.append(len(pen.given))

    pieces = await Written[str](everywhere).pieces("s", history, pen.write, rest)
    assert told == list(range(1, 2_000 // SLICE))  # after each slice but the last
    assert b"".join(pieces) == b"".join(map(line, history))


def test_a_slice_has_fewer_messages_where_they_are_long() -> None:
    long = said("x" * SHORT * SLICE)
    assert list(ends((long,) * 4, 0)) == [1, 2, 3, 4]
    assert list(ends((User((Image("image/png", "A" * SHORT * SLICE),), 1),) * 2, 0)) == [1, 2]
    assert list(ends((Assistant((ToolCall("c", "t", {}),), 1),) * (SLICE + 1), 0)) == [SLICE, SLICE + 1]
    assert list(ends((said("a"),) * 5, 2, 2)) == [4, 5]
    assert list(ends((), 0)) == list(ends((long,), 1)) == []


def test_a_history_begins_with_another_that_ends_in_the_same_object() -> None:
    history = talk(4)
    assert begins(history, ())
    assert begins(history, history[:5])
    assert not begins(history[:5], history)
    assert not begins(history, (said("else"), *history[1:5]))
    assert not begins(history, talk(4)[:5])  # read again from the disk
