"""What a chat sees of a run, in each mode; and the answer, once, whatever fails on the way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from garra.core.chunking import Blocks
from garra.core.errors import Unavailable
from garra.core.events import MessageEnded, MessageStarted, MessageUpdated, RunBody, RunEnded, TextDelta, ToolStarted
from garra.core.messages import Assistant, ToolCall
from garra.core.progress import Mode
from garra.core.progress import Settings as Progress
from garra.domains.delivery.draft import Draft, OutboxRow
from garra.domains.delivery.outbox import Outbox
from garra.domains.delivery.replies import Settings
from garra.sdk.channel import SendFailed
from tests.domains.delivery.chat import Scene, scene

WORDS = "Here is the answer, word by word, as it grows."
LONGER = WORDS + " And this is **more** of it."
BEGAN = MessageStarted(Assistant((), 0))
CALLS = MessageEnded(Assistant((ToolCall("c1", "read", {}),), 0))
READS = ToolStarted(ToolCall("c1", "read", {"path": "notes.md"}))


def says(text: str) -> RunBody:
    return MessageUpdated(TextDelta(0, text), text)


def mode(name: Mode, *, keep: bool = True) -> Settings:
    return Settings(Progress(name), anchor="first", keep=keep)


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Scene]:
    async with scene(tmp_path) as made:
        yield made


@pytest.mark.req("CH-12")
async def test_partial_is_one_message_that_grows_into_the_answer(place: Scene) -> None:
    preview = place.preview(mode("partial"))
    await place.happen(preview, BEGAN, says("x" * 29), after=3)
    assert place.chat.count("send") == 0
    await place.happen(preview, says(WORDS), after=1)
    await place.happen(preview, says(LONGER[:60]), says(LONGER[:65]), after=2)
    await place.answer(preview, LONGER, mode("partial"))
    assert place.chat.count("send") == 1
    assert place.chat.count("edit") == 2
    assert list(place.chat.shown.values()) == [LONGER.replace("**more**", "<b>more</b>")]
    assert place.chat.sent[0].reply_to == "m1"
    assert (await place.rows(0))[0].platform_id == "1"


@pytest.mark.req("CH-12")
async def test_off_is_the_answer_alone(place: Scene) -> None:
    preview = place.preview(mode("off"))
    await place.happen(preview, BEGAN, says(WORDS), READS, says(LONGER), after=5)
    await place.answer(preview, LONGER, mode("off"))
    assert (place.chat.count("send"), place.chat.count("edit"), len(place.chat.shown)) == (1, 0, 1)


@pytest.mark.req("CH-12")
async def test_block_grows_block_by_block(place: Scene) -> None:
    settings = Settings(Progress("block", blocks=Blocks(30, 200)))
    preview = place.preview(settings)
    await place.happen(preview, BEGAN, says(WORDS), after=2)
    assert place.chat.count("send") == 0
    await place.happen(preview, says(f"{WORDS}\n\nThe next"), after=2)
    await place.happen(preview, says(f"{WORDS}\n\nThe next paragraph"), after=2)
    assert list(place.chat.shown.values()) == [WORDS]
    await place.answer(preview, f"{WORDS}\n\nThe next paragraph.", settings)
    assert list(place.chat.shown.values()) == [f"{WORDS}\n\nThe next paragraph."]
    assert (place.chat.count("send"), place.chat.count("edit")) == (1, 1)


@pytest.mark.req("CH-12")
async def test_progress_is_one_window_that_shrinks_to_a_line(place: Scene) -> None:
    preview = place.preview(mode("progress"))
    await place.happen(preview, BEGAN, says("Let me look."), CALLS, READS, after=1)
    assert place.chat.count("send") == 0
    await place.happen(preview, after=1)
    assert place.chat.shown["1"] == "Working…\n💬 Let me look.\n📖 read: notes.md"
    assert place.chat.sent[0].silent
    await place.happen(preview, BEGAN, says(LONGER), after=1)
    await place.answer(preview, LONGER, mode("progress"))
    assert list(place.chat.shown.values()) == ["🛠️ 1 tool call · 3 s", LONGER.replace("**more**", "<b>more</b>")]
    assert place.chat.sent[1].reply_to == "m1"


async def test_a_quick_answer_comes_alone_and_a_window_may_go(place: Scene) -> None:
    preview = place.preview(mode("progress", keep=False))
    await place.happen(preview, BEGAN, says(LONGER), after=5)
    await place.happen(preview, READS, after=2)
    assert place.chat.count("send") == 1
    await place.answer(preview, "Done.", mode("progress", keep=False))
    assert list(place.chat.shown.values()) == ["Done."]


@pytest.mark.parametrize("name", ["partial", "progress"])
async def test_without_an_answer_the_window_goes(place: Scene, name: Mode) -> None:
    preview = place.preview(mode(name))
    await place.happen(preview, BEGAN, READS, says(WORDS), after=3)
    assert len(place.chat.shown) == 1
    assert (await preview.settle("")).window == ""
    preview.finish(answered=False)
    await place.passes(2)
    assert place.chat.shown == {}


async def test_where_nothing_can_be_taken_back_it_says_that_it_stopped(place: Scene) -> None:
    place.chat.plan["delete"] = [SendFailed("refused", "too old")]
    preview = place.preview(mode("partial"))
    await place.happen(preview, BEGAN, says(WORDS), after=3)
    await preview.settle("")
    preview.finish(answered=False)
    await place.passes(2)
    assert place.chat.shown == {"1": "Stopped."}


async def test_changes_keep_to_the_pace(place: Scene) -> None:
    preview = place.preview(mode("partial"))
    await place.happen(preview, BEGAN, says(WORDS), after=1)
    for number in range(40):
        await place.happen(preview, says(f"{WORDS} {number}"), after=0.25)
    assert 8 <= place.chat.count("edit") <= 11
    place.chat.plan["edit"] = [SendFailed("passing", "later", 5.0)]
    await place.happen(preview, says(f"{WORDS} more"), after=1.5)
    before = place.chat.count("edit")
    await place.happen(preview, says(f"{WORDS} and more"), after=3)
    assert place.chat.count("edit") == before
    await place.passes(3)
    assert place.chat.shown["1"] == f"{WORDS} and more"


async def test_a_form_that_is_refused_gives_way_to_the_next(place: Scene) -> None:
    preview = place.preview(mode("partial"))
    await place.happen(preview, BEGAN, says(WORDS), after=1)
    place.chat.plan["edit"] = [SendFailed("format", "can't parse entities")]
    await place.happen(preview, says(LONGER), after=2)
    assert place.chat.edits[-1].format == "plain"
    assert place.chat.shown["1"] == LONGER.replace("**", "")


@pytest.mark.parametrize("fault", [SendFailed("gone", "not found"), Unavailable("no network"), TimeoutError()])
async def test_a_window_that_fails_never_holds_up_the_answer(place: Scene, fault: Exception) -> None:
    preview = place.preview(mode("partial"))
    await place.happen(preview, BEGAN, says(WORDS), after=1)
    place.chat.plan["edit"] = [fault] * 3
    for number in range(6):
        await place.happen(preview, says(f"{WORDS} {number}"), after=1.5)
    place.chat.plan["edit"] = [SendFailed("gone", "not found")]
    await place.answer(preview, LONGER, mode("partial"))
    assert list(place.chat.shown.values())[-1] == LONGER.replace("**more**", "<b>more</b>")
    assert (await place.rows(0))[0].state == "sent"


async def test_a_window_that_cannot_be_opened_is_given_up(place: Scene) -> None:
    place.chat.plan["send"] = [SendFailed("unsure", "cut")]
    preview = place.preview(mode("partial"))
    await place.happen(preview, BEGAN, says(WORDS), after=3)
    await place.happen(preview, says(LONGER), after=3)
    await place.answer(preview, LONGER, mode("partial"))
    assert place.chat.count("send") == 2
    assert len(place.chat.shown) == 1


async def test_a_window_that_waits_for_the_link_is_taken_back(place: Scene) -> None:
    place.courier.down()
    preview = place.preview(mode("partial"))
    await place.happen(preview, BEGAN, says(WORDS), after=3)
    await place.answer(preview, LONGER, mode("partial"))
    place.courier.up()
    await place.passes(1)
    assert [message.text for message in place.chat.sent] == [LONGER.replace("**more**", "<b>more</b>")]


async def test_a_window_that_comes_after_the_end_is_taken_away(place: Scene) -> None:
    place.stage = replace(place.stage, settle_s=0.05)
    place.chat.gates["word by word"] = asyncio.Event()
    preview = place.preview(mode("partial"))
    await place.happen(preview, BEGAN, says(WORDS), after=1)
    await place.answer(preview, "Done.", mode("partial"))
    place.chat.gates["word by word"].set()
    await place.passes(2)
    assert list(place.chat.shown.values()) == ["Done."]


async def test_a_run_that_is_taken_up_again_takes_up_its_window(place: Scene) -> None:
    first = place.preview(mode("partial"))
    await place.happen(first, BEGAN, says(WORDS), after=1)
    again = place.preview(mode("partial"))
    await place.answer(again, LONGER, mode("partial"))
    assert place.chat.count("send") == 1
    assert list(place.chat.shown.values()) == [LONGER.replace("**more**", "<b>more</b>")]


@pytest.mark.req("CH-13")
async def test_blocks_go_out_in_order_and_the_rest_comes_in_the_end(place: Scene) -> None:
    settings = replace(mode("off"), blocks=Blocks(10, 80))
    preview = place.preview(settings)
    one, two = "The first block.\n\n", "The second block.\n\n"
    await place.happen(preview, BEGAN, says(one), after=1)
    await place.happen(preview, says(one + two), after=1)
    assert list(place.chat.shown.values()) == ["The first block.", "The second block."]
    settled = await place.answer(preview, f"{one}{two}The end.", settings)
    assert settled.number == 2
    assert list(place.chat.shown.values()) == ["The first block.", "The second block.", "The end."]
    assert [message.reply_to for message in place.chat.sent] == ["m1", "", "m1"]


@pytest.mark.req("CH-13")
async def test_an_answer_that_went_out_in_blocks_is_not_sent_again(place: Scene) -> None:
    settings = replace(mode("off"), blocks=Blocks(10, 80))
    preview = place.preview(settings)
    await place.happen(preview, BEGAN, says("The only block.\n\n"), after=1)
    settled = await place.answer(preview, "The only block.", settings)
    assert (settled.text, place.chat.count("send")) == ("", 1)


async def test_between_two_blocks_there_is_a_pause_and_the_end_of_the_answer_waits_for_none(place: Scene) -> None:
    settings = replace(mode("off"), blocks=Blocks(10, 80), pause_ms=(2_000, 2_000))
    preview = place.preview(settings)
    one, two, three = "The first block.\n\n", "The second block.\n\n", "The third block.\n\n"
    await place.happen(preview, BEGAN, says(one))
    assert list(place.chat.shown.values()) == ["The first block."]
    await place.happen(preview, says(one + two), after=1)
    assert list(place.chat.shown.values()) == ["The first block."]
    await place.happen(preview, after=1.5)
    assert list(place.chat.shown.values()) == ["The first block.", "The second block."]
    await place.happen(preview, says(one + two + three), after=1)
    await place.answer(preview, f"{one}{two}{three}The end.", settings)
    await place.happen(preview, after=3)
    said = ["The first block.", "The second block.", "The third block.\n\nThe end."]
    assert list(place.chat.shown.values()) == said


@pytest.mark.req("CH-13")
async def test_a_late_block_ends_the_blocks_and_order_is_kept(place: Scene) -> None:
    settings = replace(mode("off"), blocks=Blocks(10, 80), block_s=0.1)
    place.chat.gates["second"] = asyncio.Event()
    preview = place.preview(settings)
    texts = [f"The {name} block.\n\n" for name in ("first", "second", "third", "fourth")]
    for count in range(1, 5):
        await place.happen(preview, *([BEGAN] if count == 1 else []), says("".join(texts[:count])), after=1)
        await asyncio.sleep(0.05)
    await asyncio.sleep(0.1)
    assert place.chat.count("send") == 2
    await place.happen(preview, RunEnded("ok", "".join(texts), None, None, 0, 1))
    place.chat.gates["second"].set()
    await place.answer(preview, "".join(texts), settings)
    assert [message.text for message in place.chat.sent] == [
        "The first block.",
        "The second block.",
        "The third block.\n\nThe fourth block.",
    ]


async def test_a_block_that_cannot_be_written_comes_in_the_end(place: Scene) -> None:
    class Full(Outbox):
        async def put(self, messages: Sequence[Draft], **_: Any) -> list[OutboxRow]:
            raise Unavailable("the disk is full")

    settings = replace(mode("off"), blocks=Blocks(10, 80))
    whole = place.stage
    place.stage = replace(whole, outbox=Full(place.db, place.time))
    preview = place.preview(settings)
    await place.happen(preview, BEGAN, says("The first block.\n\n"), after=1)
    await place.answer(preview, "The first block.\n\nThe end.", settings)
    assert [message.text for message in place.chat.sent] == ["The first block.\n\nThe end."]


async def test_words_that_turn_out_to_be_thoughts_end_the_blocks(place: Scene) -> None:
    settings = replace(mode("off"), blocks=Blocks(10, 80))
    preview = place.preview(settings)
    await place.happen(
        preview,
        BEGAN,
        says("I should say"),
        says("Hello, dear friend.\n\n"),
        says("Hello, dear friend.\n\nMore"),
        after=1,
    )
    await place.answer(preview, "Hello, dear friend.\n\nMore.", settings)
    assert [message.text for message in place.chat.sent] == ["Hello, dear friend.\n\nMore."]


async def test_typing_and_moods_while_it_runs(place: Scene) -> None:
    settings = Settings(Progress("off"), ack="👀", moods=True)
    preview = place.preview(settings)
    await place.passes(9)
    assert place.chat.count("type") == 3
    await place.happen(preview, BEGAN, READS, after=2)
    place.chat.plan["type"] = [SendFailed("refused", "no")] * 3
    await place.passes(20)
    typed = place.chat.count("type")
    await place.happen(preview, RunEnded("ok", "x", None, None, 0, 1))
    await place.answer(preview, "x", settings)
    await place.passes(9)
    assert place.chat.count("type") == typed
    assert [text for name, text in place.chat.calls if name == "react"] == ["👀", "✍", "👍"]


async def test_signs_that_fail_are_given_up(place: Scene) -> None:
    place.chat.plan["react"] = [SendFailed("refused", "no")] * 3
    preview = place.preview(Settings(ack="👀", moods=True, typing=False))
    for _ in range(5):
        await place.happen(preview, BEGAN, after=2)
        await place.happen(preview, READS, after=2)
    assert place.chat.count("react") == 3


async def test_lines_are_cleaned_of_secrets(tmp_path: Path) -> None:
    async with scene(tmp_path, clean=lambda line: line.replace("notes", "***")) as place:
        preview = place.preview(mode("progress"))
        await place.happen(preview, BEGAN, READS, after=2)
        assert place.chat.shown["1"].endswith("read: ***.md")


async def test_other_runs_are_passed_over(place: Scene) -> None:
    preview = place.preview(mode("partial"), run_id="r2")
    await place.happen(preview, BEGAN, says(WORDS), after=2)
    assert place.chat.count("send") == 0
