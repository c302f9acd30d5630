"""The tools of the house in the running program: what each person's turn is offered, may see, send, and ask."""

from __future__ import annotations

import asyncio
import json
import re
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from garra.testing.model_server import Say, Use
from garra.testing.telegram import TelegramServer
from tests.e2e.outside import until
from tests.e2e.resident import Resident, StrictModel, resident, strict_model
from tests.e2e.test_approvals import card, press, results

pytestmark = pytest.mark.e2e

OWNER, FRIEND, GROUP = 1001, 2002, -500


@asynccontextmanager
async def house(
    root: Path, more: dict[str, Any] | None = None
) -> AsyncIterator[tuple[Resident, StrictModel, TelegramServer]]:
    async with strict_model() as model, TelegramServer() as telegram:
        bot = {
            "botToken": telegram.token,
            "apiRoot": telegram.url,
            "allowFrom": [OWNER, FRIEND],
            "groups": {str(GROUP): {"requireMention": False}},
        }
        chats = {"channels": {"telegram": bot}, "session": {"dmScope": "per-channel-peer"}}
        owners = {"commands": {"ownerAllowFrom": [f"telegram:{OWNER}"]}, "messages": {"inbound": {"debounceMs": 0}}}
        async with resident(root, model.url, {**chats, **owners, **(more or {})}) as program:
            yield program, model, telegram


def tools(model: StrictModel) -> list[str]:
    return [each["function"]["name"] for each in model.requests[-1].body["tools"]]


async def say(telegram: TelegramServer, who: int, text: str, chat: int | None = None) -> None:
    """Say it, and wait for the next answer in that chat."""
    at = chat or who
    before = len(telegram.shown(at))
    where = {"chat": {"id": chat, "type": "supergroup", "title": "us"}} if chat else {}
    telegram.say(who, text, **where)
    await until(lambda: len(telegram.shown(at)) > before)


@pytest.mark.req("TOOL-06")
async def test_the_owner_in_his_chat_and_in_a_group_is_offered_different_tools(tmp_path: Path) -> None:
    async with house(tmp_path) as (program, model, telegram):
        await say(telegram, OWNER, "what can you do?")
        mine = tools(model)
        assert {"exec", "read", "write", "tool_search"} <= set(mine)
        assert len(model.requests[-1].raw) < 8_000
        body = model.requests[-1].body
        system, told = body["messages"][0]["content"], json.dumps(body["tools"], separators=(",", ":"))
        assert len(system.encode()) + len(told) <= 7_400 + len(str(tmp_path))
        assert "## Sub-agents" in system, "though its tool is told by name only"
        assert "memory_search" in system, "though it is told by name only"
        await say(telegram, OWNER, "what can you do?", GROUP)
        assert {"exec", "read", "write", "process"}.isdisjoint(tools(model))
        code, out, _ = await program.run(
            "tools", "explain", "exec", "--session", f"agent:main:telegram:group:{GROUP}", "--sender", str(OWNER)
        )
        assert code == 0
        assert "The step that decided: group" in out
        code, out, _ = await program.run("tools", "list", "--session", f"agent:main:telegram:direct:{OWNER}", "--json")
        rows = {row["name"]: row for row in json.loads(out)["tools"]}
        assert (rows["exec"]["offered"], rows["message"]["offered"]) == ("full", "byName")


@pytest.mark.req("TOOL-05")
async def test_what_a_step_denies_is_neither_told_nor_called(tmp_path: Path) -> None:
    rules = {"tools": {"toolsBySender": {f"id:{FRIEND}": {"deny": ["exec", "message"]}}}}
    async with house(tmp_path, rules) as (_, model, telegram):
        model.then(Use("exec", {"command": "id"}), Use("tool_call", {"id": "message", "args": {"action": "send"}}))
        await say(telegram, FRIEND, "run it")
        assert "exec" not in tools(model)
        assert all("There is no tool" in each for each in results(model))
        assert "message" not in model.requests[-1].body["tools"][-2]["function"]["description"]


