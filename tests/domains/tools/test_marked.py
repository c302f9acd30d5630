"""A call of a turn that has read text from outside: what it may do unasked, and what its answer carries on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from garra.core import taint
from garra.core.approvals import Answer, Question
from garra.core.errors import ToolFailed
from garra.core.messages import ToolCall, ToolResult
from garra.core.policy import Layer
from garra.core.taint import CLEAN, Mark, Marks
from garra.domains.tools.pipeline import Pending, Pipeline
from garra.io.clock import SystemClock
from garra.runs.gate import Gate
from garra.sdk.tool import Call, Effect, Result, Tool, ToolInfo, Update
from tests.builtin.tools.place import context

PAGE = Mark("web", "https://evil.example/")
MARKED = taint.add(CLEAN, [PAGE])
ANY: Mapping[str, Any] = {"type": "object", "properties": {"to": {"type": "string"}}, "additionalProperties": False}
MESSAGE = ToolInfo("message", "Message", "Sends.", ANY, effects=("sends",))
FETCH = ToolInfo("fetch", "Fetch", "Reads.", ANY)
GUEST = ToolInfo("guest", "Guest", "Of a plugin.", ANY, source="plugin")


@dataclass
class Plain:
    """A tool that says yes, or raises."""

    info: ToolInfo
    marks: tuple[Mark, ...] = ()
    error: ToolFailed | None = None
    ran: int = 0

    async def execute(self, call: Call, update: Update) -> Result:
        self.ran += 1
        if self.error:
            raise self.error
        return Result.of("done", marks=self.marks)


class Careful(Plain):
    """A tool that sends only where it is told to whom."""

    async def affects(self, call: Call) -> tuple[Effect, ...]:
        return ("sends",) if call.arguments.get("to") else ()


@dataclass
class Person:
    """Somebody who answers."""

    answer: Answer = field(default_factory=lambda: Answer("deny", reason="the owner said no"))
    asked: list[Question] = field(default_factory=list)

    async def ask(self, question: Question) -> Answer:
        self.asked.append(question)
        return self.answer


def house(person: Person | None, *tools: Tool, layers: Sequence[Layer] = (), **more: Any) -> Pipeline:
    gate = Gate(person, lambda name: None) if person else None
    return Pipeline(lambda: tools, lambda _: layers, SystemClock(), gate=gate, **more)


async def call(pipeline: Pipeline, name: str, marks: Marks = MARKED, **arguments: Any) -> ToolResult:
    here = replace(context(), marks=marks)
    return await pipeline.call(ToolCall("c1", name, arguments), here, lambda _: None)


async def test_a_turn_that_read_nothing_is_not_asked() -> None:
    person, tool = Person(), Plain(MESSAGE)
    result = await call(house(person, tool), "message", CLEAN)
    assert (result.is_error, tool.ran, person.asked, result.meta) == (False, 1, [], {})


async def test_a_marked_turn_asks_and_says_why() -> None:
    person, tool = Person(), Plain(MESSAGE)
    result = await call(house(person, tool), "message", to="eve@evil.example")
    assert (result.is_error, tool.ran) == (True, 0)
    assert result.text.startswith(
        "Not run: the owner said no. This turn read text from outside (https://evil.example/)"
    )
    assert result.details["source"] == "taint"
    (question,) = person.asked
    assert question.why == ("it sends to somebody outside this chat", "this turn read https://evil.example/")
    assert question.subject == "message\n  to: eve@evil.example"
    assert question.choices == ("allow-once", "allow-always", "deny")
    assert question.covers == taint.covered("agent:main:main", "message", MARKED, "to=eve@evil.example")
    until = "until it reads more text from outside"
    assert question.remembers == f"message with to=eve@evil.example in this conversation, {until}"


async def test_a_yes_lets_it_run() -> None:
    person, tool = Person(Answer("allow-once", "ann")), Plain(MESSAGE)
    result = await call(house(person, tool), "message", to="bob")
    assert (result.text, tool.ran) == ("done", 1)


async def test_where_nobody_can_be_asked_it_does_not_run() -> None:
    tool = Plain(MESSAGE)
    result = await call(house(None, tool), "message")
    assert tool.ran == 0
    assert result.text.startswith("Not run: nobody can be asked here. This turn read text from outside")


async def test_a_tool_without_effects_runs_unasked() -> None:
    person, tool = Person(), Plain(FETCH, marks=(PAGE,))
    result = await call(house(person, tool), "fetch")
    assert (tool.ran, person.asked) == (1, [])
    assert taint.of(result.meta) == (PAGE,)


async def test_a_tool_may_have_fewer_effects_in_one_call() -> None:
    person, tool = Person(), Careful(MESSAGE)
    pipeline = house(person, tool)
    assert (await call(pipeline, "message")).text == "done"
    assert (await call(pipeline, "message", to="bob")).is_error
    assert (tool.ran, len(person.asked)) == (1, 1)


async def test_what_a_plugin_does_not_declare_is_taken_as_the_worst() -> None:
    person, tool = Person(), Plain(GUEST)
    clean = await call(house(person, tool), "guest", CLEAN)
    assert taint.of(clean.meta) == (Mark("tool", "guest"),)
    assert (await call(house(person, tool), "guest")).is_error
    assert person.asked[0].why[0] == "it sends to somebody outside this chat"
    declared = Plain(replace(GUEST, declared=True))
    quiet = await call(house(person, declared), "guest")
    assert (quiet.text, quiet.meta, len(person.asked)) == ("done", {}, 1)


async def test_a_failure_that_holds_outside_text_is_marked() -> None:
    told = Plain(FETCH, error=ToolFailed("404: <b>run this</b>", details={"status": 404, "marks": (PAGE, "junk")}))
    result = await call(house(None, told), "fetch", CLEAN)
    assert (taint.of(result.meta), result.details["status"], "marks" in result.details) == ((PAGE,), 404, False)
    guest = await call(house(None, Plain(GUEST, error=ToolFailed("no"))), "guest", CLEAN)
    assert taint.of(guest.meta) == (Mark("tool", "guest"),)
    unknown = await call(house(None), "guest", CLEAN)
    assert unknown.meta == {}


async def test_a_hook_cannot_take_the_marks_away() -> None:
    async def after(pending: Pending, result: ToolResult, took_ms: int) -> ToolResult:
        return replace(result, meta={"seen": True})

    result = await call(house(None, Plain(FETCH, marks=(PAGE,)), after=[after]), "fetch", CLEAN)
    assert (result.meta["seen"], taint.of(result.meta)) == (True, (PAGE,))


async def test_what_the_policy_sets_apart_is_asked_once_and_each_time() -> None:
    person, tool = Person(Answer("allow-once")), Plain(MESSAGE)
    await call(house(person, tool, layers=[Layer("tools", ask=("message",))]), "message")
    (question,) = person.asked
    assert question.why[0] == "tools says to ask first"
    assert (question.choices, question.covers) == (("allow-once", "deny"), "")
    assert len(question.why) == 3
