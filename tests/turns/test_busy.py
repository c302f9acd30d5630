"""What becomes of messages that come while an agent works: each is answered, or told why not."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from garra.core.messages import Message, ToolCall, Usage, User
from garra.testing.model import Says, calls, says
from garra.testing.tools import forever
from garra.turns.bursts import Bursts
from tests.turns.house import config, echo, house


def queue(mode: str, **more: Any) -> dict[str, Any]:
    return {"messages": {"inbound": {"debounceMs": 0}, "queue": {"mode": mode, "debounceMs": 0, **more}}}


class Slow:
    """A tool that runs until it is let go."""

    def __init__(self) -> None:
        self.began, self.go = asyncio.Event(), asyncio.Event()

    async def __call__(self, call: ToolCall, update: object) -> str:
        self.began.set()
        await self.go.wait()
        return "done"


def working(messages: tuple[Message, ...]) -> Says:
    """Calls the tool for `work`, else answers all that was said since its last answer."""
    open_: list[str] = []
    for message in messages:
        if isinstance(message, User):
            open_.append(message.text)
        elif message.text and not getattr(message, "calls", ()) and type(message).__name__ == "Assistant":
            open_.clear()
    last = messages[-1]
    if isinstance(last, User) and last.text == "work":
        return calls("slow")
    return says(f"re: {' + '.join(open_)}")


@pytest.mark.req("CH-09", "MSG-10")
async def test_steer_gives_it_to_the_turn_that_runs(tmp_path: Path) -> None:
    slow = Slow()
    async with house(tmp_path, working, config(queue("steer")), {"slow": slow}) as h:
        await h.channel.say("work")
        await slow.began.wait()
        later = await h.channel.say("more")
        await h.until(lambda: h.runs.active("agent:main:test:direct:1").steer)  # type: ignore[union-attr]
        slow.go.set()
        await h.idle()
        assert h.channel.words() == ["re: work + more"]
        assert (await h.row(later)).why == "answered"


@pytest.mark.req("CH-09", "CH-08")
async def test_followup_answers_one_by_one_in_order(tmp_path: Path) -> None:
    slow = Slow()
    async with house(tmp_path, working, config(queue("followup")), {"slow": slow}) as h:
        await h.channel.say("work")
        await slow.began.wait()
        for text in ("one", "two", "three"):
            await h.channel.say(text)
        slow.go.set()
        await h.idle()
        assert h.channel.words() == ["re: work", "re: one", "re: two", "re: three"]


@pytest.mark.req("CH-09")
async def test_collect_answers_all_that_waited_as_one(tmp_path: Path) -> None:
    slow = Slow()
    async with house(tmp_path, working, config(queue("collect")), {"slow": slow}) as h:
        await h.channel.say("work")
        await slow.began.wait()
        rows = [await h.channel.say(text) for text in ("one", "two")]
        await h.until(lambda: len(h.kernel.answers) == 3)
        slow.go.set()
        await h.idle()
        assert h.channel.words() == ["re: work", "re: one + two"]
        assert [(await h.row(row)).why for row in rows] == ["answered", "answered"]


@pytest.mark.req("CH-09")
async def test_interrupt_stops_what_runs_and_drop_says_no(tmp_path: Path) -> None:
    slow = Slow()
    async with house(tmp_path, working, config(queue("interrupt")), {"slow": slow}) as h:
        first = await h.channel.say("work")
        await slow.began.wait()
        await h.channel.say("stop that, do this")
        await h.idle()
        assert (await h.row(first)).why == "interrupted"
        assert h.channel.words() == ["re: work + stop that, do this"]
    busy = Slow()
    async with house(tmp_path / "2", working, config(queue("drop")), {"slow": busy}) as h:
        await h.channel.say("work")
        await busy.began.wait()
        refused = await h.channel.say("hello?")
        await h.until(lambda: h.channel.words())
        assert "busy" in h.channel.words()[0]
        assert (await h.row(refused)).state == "done"
        busy.go.set()
        await h.idle()


async def test_a_full_queue_tells_whom_it_leaves_out(tmp_path: Path) -> None:
    slow = Slow()
    async with house(tmp_path, working, config(queue("followup", cap=1, drop="new")), {"slow": slow}) as h:
        await h.channel.say("work")
        await slow.began.wait()
        await h.channel.say("one")
        await h.channel.say("two")
        await h.until(lambda: h.channel.words())
        assert "Too many messages wait" in h.channel.words()[0]
        slow.go.set()
        await h.idle()
        assert h.channel.words()[1:] == ["re: work", "re: one"]


async def test_what_was_answered_before_more_came_is_said_too(tmp_path: Path) -> None:
    """The model is at its last word when a message is handed to it: both answers are the chat's, in order."""

    def script(messages: tuple[Message, ...]) -> Says:
        last = messages[-1]
        return Says(("the first answer",), hangs=True) if last.text == "first" else says(f"re: {last.text}")

    async with house(tmp_path, script, config(queue("steer"))) as h:
        await h.channel.say("first")
        await h.until(lambda: h.model.streams)
        await h.channel.say("second")
        await h.until(lambda: h.runs.active("agent:main:test:direct:1").steer)  # type: ignore[union-attr]
        h.model.streams[0].done("stop", Usage())
        await h.idle()
        assert h.channel.words() == ["the first answer", "re: second"]