async def test_nobody_reads_or_reaches_another_persons_conversation(tmp_path: Path) -> None:
    async with house(tmp_path) as (_, model, telegram):
        await say(telegram, OWNER, "my secret is 4711")
        theirs = f"agent:main:telegram:direct:{OWNER}"
        model.then(
            Use("sessions_list", {}),
            Use("tool_call", {"id": "sessions_history", "args": {"sessionKey": theirs}}),
            Use("tool_call", {"id": "sessions_search", "args": {"query": "4711"}}),
            Use("tool_call", {"id": "sessions_send", "args": {"sessionKey": theirs, "message": "tell me"}}),
            Use("tool_call", {"id": "message", "args": {"action": "send", "to": f"telegram:{OWNER}", "text": "hi"}}),
            Say("nothing"),
        )
        await say(telegram, FRIEND, "what did the other one say?")
        listed, history, found, sent, message = results(model)
        assert theirs not in listed
        assert f"telegram:direct:{FRIEND}" in listed
        assert "No session" in history
        assert "Nothing was found" in found
        assert "No session" in sent
        assert "this chat alone" in message or "Not run" in message
        assert b"4711" not in b"".join(each.raw for each in model.requests[1:2])
        assert all("4711" not in str(each) for each in (listed, history, sent))


async def test_sessions_answer_each_other_and_not_for_ever(tmp_path: Path) -> None:
    async with house(tmp_path, {"tools": {"sessions": {"visibility": "agent"}}}) as (_, model, telegram):
        await say(telegram, FRIEND, "hello")
        theirs = f"agent:main:telegram:direct:{FRIEND}"
        model.then(
            Use("tool_call", {"id": "sessions_send", "args": {"sessionKey": theirs, "message": "how many?"}}),
            Say("seven"),
            Say("it is seven"),
        )
        await say(telegram, OWNER, "ask them how many")
        assert results(model)[-1] == "seven"
        asked = next(each for each in model.requests if b"Inter-session message from" in each.raw)
        assert b"isUser=false" in asked.raw
        assert "it is seven" in telegram.shown(OWNER)[-1]
        assert len(telegram.shown(FRIEND)) == 1, "what sessions say to each other goes into no chat"


async def test_a_message_goes_into_the_turns_own_chat_once(tmp_path: Path) -> None:
    async with house(tmp_path) as (_, model, telegram):
        model.then(
            Use("message", {"action": "send", "text": "first **this**"}),
            Use("tool_call", {"id": "message", "args": {"action": "react", "emoji": "👍"}}),
            Say("then that"),
        )
        telegram.say(FRIEND, "two things please")
        await until(lambda: len(telegram.shown(FRIEND)) == 2)
        assert telegram.shown(FRIEND) == ["first <b>this</b>", "then that"]
        assert len(telegram.asked("setMessageReaction")) == 1


def document(telegram: TelegramServer, who: int, data: bytes, caption: str) -> None:
    telegram.files["f1"] = data
    told = {"file_id": "f1", "file_unique_id": "u1", "file_name": "plan.zip", "mime_type": "application/zip"}
    message = {**telegram.message(who, ""), "document": told, "caption": caption}
    message.pop("text")
    telegram.push({"message": message})


async def test_files_come_and_go_by_name_and_outlive_a_restart(tmp_path: Path) -> None:
    async with house(tmp_path) as (program, model, telegram):
        document(telegram, FRIEND, b"PK-zip", "keep this")
        await until(lambda: len(telegram.shown(FRIEND)) == 1)
        (body,) = model.asked("keep this")
        handle = re.findall(r"media://in/[0-9a-f]+", json.dumps(body))[0]
        await say(telegram, OWNER, "hello")
        await program.stop()
        await program.start()
        (tmp_path / "state" / "workspace" / "note.txt").write_text("noon")
        model.then(Use("message", {"action": "send", "text": "both", "files": [handle, "note.txt"]}), Say("there"))
        await say(telegram, FRIEND, "send it back, with the note")
        await until(lambda: len(telegram.asked("sendDocument")) == 2)
        assert [sent.files["document"] for sent in telegram.asked("sendDocument")] == [
            ("plan.zip", b"PK-zip"),
            ("note.txt", b"noon"),
        ]
        model.then(Use("message", {"action": "send", "files": [handle]}), Say("no"))
        await say(telegram, OWNER, "give me that file")
        assert "no file media://" in results(model)[-1]


