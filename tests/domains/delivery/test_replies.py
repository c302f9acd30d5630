"""Answers as drafts, and what the configuration says of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from garra.core.chunking import Blocks
from garra.domains.delivery.replies import EMPTY, Extra, Replies, Settings, pause, settings
from garra.sdk.channel import Button, File, Limits, SendFailed
from tests.domains.delivery.chat import RUN, TELEGRAM, scene
from tests.domains.delivery.parts import address
from tests.domains.delivery.telegram_html import seen, units

REPLIES = Replies()
KEYS = ((Button("yes", "y"), Button("no", "n")),)
SMALL = Limits(100, "utf16", ("telegram-html", "plain"), file_out=1 << 20)
FIRST = Settings(anchor="first")


def drafts(reply: str, set_to: Settings = FIRST, limits: Limits = SMALL, **extra: Any) -> list[Any]:
    more = Extra(**extra)
    return REPLIES.drafts(RUN, address(), reply, limits=limits, settings=set_to, anchor="m1", extra=more)


@pytest.mark.req("CH-16")
def test_the_first_points_back_and_the_last_has_the_buttons() -> None:
    made = drafts("word " * 60, buttons=KEYS)
    assert [draft.reply_to for draft in made] == ["m1", "", ""]
    assert [draft.buttons for draft in made] == [(), (), KEYS]
    assert [draft.key for draft in made] == [f"out:{RUN}:{number}" for number in range(3)]
    assert [draft.position for draft in made] == [0, 1, 2]
    assert made == drafts("word " * 60, buttons=KEYS)
    assert [draft.reply_to for draft in drafts("word " * 30, Settings(anchor="all"))] == ["m1", "m1"]
    assert [draft.reply_to for draft in drafts("word", Settings())] == [""]
    assert [draft.reply_to for draft in drafts("[[reply_to:9]]word", Settings())] == ["9"]
    assert [draft.reply_to for draft in drafts("[[reply_to_current]]word", Settings())] == ["m1"]


@pytest.mark.req("MSG-13")
@pytest.mark.parametrize("reply", ["NO_REPLY", "", "\u200b", '<tool_call>{"name": "x"}</tool_call>', "<think>hm"])
def test_where_nothing_may_leave_one_line_says_so(reply: str) -> None:
    assert [draft.text for draft in drafts(reply)] == [EMPTY]


def test_what_went_before_is_not_said_again() -> None:
    assert drafts("", number=2) == []
    assert [draft.key for draft in drafts("end", number=2)] == [f"out:{RUN}:2"]
    assert [draft.edits for draft in drafts("word " * 30, window="55")] == ["55", ""]


def test_files_come_behind_the_words() -> None:
    file = File("image", "a.png", "a.png", "image/png", 10)
    made = drafts("look", files=(file,), buttons=KEYS, window="5")
    assert [(draft.text, draft.files, draft.buttons, draft.edits) for draft in made] == [
        ("look", (), KEYS, "5"),
        ("", (file,), (), ""),
    ]
    alone = drafts("", files=(file,), buttons=KEYS, window="5")
    assert [(draft.text, draft.files, draft.buttons, draft.edits) for draft in alone] == [("", (file,), KEYS, "")]


@pytest.mark.req("ONE-14")
def test_a_file_over_the_limit_becomes_a_link_or_a_line() -> None:
    big = File("video", "v.mp4", "v.mp4", "video/mp4", 3 << 20)
    assert drafts("", files=(big,))[0].text == "v.mp4 (3.0 MB) is over the limit of 1.0 MB here, so it was not sent."
    linked = Replies(link=lambda file: f"https://sink.example/{file.name}")
    made = linked.drafts(RUN, address(), "Done.", limits=SMALL, settings=FIRST, extra=Extra(files=(big,)))
    assert [draft.text for draft in made] == [
        "Done.\n\nv.mp4 (3.0 MB) is over the limit of 1.0 MB here: https://sink.example/v.mp4"
    ]
    assert made[0].files == ()


@pytest.mark.req("CH-15")
async def test_a_format_that_is_refused_gives_way_to_the_next_and_it_arrives_once(tmp_path: Path) -> None:
    async with scene(tmp_path) as place:
        place.chat.plan["send"] = [SendFailed("format", "can't parse entities")] * 2
        text = "**See** [docs](https://e.org)"
        await place.box.put(REPLIES.drafts(RUN, address(), text, limits=TELEGRAM, settings=FIRST))
        await place.passes(2)
        assert [words for _, words in place.chat.calls] == [
            '<b>See</b> <a href="https://e.org">docs</a>',
            "<b>See</b> docs (https://e.org)",
            "See docs (https://e.org)",
        ]
        assert [(message.format, message.text) for message in place.chat.sent] == [
            ("plain", "See docs (https://e.org)")
        ]
        assert (await place.rows(0))[0].state == "sent"


@pytest.mark.req("CH-14")
def test_all_forms_of_all_pieces_keep_to_the_limit() -> None:
    text = "\n\n".join(
        f"**{number}** [label {number}](https://e.org/{number}) `code` {'words ' * 9}" for number in range(90)
    )
    made = drafts(text, limits=TELEGRAM)
    assert len(made) > 1
    for draft in made:
        assert [form.format for form in draft.forms] == ["telegram-html", "telegram-html", "plain"]
        assert all(units(seen(form.text)) <= 4_000 for form in draft.forms[:2])
        assert units(draft.text) <= 4_000
    assert len(drafts(text, Settings(limit=500), TELEGRAM)) > len(made)


def test_a_prefix_stands_before_the_first_words() -> None:
    assert [draft.text for draft in drafts("hi", Settings(prefix="[bot] "))] == ["[bot] hi"]


def read(rules: dict[str, Any], kind: Any = "direct", messages: Any = None, limits: Limits = TELEGRAM) -> Settings:
    return settings(rules, limits, kind, messages or {})


def test_what_holds_where_nothing_is_said() -> None:
    direct, group = read({}), read({}, "group")
    assert (direct.progress.mode, direct.keep, direct.anchor, direct.ack, direct.blocks) == (
        "progress",
        False,
        "off",
        "",
        None,
    )
    assert (group.anchor, group.ack) == ("first", "👀")
    assert read({}, limits=Limits(100)).progress.mode == "off"
    leaving = Limits(100, edits_per_s=1.0, traces=True)
    assert read({}, limits=leaving).progress.mode == "off"
    assert read({"streaming": "progress"}, limits=leaving).progress.mode == "progress"


@pytest.mark.parametrize(
    ("told", "mode"),
    [
        ({"mode": "partial"}, "partial"),
        ({"mode": "block"}, "block"),
        ({"mode": "off"}, "off"),
        ({"mode": "loud"}, "off"),
        ({"mode": 7}, "off"),
        ("partial", "partial"),
        (True, "partial"),
        (False, "off"),
        (None, "progress"),
    ],
)
def test_the_mode(told: Any, mode: str) -> None:
    assert read({"streaming": told}).progress.mode == mode


def test_everything_can_be_told() -> None:
    progress = {"toolProgress": False, "commentary": False, "commandText": "raw", "maxLines": 3, "maxLineChars": 40}
    streaming = {
        "mode": "progress",
        "progress": {**progress, "label": "Busy"},
        "block": {"enabled": True, "coalesce": {"minChars": 500, "maxChars": 100}},
    }
    rules = {"streaming": streaming, "textChunkLimit": 900, "replyToMode": "batched", "ackReaction": "🔥"}
    made = read(rules, "direct", {"ackReactionScope": "direct", "statusReactions": {"enabled": True}})
    seen_progress = made.progress
    assert (seen_progress.tools, seen_progress.comments, seen_progress.commands) == (False, False, True)
    assert (seen_progress.lines, seen_progress.width, seen_progress.label) == (3, 40, "Busy")
    assert made.blocks == Blocks(500, 500)
    assert (made.limit, made.anchor, made.ack, made.moods, made.keep) == (900, "first", "🔥", True, True)


def test_what_is_misshapen_is_passed_over() -> None:
    rules = {"streaming": {"progress": {"label": False, "maxLines": True}}, "textChunkLimit": -1, "replyToMode": 5}
    made = read(rules, "group", {"ackReaction": 5})
    assert (made.progress.label, made.progress.lines, made.limit, made.anchor, made.ack) == ("", 8, 0, "off", "")
    assert read({"reactionLevel": "off"}, "group").ack == ""
    assert read({}, "channel").ack == ""
    assert read({"responsePrefix": "[me]"}).prefix == "[me] "
    assert read({"responsePrefix": "auto"}).prefix == ""
    assert not read({"typingMode": "never"}).typing


def test_how_paragraphs_are_cut_and_tables_written() -> None:
    made = read({"streaming": {"chunkMode": "newline"}, "markdown": {"tables": "bullets"}})
    assert (made.whole, made.tables) == (True, "bullets")
    assert read({"chunkMode": "newline"}).whole
    other = read({"streaming": {"chunkMode": "length"}, "markdown": {"tables": "loud"}})
    assert (other.whole, other.tables) == (False, "block")


@pytest.mark.parametrize(
    ("human", "pause_ms"),
    [
        ({}, (0, 0)),
        ({"mode": "off", "minMs": 5}, (0, 0)),
        ({"mode": "natural", "minMs": 5}, (800, 2_500)),
        ({"mode": "custom", "minMs": 0, "maxMs": 700}, (0, 700)),
        ({"mode": "custom", "minMs": 3_000}, (3_000, 3_000)),
        ({"mode": "custom"}, (800, 2_500)),
    ],
)
def test_the_pause_between_blocks(human: dict[str, Any], pause_ms: tuple[int, int]) -> None:
    assert pause(human) == pause_ms