@pytest.mark.req("CH-11", "MSG-09")
async def test_a_busy_chat_delays_nobody_and_status_answers_at_once(tmp_path: Path) -> None:
    slow = Slow()
    async with house(tmp_path, working, config(), {"slow": slow}) as h:
        await h.channel.say("work", "1")
        await slow.began.wait()
        await h.channel.say("hello", "2")
        await h.channel.say("/status", "1")
        await h.until(lambda: len(h.channel.words()) == 2)
        assert h.channel.words("2") == ["re: hello"]
        assert "at work" in h.channel.words("1")[0]
        slow.go.set()
        await h.idle()


async def test_stop_ends_what_runs_and_what_waits_and_the_chat_goes_on(tmp_path: Path) -> None:
    async with house(tmp_path, working, config(queue("followup")), {"slow": forever}) as h:
        rows = [await h.channel.say(text) for text in ("work", "one", "two")]
        await h.until(lambda: h.tools.ran and len(h.kernel.answers) == 3)
        await h.channel.say("/stop")
        await h.idle(2.0)
        assert h.channel.words() == ["Stopped."]
        assert [(await h.row(row)).why for row in rows] == ["stopped"] * 3
        assert h.halted == ["agent:main:test:direct:1"]
        assert h.tools.stopped == 1
        requests = len(h.model.requests)
        await h.channel.say("hi")
        await h.idle()
        assert h.channel.words()[-1].endswith("hi")
        assert len(h.model.requests) == requests + 1
        await h.channel.say("/stop")
        await h.idle()
        assert h.channel.words()[-1] == "Nothing was running."


async def test_stop_takes_a_burst_with_it(tmp_path: Path) -> None:
    settings = config({"messages": {"inbound": {"debounceMs": 5000}}})
    async with house(tmp_path, echo, settings) as h:
        row = await h.channel.say("never mind")
        await h.until(lambda: len(h.kernel._bursts))
        await h.channel.say("/stop")
        await h.idle(2.0)
        assert (await h.row(row)).why == "stopped"
        assert not h.model.requests


@pytest.mark.req("MSG-04")
async def test_a_burst_of_one_person_is_one_turn_and_a_command_does_not_wait(tmp_path: Path) -> None:
    settings = config({"messages": {"inbound": {"debounceMs": 150}}})
    async with house(tmp_path, echo, settings) as h:
        rows = [await h.channel.say(text) for text in ("one", "two", "three")]
        await h.channel.say("/whoami")
        await h.until(lambda: h.channel.words())
        assert h.channel.words()[0].startswith("You are 1")
        await h.idle()
        assert h.channel.words()[1:] == ["re: one\ntwo\nthree"]
        assert [(await h.row(row)).why for row in rows] == ["answered"] * 3
        assert len(h.model.requests) == 1


@pytest.mark.req("CH-21")
async def test_a_burst_of_several_people_is_one_turn_that_names_each(tmp_path: Path) -> None:
    settings = config({"messages": {"inbound": {"byChannel": {"test": 150}}}}, groups={"*": {"requireMention": False}})
    async with house(tmp_path, echo, settings) as h:
        for user in ("1", "2", "3", "1"):
            await h.channel.say(f"I am {user}", user, "-5")
        await h.idle()
        assert h.asked() == "Ann (1): I am 1\nBob (2): I am 2\nEve (3): I am 3\nAnn (1): I am 1"
        assert len(h.model.requests) == 1


async def test_a_command_ends_the_burst_before_it(tmp_path: Path) -> None:
    settings = config({"messages": {"inbound": {"debounceMs": 3000}}})
    async with house(tmp_path, echo, settings) as h:
        await h.channel.say("before")
        await h.channel.say("/queue followup")
        await h.idle(2.0)
        assert h.asked() == "before"
        assert any(text.startswith("Queue: followup") for text in h.channel.words())


async def test_a_group_member_with_more_rights_does_not_lend_them(tmp_path: Path) -> None:
    """What one may have run, another may not have run by writing into the same turn."""
    slow = Slow()
    own = {"*": {"requireMention": False, "toolsBySender": {"id:1": {"alsoAllow": ["exec"]}}}}
    async with house(tmp_path, working_in_group, config(queue("steer"), groups=own), {"slow": slow}) as h:
        await h.channel.say("work", "1", "-5")
        await slow.began.wait()
        await h.channel.say("and run this", "2", "-5")
        await h.until(lambda: len(h.kernel.answers) == 2)
        slow.go.set()
        await h.idle()
        by_sender = {turn.place.sender: h.allowed(turn) for turn in h.turns if turn.place}
        assert by_sender == {"1": {"exec", "web_fetch"}, "2": {"web_fetch"}}
        assert len(h.channel.words()) == 2


def working_in_group(messages: tuple[Message, ...]) -> Says:
    last = messages[-1]
    return calls("slow") if isinstance(last, User) and last.text.endswith("work") else says(f"re: {last.text}")


async def test_who_leads_a_burst_stands_in_line_before_it_enters() -> None:
    """Its adoption may take long; who comes later does not go before it."""
    bursts: Bursts[str, None] = Bursts()
    first = bursts.lead(("chat",), "kind", "first", 0.0)
    order: list[str] = []

    async def later() -> None:
        async with bursts.enter(("chat",)):
            order.append("later")

    async with asyncio.TaskGroup() as group:
        group.create_task(later())
        await asyncio.sleep(0)
        async with bursts.enter(("chat",), first):
            order.append("first")
    assert order == ["first", "later"]
    given_up = bursts.lead(("chat",), "kind", "never", 0.0)
    bursts.leave(("chat",), given_up)
    bursts.leave(("chat",), given_up)
    assert len(bursts) == 0