async def test_the_owner_sends_where_the_agent_is_at_home_and_nowhere_else(tmp_path: Path) -> None:
    async with house(tmp_path) as (_, model, telegram):
        await say(telegram, FRIEND, "hello")
        model.then(
            Use("tool_call", {"id": "message", "args": {"action": "send", "to": str(FRIEND), "text": "from him"}}),
            Use("tool_call", {"id": "message", "args": {"action": "send", "to": "telegram:9999", "text": "spam"}}),
            Say("done"),
        )
        await say(telegram, OWNER, "tell them")
        assert telegram.shown(FRIEND)[-1] == "from him"
        assert "is no chat the agent talks in" in results(model)[-1]
        assert telegram.shown(9999) == []


QUESTION = {"questions": [{"question": "Which one?", "options": [{"label": "Red"}, {"label": "Blue"}]}]}


async def test_a_question_is_answered_by_a_button_or_in_words(tmp_path: Path) -> None:
    async with house(tmp_path) as (program, model, telegram):
        model.then(Use("ask_user", QUESTION), Say("so it is"))
        telegram.say(FRIEND, "paint it")
        await until(lambda: card(telegram, FRIEND))
        shown = card(telegram, FRIEND)
        assert shown is not None
        async with program.client() as client:
            listed = (await client.call("question.list"))["questions"]
        assert [each["question"] for each in listed[0]["questions"]] == ["Which one?"]
        press(telegram, shown, FRIEND, OWNER, "Blue")
        press(telegram, shown, FRIEND, FRIEND, "Blue")
        await until(lambda: "so it is" in str(telegram.shown(FRIEND)))
        assert results(model) == ["question_1: Blue"]

        model.then(Use("ask_user", QUESTION), Say("as you say"))
        telegram.say(FRIEND, "and again")
        await until(lambda: sum("Which one?" in each for each in telegram.shown(FRIEND)) == 2)
        telegram.say(FRIEND, "Green, please")
        await until(lambda: "as you say" in str(telegram.shown(FRIEND)))
        assert results(model)[-1] == "question_1: Green, please"


async def test_an_answer_after_a_crash_reaches_the_session(tmp_path: Path) -> None:
    async with house(tmp_path) as (program, model, telegram):
        model.then(Use("ask_user", QUESTION), Say("I go on"))
        telegram.say(FRIEND, "paint it")
        await until(lambda: card(telegram, FRIEND))
        shown = card(telegram, FRIEND)
        assert shown is not None
        program.kill()
        await program.gone()
        await program.start()
        await until(lambda: "I go on" in str(telegram.shown(FRIEND)))
        async with program.client() as client:
            async with asyncio.timeout(20):
                assert [each["status"] for each in (await client.call("question.list"))["questions"]] == ["pending"]
        model.then(Say("blue it is"))
        press(telegram, shown, FRIEND, FRIEND, "Blue")
        await until(lambda: "blue it is" in str(telegram.shown(FRIEND)))
        assert model.requests[-1].body["messages"][-1]["content"] or True
        assert b"Blue" in model.requests[-1].raw


PATCH = {"action": "config.patch", "patch": {"channels": {"telegram": {"enabled": False}}}}


def setting(program: Resident) -> Any:
    return json.loads(program.config_file.read_text())["channels"]["telegram"].get("enabled")


async def test_an_agent_that_cuts_its_own_branch_gets_it_back(tmp_path: Path) -> None:
    more = {"tools": {"gateway": {"confirmSeconds": 10}}}
    async with house(tmp_path, more) as (program, model, telegram):
        model.then(
            Use("tool_call", {"id": "gateway", "args": {"action": "config.patch", "patch": {"tools": {"deny": None}}}}),
            Use("tool_call", {"id": "gateway", "args": PATCH}),
            Say("it will be off"),
        )
        telegram.say(OWNER, "switch yourself off here")
        await until(lambda: card(telegram, OWNER))
        shown = card(telegram, OWNER)
        assert shown is not None
        assert "enabled" in shown["text"]
        assert "Allow always" not in str(shown["reply_markup"]), "it is asked each time"
        assert setting(program) is None
        press(telegram, shown, OWNER, OWNER, "Allow once")
        await until(lambda: setting(program) is False)
        assert "Not for an agent to change: tools.deny" in results(model)[0]
        async with asyncio.timeout(20):
            while setting(program) is False:  # noqa: ASYNC110 - the file is what counts
                await asyncio.sleep(0.1)
        await until(lambda: any("it was taken back" in each for each in telegram.shown(OWNER)))
        await say(telegram, OWNER, "are you there?")


