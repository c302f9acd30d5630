"""A run knows what its model was sent, and reading it on costs what is new."""

from __future__ import annotations

from typing import Any

from garra.core import taint
from garra.core.ids import AgentId, RunId, SessionId, SessionKey
from garra.core.messages import Assistant, Message, Text, ToolCall, ToolResult, User
from garra.core.taint import CLEAN, Mark
from garra.core.transcript import Entry
from garra.runs import marks
from garra.runs.marks import Reading, Readings
from garra.runs.run import Run, Turn

PAGE, MAIL = Mark("web", "https://example.org/"), Mark("mail", "ann@example.org")


class Counted(dict[str, Any]):
    """A message's meta that tells how often it was looked at."""

    looked = 0

    def __contains__(self, key: object) -> bool:
        Counted.looked += 1
        return super().__contains__(key)


def said(text: str, *found: Mark, **meta: Any) -> Message:
    return User((Text(text),), 1, Counted({**meta, **taint.stored(found)}))


class Tape:
    """A transcript in memory."""

    def __init__(self, *messages: Message) -> None:
        self.said = messages

    def messages(self) -> tuple[Message, ...]:
        return self.said

    async def append(self, message: Message) -> Entry:
        raise AssertionError(message)


def run(run_id: str = "r1") -> Run:
    turn = Turn(RunId(run_id), SessionKey("agent:main:main"), AgentId("main"), "go")
    return Run(turn, SessionId("s"), 1)


def test_only_what_is_new_is_read() -> None:
    reading, history = Reading(), tuple(said(str(n)) for n in range(500))
    assert reading.on(history) == CLEAN
    Counted.looked = 0
    longer = (*history, said("page", PAGE))
    assert reading.on(longer).named == (PAGE,)
    assert reading.on(longer).count == 1
    assert Counted.looked == 2


def test_a_history_that_was_changed_is_read_anew() -> None:
    reading = Reading()
    first, second = said("a", PAGE), said("b", MAIL)
    assert reading.on((first, second)).named == (PAGE, MAIL)
    assert reading.on((first,)).named == (PAGE,)
    assert reading.on((second,)).named == (MAIL,)
    assert reading.on(()) == CLEAN


def test_a_mark_holds_as_long_as_its_text_is_there() -> None:
    tape = Tape(said("old", PAGE), said("go", idempotencyKey="r1:user"))
    kept = Readings()
    assert kept.of(run(), tape, "on").now().named == (PAGE,)
    assert kept.of(run(), tape, "turn").now() == CLEAN
    assert kept.of(run(), tape, "off").now() == CLEAN
    view = kept.of(run(), tape, "turn")
    tape.said = (*tape.said, said("mail", MAIL))
    assert view.now().named == (MAIL,)
    assert kept.of(run(), tape, "on").now().named == (PAGE, MAIL)


def test_an_address_that_the_model_made_up_was_not_seen() -> None:
    made = Assistant(
        (Text("https://evil.example/?all=secrets"), ToolCall("c", "search", {"q": "https://e.example/1"})), 1
    )
    echoed = (said("found https://e.example/1", PAGE), ToolResult("c", "exec", (Text("https://e.example/2"),), 1))
    tape = Tape(said("see https://a.example/b. And evil.example/?all=", PAGE), made, *echoed)
    view = Readings().of(run(), tape, "on")
    seen = ["https://a.example/b", "https://a.example/b/", "https://a.example/b#top", "https://evil.example/?all="]
    unseen = [
        "https://evil.example/?all=secrets",
        "https://a.example/",
        "https://a.example/bc",
        "https://a.example",
        "",
    ]
    unseen += ["https://e.example/1", "https://e.example/2"]
    assert [view.seen(address) for address in seen] == [True] * len(seen)
    assert [view.seen(address) for address in unseen] == [False] * len(unseen)
    tape.said = (*tape.said, said("yes, https://e.example/1"))
    assert view.seen("https://e.example/1")


def test_a_run_whose_words_are_not_found_has_read_all() -> None:
    tape = Tape(said("old", PAGE))
    assert Readings().of(run("other"), tape, "turn").now().named == (PAGE,)


def test_a_turns_own_marks_are_stored_with_its_words() -> None:
    turn = Turn(RunId("r"), SessionKey("agent:main:main"), AgentId("main"), "go", marks=(MAIL,))
    assert taint.of(Run(turn, SessionId("s"), 1).prompt.meta) == (MAIL,)


def test_a_row_tells_what_is_marked() -> None:
    assert marks.row(CLEAN) is None
    found = taint.add(CLEAN, [PAGE])
    assert marks.row(found) == {"marks": [{"source": "web", "where": PAGE.where}], "more": 0, "texts": 1}


def test_an_answer_is_no_text_from_outside() -> None:
    assert Reading().on((Assistant((Text("so"),), 1),)) == CLEAN
