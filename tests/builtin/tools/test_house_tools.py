"""The tools that ask the gateway: what they ask, what the model reads, what counts as text from outside."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from garra.builtin.tools.gateway import Gateway
from garra.builtin.tools.message import Message
from garra.builtin.tools.sessions_send import SessionsSend
from garra.core.errors import ToolFailed
from garra.core.messages import joined
from garra.core.taint import CLEAN, Mark, add, of
from garra.sdk.tool import Call
from tests.builtin.tools.place import Place

OTHER = {"source": "person", "where": "agent:main:telegram:direct:8"}


async def test_history_is_read_with_its_marks(place: Place) -> None:
    rows = [{"role": "user", "text": "hello", "at": 1}, {"role": "assistant", "text": "", "at": 2, "calls": ["exec"]}]
    place.grants.answer = {"messages": rows, "marks": [OTHER], "hasMore": True, "nextOffset": 2}
    result = await place.call("sessions_history", sessionKey="agent:main:telegram:direct:8")
    assert result.text == "(older: offset 2)\nuser: hello\nassistant:  [calls exec]"
    assert of(result.meta) == (Mark("person", "agent:main:telegram:direct:8"),)
    place.grants.answer = {"messages": [], "marks": [], "hasMore": False}
    own = await place.call("sessions_history")
    assert own.text == "Nothing was said there."
    assert of(own.meta) == ()


async def test_search_shows_where_words_stand(place: Place) -> None:
    place.grants.answer = {"hits": [{"sessionKey": "agent:main:main", "role": "user", "text": "…tea…"}], "marks": []}
    assert await place.said("sessions_search", query="tea") == "agent:main:main user: …tea…"
    place.grants.answer = {"hits": []}
    assert await place.said("sessions_search", query="tea") == "Nothing was found."


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"status": "ok", "reply": "seven"}, "seven"),
        ({"status": "no_reply"}, "nothing was answered"),
        ({"status": "error", "error": "no model"}, "no model"),
        ({"status": "timeout"}, "Do not send it again"),
        ({"status": "accepted"}, "comes as a message"),
    ],
)
async def test_what_became_of_a_message_to_another_session(place: Place, answer: dict[str, Any], words: str) -> None:
    place.grants.answer = {**answer, "marks": [{"source": "agent", "where": "x"}]}
    place.context = replace(place.context, marks=add(CLEAN, (Mark("web", "https://x"),)))
    sent = call(place, sessionKey="agent:work:main", message="how many?")
    result = await SessionsSend().execute(sent, lambda _: None)
    assert words in joined(result.content)
    asked = place.grants.asked[-1][1]
    assert asked["marks"] == [{"source": "web", "where": "https://x"}], "what the turn has read goes with it"
    assert asked["callId"]


async def test_what_goes_to_a_sub_agent_stays_in_the_house(place: Place) -> None:
    place.grants.answer = {"key": "agent:main:subagent:1", "spawnedBy": place.context.session_key}
    asked = call(place, sessionKey="agent:main:subagent:1", message="x")
    assert await SessionsSend().affects(asked) == ()
    place.grants.answer = {"key": "agent:work:main"}
    assert await SessionsSend().affects(asked) == ("sends",)


async def test_the_status_of_a_session(place: Place) -> None:
    place.grants.answer = {
        "key": "agent:main:main", "agentId": "main", "version": "1", "thinking": "off", "contextTokens": 10,
        "contextWindow": 100, "updatedAt": 0, "now": 60_000, "timeZone": "UTC", "run": None, "model": "fake/fake",
    }  # fmt: skip
    said = await place.said("session_status")
    assert "Context 10 of 100 tokens" in said
    assert "now 1970-01-01 00:01 UTC" in said


async def test_agents_are_listed(place: Place) -> None:
    place.grants.answer = {"agents": [{"id": "main"}, {"id": "work", "name": "Worker"}]}
    assert await place.said("agents_list") == "main\nwork Worker"


def call(place: Place, **arguments: Any) -> Call:
    return Call("c1", arguments, place.context)


async def test_what_stays_in_its_chat_sends_to_nobody_else(place: Place) -> None:
    message = Message()
    assert await message.affects(call(place, action="send", text="x")) == ()
    place.grants.answer = {"chat": "telegram:9", "own": False}
    assert await message.affects(call(place, action="send", text="x", to="telegram:9")) == ("sends",)
    place.grants.answer = {"chat": "telegram:9", "own": True}
    assert await message.affects(call(place, action="send", text="x", to="telegram:9")) == ()
    shown = await message.show(call(place, action="edit", text="the words", to="telegram:9", messageId="5"))
    assert shown == "edit to telegram:9 (message 5):\nthe words"


@pytest.mark.parametrize(
    ("status", "words"),
    [("sent", "message 5"), ("pending", "as soon as"), ("unsure", "not known"), ("ok", "Done.")],
)
async def test_what_became_of_a_message(place: Place, status: str, words: str) -> None:
    place.grants.answer = {"status": status, "messageId": "5", "chat": "telegram:9"}
    assert words in await place.said("message", action="send", message="hello")
    assert place.grants.asked[-1][1]["text"] == "hello", "the original's name for it"
    place.grants.answer = {"status": "dead", "messageId": "", "chat": "telegram:9", "reason": "blocked"}
    assert "blocked" in await place.refused("message", action="send", text="hello")


async def test_files_go_along_and_the_yes_holds_for_their_bytes(place: Place) -> None:
    file = place.root / "plan.pdf"
    file.write_bytes(b"%PDF-1.7")
    place.grants.answer = {"status": "sent", "messageId": "5", "chat": "telegram:9"}
    assert "message 5" in await place.said("message", action="send", path="plan.pdf")
    (sent,) = place.grants.asked[-1][1]["files"]
    assert sent == {"name": "plan.pdf", "mime": "application/pdf", "data": b"%PDF-1.7"}
    message = Message()
    asked = call(place, action="send", text="x", to="telegram:9", files=["plan.pdf"])
    assert "with plan.pdf (8 bytes, sha256 " in await message.show(asked)
    file.write_bytes(b"%PDF-1.8")
    with pytest.raises(ToolFailed, match="has changed since the person agreed"):
        await message.execute(asked, lambda _: None)
    await message.show(asked)
    assert "message 5" in joined((await message.execute(asked, lambda _: None)).content)


@pytest.mark.parametrize("named", ["../outside", "/etc/passwd", "https://x.test/a", "data:text/plain,x", "file:///x"])
async def test_only_files_of_the_workspace_and_of_the_conversation_go_along(place: Place, named: str) -> None:
    await place.refused("message", action="send", text="x", files=[named])
    assert place.grants.asked == []


async def test_what_came_with_a_message_is_read_by_its_name(place: Place) -> None:
    held = {"name": "n.txt", "mime": "text/plain", "data": b"one\ntwo\nthree"}
    place.grants.answer = held
    result = await place.call("read", path="media://in/7", offset=2, limit=1)
    assert "two" in result.text
    assert "one" not in result.text
    assert "offset=3" in result.text
    assert of(result.meta) == (Mark("file", "media://in/7"),)
    place.grants.answer = {**held, "data": b"\x89PNG\r\n\x1a\n"}
    assert "image/png" in (await place.call("read", path="media://in/7")).text
    place.grants.answer = {**held, "data": b"%PDF-1.7"}
    assert "tool pdf" in await place.refused("read", path="media://in/7")


async def test_a_question_and_no_answer(place: Place) -> None:
    asked = {"questions": [{"question": "Which?", "options": [{"label": "A"}]}]}
    place.grants.answer = {"status": "answered", "answers": {"answers": {"question_1": ["A"]}}}
    assert await place.said("ask_user", **asked) == "question_1: A"
    place.grants.answer = {"status": "no_answer", "reason": "expired"}
    assert "best judgment" in await place.said("ask_user", **asked)


async def test_settings_are_read_without_asking_and_changed_with(place: Place) -> None:
    gateway = Gateway()
    assert await gateway.affects(call(place, action="config.get")) == ()
    place.grants.answer = {"diff": ["-a", "+b"], "base": "h1"}
    change = call(place, action="config.patch", patch={"logging": {"level": "debug"}})
    assert await gateway.affects(change) == ("configures",)
    with pytest.raises(ToolFailed, match="nobody was asked"):
        await gateway.execute(change, lambda _: None)
    assert await gateway.show(change) == "Change the configuration:\n-a\n+b"
    place.grants.answer = {"revertsAfterSeconds": 120.0, "diff": []}
    assert "taken back 120 s later" in joined((await gateway.execute(change, lambda _: None)).content)
    assert place.grants.asked[-1][1]["base"] == "h1"
    with pytest.raises(ToolFailed, match="Give patch"):
        await gateway.affects(call(place, action="config.patch"))


async def test_other_words_about_settings(place: Place) -> None:
    place.grants.answer = {"value": {"level": "info"}}
    assert '"level"' in await place.said("gateway", action="config.get", path="logging")
    place.grants.answer = {"confirmed": False}
    assert await place.said("gateway", action="config.confirm") == "No change is on trial."
    place.grants.answer = {"type": "string"}
    assert "string" in await place.said("gateway", action="config.schema.lookup", path="logging.level")


async def test_a_patch_asks_a_person_and_nobody_can_be_asked_here(place: Place) -> None:
    place.grants.answer = {"diff": ["+b"], "base": "h1"}
    refused = await place.refused("gateway", action="config.patch", patch={"logging": {"level": "debug"}})
    assert "nobody can be asked here" in refused
