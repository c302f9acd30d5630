"""One run from its stored prompt to its end, new or resumed."""

from __future__ import annotations

from typing import Any

from garra.core import lanes
from garra.core.events import EntryStored, RunBody, RunEnded
from garra.core.ids import AgentId, RunId, SessionId, SessionKey
from garra.core.messages import Assistant, Message, Text, ToolCall, User
from garra.core.transcript import Entry, message_entry
from garra.io.clock import SystemClock
from garra.io.tasks import Tasks
from garra.runs import drive
from garra.runs.drive import Driver, Messages, Setup, said
from garra.runs.lane import Lane
from garra.runs.run import Run, Turn
from garra.sdk.model import EventStream, Model
from garra.sdk.written import Rest
from garra.testing.model import Says, ScriptedModel, calls, says
from garra.testing.tools import FakeTools

MODEL = Model("p", "m", "fake", "http://x")


class Book:
    """A transcript in memory."""

    def __init__(self, *messages: Message) -> None:
        self.kept = list(messages)

    def messages(self) -> Messages:
        return tuple(self.kept)

    async def append(self, message: Message) -> Entry:
        self.kept.append(message)
        return message_entry(message, id_=str(len(self.kept)), parent=None, now_ms=0)


class Nobody:
    """A lane's owner that is never asked."""

    def begin(self, lane: Lane, runs: Any, brief: str) -> None:
        raise AssertionError

    def drop(self, run: Run, reason: lanes.Reason) -> None:
        raise AssertionError


def a_run(text: str = "hello") -> Run:
    turn = Turn(RunId("r1"), SessionKey("agent:main:main"), AgentId("main"), text)
    return Run(turn, SessionId("s1"), 1)


async def driven(
    run: Run, book: Book, *script: Says, brief: str = "", rest: Rest | None = None
) -> tuple[RunEnded, list[RunBody], ScriptedModel]:
    model = ScriptedModel(list(script))
    tools = FakeTools({"look": "seen"})
    events: list[RunBody] = []
    async with Tasks() as spawn:

        def ask(_: Model, messages: Messages) -> EventStream:
            return model(messages)

        async def assemble(_: Run) -> Setup:
            return Setup(book, (MODEL,), ask, tools.tools, rest=rest)

        driver = Driver(SystemClock(), spawn, assemble, lambda _, body: events.append(body))
        lane = Lane(lanes.Settings(), Nobody(), SystemClock())
        return await driver.drive(run, lane, brief), events, model


def asked(model: ScriptedModel, at: int = 0) -> list[str]:
    return [f"{type(message).__name__}: {message.text}" for message in model.requests[at]]


async def test_a_new_run_says_its_prompt_once() -> None:
    run, book = a_run(), Book(User((Text("before"),), 0), Assistant((Text("yes"),), 0))
    await book.append(run.prompt)
    ended, events, model = await driven(run, book, says("done"))
    assert (ended.ending, ended.reply) == ("ok", "done")
    assert asked(model) == ["User: before", "Assistant: yes", "User: hello"]
    assert [message.text for message in book.kept] == ["before", "yes", "hello", "done"]
    assert sum(isinstance(body, EntryStored) for body in events) == 1


async def test_a_run_whose_prompt_was_stored_before_a_crash_goes_on() -> None:
    run = a_run()
    stored = User(run.prompt.content, run.prompt.timestamp, dict(run.prompt.meta))
    book = Book(stored)
    assert said(book.messages(), run.prompt)
    ended, _, model = await driven(run, book, says("done"))
    assert ended.reply == "done"
    assert asked(model) == ["User: hello"]


async def test_a_run_cut_by_a_crash_in_the_middle_is_resumed_behind_what_it_did() -> None:
    run = a_run()
    stored = User(run.prompt.content, run.prompt.timestamp, dict(run.prompt.meta))
    half = Assistant((ToolCall("c1", "look", {}),), 0, stop="toolUse")
    book = Book(stored, half)
    ended, _, model = await driven(run, book, says("done"))
    assert ended.reply == "done"
    assert asked(model) == ["User: hello", "Assistant: "]
    assert [type(message).__name__ for message in book.kept] == ["User", "Assistant", "Assistant"]


async def test_what_had_no_room_is_told_behind_the_prompt() -> None:
    run, book = a_run(), Book()
    await book.append(run.prompt)
    _, _, model = await driven(run, book, says("done"), brief="[left out: x]")
    assert asked(model) == ["User: hello", "User: [left out: x]"]


async def test_a_turn_of_a_long_conversation_lets_others_go_first_before_each_message_it_stores() -> None:
    run, book = a_run(), Book()
    await book.append(run.prompt)
    kept: list[int] = []

    async def rest() -> None:
        kept.append(len(book.kept))

    await driven(run, book, calls("look"), says("done"), rest=rest)
    assert kept == [1, 2, 3]
    assert len(book.kept) == 4


async def test_a_bare_silence_word_is_no_answer() -> None:
    run, book = a_run(), Book()
    await book.append(run.prompt)
    ended, _, _ = await driven(run, book, says("NO_REPLY"))
    assert ended.ending == "error"
    assert ended.reply.startswith("The model gave no answer")


async def test_tools_and_usage_are_traced() -> None:
    run, book = a_run(), Book()
    await book.append(run.prompt)
    await driven(run, book, calls("look"), says("done"))
    assert run.trace.tools == ["look"]
    assert len(run.trace.answers) == 2
    assert run.trace.attempts[0].result == "success"


def test_a_resumed_run_sees_what_it_was_handed_behind_its_own_words() -> None:
    own, handed = (User((Text(word),), 0, {"idempotencyKey": f"{word}:user"}) for word in ("own", "handed"))
    assert drive._split((own,), (own,)) == ((), (own,))
    assert drive._split((own, handed), (own,)) == ((own, handed), ())