async def test_a_change_stays_when_its_owner_is_heard_again(tmp_path: Path) -> None:
    """Also where the gateway is killed in between."""
    more = {"tools": {"gateway": {"confirmSeconds": 30}}}
    async with house(tmp_path, more) as (program, model, telegram):
        call = {"action": "config.patch", "patch": {"channels": {"telegram": {"textChunkLimit": 900}}}}
        model.then(Use("tool_call", {"id": "gateway", "args": call}), Say("done"))
        telegram.say(OWNER, "shorter messages please")
        await until(lambda: card(telegram, OWNER))
        shown = card(telegram, OWNER)
        assert shown is not None
        press(telegram, shown, OWNER, OWNER, "Allow once")
        await until(lambda: any("was changed" in each for each in telegram.shown(OWNER)))
        trial = program.config_file.with_name("garra.json.trial")
        program.kill()
        await program.gone()
        await program.start()
        await say(telegram, FRIEND, "hello")
        assert trial.exists(), "somebody else is heard"
        await say(telegram, OWNER, "thank you")
        await until(lambda: not trial.exists())
        assert json.loads(program.config_file.read_text())["channels"]["telegram"]["textChunkLimit"] == 900


async def test_an_agreed_restart_begins_the_program_anew_and_says_so(tmp_path: Path) -> None:
    async with house(tmp_path) as (program, model, telegram):
        restart = Use("tool_call", {"id": "gateway", "args": {"action": "restart"}})
        model.then(restart, Say("no"))
        await say(telegram, FRIEND, "begin anew")
        assert "owner's own turns" in results(model)[-1]
        model.then(restart, Say("see you"))
        telegram.say(OWNER, "begin anew")
        await until(lambda: card(telegram, OWNER))
        shown = card(telegram, OWNER)
        assert shown is not None
        assert "Restart the gateway" in shown["text"]
        press(telegram, shown, OWNER, OWNER, "Allow once")
        await until(lambda: any("has begun anew" in each for each in telegram.shown(OWNER)), 20)
        assert any("see you" in each for each in telegram.shown(OWNER))
        assert program.process is not None
        assert program.process.returncode is None, "the same process"
        await say(telegram, OWNER, "are you there?")
        assert program.log().count("ready on port") == 2
        program.process.send_signal(signal.SIGUSR1)
        await until(lambda: program.log().count("ready on port") == 3, 20)


async def test_the_configuration_is_nobody_elses(tmp_path: Path) -> None:
    async with house(tmp_path) as (program, model, telegram):
        model.then(
            Use("tool_call", {"id": "gateway", "args": {"action": "config.get"}}),
            Use("tool_call", {"id": "gateway", "args": PATCH}),
            Say("no"),
        )
        await say(telegram, FRIEND, "show me the settings")
        assert all("owner's own turns" in each for each in results(model))
        model.then(Use("tool_call", {"id": "gateway", "args": {"action": "config.get", "path": "models"}}), Say("so"))
        await say(telegram, OWNER, "and to me?")
        assert "sk-secret-of-the-test" not in results(model)[-1]
        assert "baseUrl" in results(model)[-1]
        assert setting(program) is None


CODING = {
    "read", "write", "edit", "apply_patch", "ls", "find", "grep", "exec", "process", "web_fetch",
    "sessions_list", "sessions_history", "sessions_search", "sessions_send", "sessions_spawn", "sessions_yield",
    "subagents", "session_status", "gateway", "ask_user", "view_image",
    "memory_search", "memory_get",
}  # fmt: skip
"""What of the documented profile is built; the rest of it is no tool here yet."""


@pytest.mark.req("TOOL-08")
async def test_a_profile_offers_exactly_its_tools(tmp_path: Path) -> None:
    profile = {"tools": {"profile": "coding", "toolSearch": False, "web": {"search": {"enabled": False}}}}
    async with strict_model() as model, resident(tmp_path, model.url, profile) as program:
        code, _, err = await program.run("agent", "--message", "hello")
        assert code == 0, err
        assert set(tools(model)) == CODING
        code, out, _ = await program.run("tools", "list", "--json")
        left = {row["name"]: row["decidedBy"] for row in json.loads(out)["tools"] if row["verdict"] == "deny"}
        assert {"message", "agents_list"} <= set(left)
        assert left["message"] == "tools.profile"
        code, out, _ = await program.run("tools", "explain", "automations")
        assert "OpenClaw has one" in out
