"""The chat's screen, driven by a pilot over a gateway in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Static

from garra.client.wire import Link
from garra.faces.tui import chat
from garra.faces.tui.backend import Backend
from garra.faces.tui.chat import Chat, Opening
from garra.faces.tui.composer import Composer
from garra.faces.tui.picker import Picker
from garra.faces.tui.transcript import Transcript
from garra.faces.tui.views import FootView, NoticeView, SaidView, ToolView, WordsView, lined
from garra.io.clock import SystemClock
from tests.faces.tui.port import MAIN, Memory, final, tool, words


@asynccontextmanager
async def chatting(port: Memory, **opening: Any) -> AsyncIterator[tuple[Chat, Pilot[int]]]:
    app = Chat(Backend(port), Opening(**opening), SystemClock())
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: bool(port.said("sessions.describe")))
        yield app, pilot


async def until(pilot: Pilot[int], true: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not true():
            await pilot.pause(0.01)


async def type_in(pilot: Pilot[int], app: Chat, text: str) -> None:
    app.query_one(Composer).put(text)
    await pilot.press("enter")


async def unfolded(pilot: Pilot[int], output: Static) -> bool:
    await pilot.press("ctrl+o")
    return output.display


def status(app: Chat) -> str:
    return "  ".join(str(app.query_one(part, Static).render()) for part in ("#facts", "#doing"))


def notices(app: Chat) -> str:
    return "\n".join(str(view.render()) for view in app.query(NoticeView))


def test_an_end_of_a_line_in_an_answer_is_one_on_the_screen() -> None:
    (_, inline, _) = lined().parse("Model: a/b\nThinking: high")
    assert [child.type for child in inline.children or ()] == ["text", "hardbreak", "text"]


async def test_a_message_is_sent_and_its_answer_grows_on_the_screen() -> None:
    port = Memory()
    async with chatting(port) as (app, pilot):
        await type_in(pilot, app, "你好，今天几号？")
        await until(pilot, lambda: bool(port.said("chat.send")))
        sent = port.said("chat.send")[0]
        assert (sent["message"], sent["sessionKey"]) == ("你好，今天几号？", MAIN)
        run = sent["idempotencyKey"]
        assert len(app.query(SaidView)) == 1
        port.event("agent", **words(run, "It is **"))
        port.event("agent", **words(run, "It is **Tuesday**."))
        await until(pilot, lambda: "answering" in status(app))
        port.event("chat", **final(run, "It is **Tuesday**."))
        await until(pilot, lambda: len(app.query(FootView)) == 1)
        shown = app.query_one(WordsView)
        await until(pilot, lambda: "Tuesday" in str(shown.children[0].render()))
        assert shown.source == "It is **Tuesday**."
        assert "Esc stops" not in status(app)


async def test_a_tool_call_is_one_folded_line_with_its_time() -> None:
    port = Memory()
    async with chatting(port) as (app, pilot):
        port.event("agent", ts=1000, **tool("r1", "start", args={"command": "ls -la"}))
        await until(pilot, lambda: "using exec" in status(app))
        result = {"content": [{"type": "text", "text": "a.txt\nb.txt"}]}
        port.event("agent", ts=1300, **tool("r1", "result", result=result, isError=False))
        await until(pilot, lambda: "0.3 s" in str(app.query_one(".line", Static).render()))
        line = str(app.query_one(".line", Static).render())
        assert line.startswith("✓ exec  ls -la")
        output = app.query_one(ToolView).query_one(".output", Static)
        assert [output.display, await unfolded(pilot, output)] == [False, True]
        assert "b.txt" in str(output.render())


async def test_escape_stops_what_goes_on() -> None:
    port = Memory()
    async with chatting(port) as (app, pilot):
        await type_in(pilot, app, "count to a million")
        await until(pilot, lambda: bool(port.said("chat.send")))
        run = port.said("chat.send")[0]["idempotencyKey"]
        await pilot.press("escape")
        await until(pilot, lambda: bool(port.said("chat.abort")))
        port.event("chat", runId=run, state="aborted", stopReason="rpc")
        await until(pilot, lambda: "stopped" in notices(app))
        await pilot.press("escape")
        await pilot.pause()
        assert len(port.said("chat.abort")) == 1


async def test_history_is_shown_on_opening() -> None:
    history: list[dict[str, Any]] = [
        {"role": "user", "content": "hello", "timestamp": 1000},
        {
            "role": "assistant",
            "content": [{"type": "toolCall", "id": "c1", "name": "read", "arguments": {"path": "a.md"}}],
            "stopReason": "toolUse",
        },
        {"role": "toolResult", "toolCallId": "c1", "toolName": "read", "content": [{"type": "text", "text": "# A"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "Done."}], "model": "fake", "timestamp": 3500,
         "usage": {"totalTokens": 1200, "cacheRead": 1000, "cost": {"total": 0.004}}, "stopReason": "stop"},
    ]  # fmt: skip
    async with chatting(Memory(history)) as (app, pilot):
        await until(pilot, lambda: len(app.query(FootView)) == 1)
        assert [len(app.query(kind)) for kind in (SaidView, ToolView, WordsView)] == [1, 1, 1]
        assert str(app.query_one(FootView).render()) == "fake  2.5 s  1,200 tokens, 1,000 cached  $0.004"
        assert "2,310 of 200,000 tokens" in status(app)


async def test_a_failure_is_one_line_that_says_why() -> None:
    port = Memory()
    async with chatting(port) as (app, pilot):
        port.event("chat", runId="r1", state="error", errorMessage="The model's server refused the key.")
        await until(pilot, lambda: "refused the key" in notices(app))
        port.refuse["chat.send"] = "no such agent"
        await type_in(pilot, app, "hello")
        await until(pilot, lambda: "Not sent: no such agent" in notices(app))
        assert "Esc stops" not in status(app)


async def test_a_lost_link_is_said_and_what_is_written_meanwhile_is_sent_when_it_is_back() -> None:
    port = Memory()
    async with chatting(port) as (app, pilot):
        port.link(Link("lost", "service restart (1012)", 1.0))
        await until(pilot, lambda: "service restart" in notices(app))
        assert "not connected" in status(app)
        await type_in(pilot, app, "are you there?")
        await until(pilot, lambda: len(app.query(SaidView)) == 1)
        assert not port.said("chat.send")
        port.link(Link("connected"))
        await until(pilot, lambda: bool(port.said("chat.send")))
        assert port.said("chat.send")[0]["message"] == "are you there?"
        assert "Connected again." in notices(app)
        assert len(port.said("sessions.subscribe")) == 2


async def test_what_is_written_before_the_connection_stands_is_not_lost() -> None:
    port = Memory()
    app = Chat(Backend(port), Opening(message="and this first"), SystemClock())
    async with app.run_test(size=(80, 24)) as pilot:
        app.query_one(Composer).post_message(Composer.Sent("hurried"))
        await until(pilot, lambda: len(port.said("chat.send")) == 2)
        assert {sent["message"] for sent in port.said("chat.send")} == {"and this first", "hurried"}
        assert {sent["sessionKey"] for sent in port.said("chat.send")} == {MAIN}
        await until(pilot, lambda: len(app.query(SaidView)) == 2)


async def test_a_question_of_the_house_is_put_to_the_person() -> None:
    port = Memory()
    async with chatting(port) as (app, pilot):
        for keys, answer in ((["enter"], False), (["down", "enter"], True), (["escape"], False)):
            asked = asyncio.ensure_future(port.ask("May commands run on this machine itself?"))
            await until(pilot, lambda: isinstance(app.screen, Picker))
            await pilot.press(*keys)
            assert await asked is answer


async def test_slash_commands_are_offered_and_done() -> None:
    port = Memory()
    async with chatting(port) as (app, pilot):
        app.query_one(Composer).put("/se")
        await pilot.pause()
        assert "/sessions" in str(app.query_one("#hints", Static).render())
        await type_in(pilot, app, "/help")
        await until(pilot, lambda: "/reset" in notices(app))
        await type_in(pilot, app, "/think high")
        await until(pilot, lambda: bool(port.said("sessions.patch")))
        assert port.said("sessions.patch")[0] == {"key": MAIN, "thinkingLevel": "high"}
        await type_in(pilot, app, "/status")
        await until(pilot, lambda: "version 0.1.0" in notices(app))
        await type_in(pilot, app, "/reset")
        await until(pilot, lambda: port.said("sessions.reset") == [{"key": MAIN}])
        await type_in(pilot, app, "/reset what is new?")
        await until(pilot, lambda: [sent["message"] for sent in port.said("chat.send")] == ["what is new?"])
        assert len(port.said("sessions.reset")) == 2
        await type_in(pilot, app, "/sesions")
        await until(pilot, lambda: "no command /sesions; did you mean /sessions" in notices(app))
        assert len(port.said("chat.send")) == 1
        await type_in(pilot, app, "/unknown thing")
        await until(pilot, lambda: [sent["message"] for sent in port.said("chat.send")][1:] == ["/unknown thing"])


async def test_another_conversation_model_and_agent_are_picked_from_a_list() -> None:
    port = Memory()
    async with chatting(port) as (app, pilot):
        await pilot.press("ctrl+p")
        await until(pilot, lambda: isinstance(app.screen, Picker))
        await pilot.press(*"lisbon", "enter")
        await until(pilot, lambda: any(p["sessionKey"] == "agent:main:tui-2" for p in port.said("chat.history")))
        await pilot.press("ctrl+l")
        await until(pilot, lambda: isinstance(app.screen, Picker))
        await pilot.press("down", "enter")
        await until(pilot, lambda: bool(port.said("sessions.patch")))
        assert port.said("sessions.patch")[0] == {"key": "agent:main:tui-2", "model": "cloud/far"}
        await pilot.press("ctrl+g")
        await until(pilot, lambda: isinstance(app.screen, Picker))
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(app.screen, Picker))
        await type_in(pilot, app, "/agent cook")
        await until(pilot, lambda: "agent:cook:main" in [p["sessionKey"] for p in port.said("chat.history")])
        await until(pilot, lambda: "cook" in status(app))


async def test_leaving_closes_the_port_and_ctrl_c_first_clears() -> None:
    port = Memory()
    async with chatting(port) as (app, pilot):
        app.query_one(Composer).put("half a thought")
        await pilot.press("ctrl+c")
        assert app.query_one(Composer).text == ""
        await pilot.press("ctrl+c")
        await until(pilot, lambda: "again" in status(app))
        await pilot.press("ctrl+c")
    assert port.closed
    assert app.return_code == 0


async def test_what_was_sent_comes_back_with_the_arrows_and_lines_can_be_several() -> None:
    port = Memory()
    async with chatting(port) as (app, pilot):
        await type_in(pilot, app, "first")
        await type_in(pilot, app, "second")
        await pilot.press("up")
        composer = app.query_one(Composer)
        assert composer.text == "second"
        await pilot.press("up", "down", "down")
        assert composer.text == ""
        await pilot.press("a", "ctrl+j", "b")
        assert composer.text == "a\nb"


async def test_other_peoples_sessions_do_not_show_here() -> None:
    port = Memory()
    async with chatting(port) as (app, pilot):
        port.event("agent", **{**words("r9", "secret"), "sessionKey": "agent:main:other"})
        port.event(
            "session.message", message={"role": "user", "content": "from the phone", "idempotencyKey": "p1:user"}
        )
        await until(pilot, lambda: len(app.query(SaidView)) == 1)
        assert not app.query(WordsView)
        assert app.query_one(Transcript).children


async def test_a_fault_of_ours_is_one_line_and_shows_no_variables() -> None:
    said: list[str] = []

    class Broken(Chat):
        CSS_PATH = str(Path(chat.__file__).with_name("chat.tcss"))

        def panic(self, *renderables: object) -> None:
            said.extend(map(str, renderables))
            super().panic()

    screen = Broken(Backend(Memory()), Opening(), SystemClock())
    with pytest.raises(ZeroDivisionError):
        async with screen.run_test() as pilot:
            await pilot.pause()
            screen.call_later(lambda: 1 // 0)
            await pilot.pause()
    assert said == ["garra: the chat ended with a fault of its own; `garra logs` tells more. Nothing said was lost."]
