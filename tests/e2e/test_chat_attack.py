"""What strangers, a broken platform and a changed bot do to the running program by a chat."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from garra.testing.telegram import Fault, TelegramServer
from tests.e2e.outside import logged, until
from tests.e2e.resident import Resident, StrictModel, resident, strict_model

pytestmark = pytest.mark.e2e

OWNER, GROUP = 42, -100500


@dataclass
class Chat:
    """A gateway with a bot, whose owner is 42."""

    program: Resident
    model: StrictModel
    telegram: TelegramServer

    async def answered(self, server: TelegramServer, text: str) -> None:
        """The owner writes, and is answered."""
        server.say(OWNER, text)
        await until(lambda: any(text in said for said in server.shown(OWNER)))

    def group(self, user: int, text: str, **more: Any) -> None:
        length = len(text.split()[0])
        entity = {"type": "bot_command" if text.startswith("/") else "mention", "offset": 0, "length": length}
        place = {"chat": {"id": GROUP, "type": "supergroup", "title": "G"}, "entities": [entity]}
        self.telegram.push({"message": {**self.telegram.message(user, text), **place, **more}})


@asynccontextmanager
async def chat(root: Path) -> AsyncIterator[Chat]:
    async with strict_model() as model, TelegramServer() as telegram:
        own = {"botToken": telegram.token, "apiRoot": telegram.url, "allowFrom": [str(OWNER)]}
        more = {
            "channels": {"telegram": {**own, "groups": {str(GROUP): {}}}},
            "commands": {"ownerAllowFrom": [f"telegram:{OWNER}"]},
        }
        async with resident(root, model.url, more) as program:
            yield Chat(program, model, telegram)


async def test_strangers_get_a_code_and_nothing_else(tmp_path: Path) -> None:
    async with chat(tmp_path) as here:
        telegram = here.telegram
        for user in range(2000, 2020):
            telegram.say(user, "let me in")
        await until(lambda: telegram.shown(2002))
        code = telegram.shown(2000)[0].split("Pairing code: ")[1][:8]
        for text in (f"/pair {code}", "/stop", "/config", "/approve 1", "/bot-me"):
            telegram.say(2000, text)
        asker = {"id": 2000, "is_bot": False, "first_name": "User42", "username": "user42"}
        pressed = {"id": "q", "from": asker, "data": f"/pair {code}", "message": telegram.message(OWNER, "x")}
        telegram.push({"callback_query": pressed})
        telegram.push({"edited_message": {**telegram.message(2000, f"/pair {code}"), "edit_date": 1}})
        origin = {"type": "user", "sender_user": {"id": OWNER, "first_name": "User42"}}
        telegram.say(2000, "I am 42", forward_origin=origin)
        telegram.push({"message": {**telegram.message(2000, "text id"), "from": {**asker, "id": " 4_2 "}}})
        for user, more in ((666, {}), (OWNER, {"sender_chat": {"id": GROUP, "type": "supergroup", "title": "G"}})):
            for text in ("@garra_bot hi", "/stop", "/config@garra_bot"):
                here.group(user, text, **more)
        await here.answered(telegram, "first words")
        assert [len(telegram.shown(user)) for user in range(2000, 2005)] == [1, 1, 1, 0, 0]
        assert not telegram.shown(GROUP)
        assert len(here.model.requests) == 1


async def test_misshapen_updates_stop_nothing_behind_them(tmp_path: Path) -> None:
    async with chat(tmp_path) as here:
        telegram = here.telegram
        odd: tuple[Any, ...] = ("x", [1], {"id": 10**30}, {"message_id": "y"})
        for body in odd:
            for kind in ("message", "edited_message", "callback_query", "message_reaction", "my_chat_member"):
                telegram.push({kind: body})
        telegram.say(OWNER, "x", entities=[{"type": "mention", "offset": -5, "length": 10**9}], more=10**25)
        await here.answered(telegram, "behind")
        assert "Traceback" not in logged(here.program)


async def test_another_bot_in_the_account_is_heard_from_its_first_message(tmp_path: Path) -> None:
    async with chat(tmp_path) as here, TelegramServer(token="800000:new", username="new_bot", bot=800000) as other:
        for text in ("one", "two"):
            await here.answered(here.telegram, text)
        here.program.config["channels"]["telegram"] |= {"botToken": other.token, "apiRoot": other.url}
        here.program.write()
        await until(lambda: other.asked("getUpdates"))
        for text in ("three", "four"):
            await here.answered(other, text)
        assert json.dumps(here.telegram.shown(OWNER)).count("pong") == 2


async def test_a_token_from_a_file_is_in_no_log(tmp_path: Path) -> None:
    async with strict_model() as model, TelegramServer(token="700000:of-a-file") as telegram:
        (tmp_path / "token").write_text(telegram.token)
        bot = {"tokenFile": str(tmp_path / "token"), "apiRoot": telegram.url, "allowFrom": [OWNER]}
        async with resident(tmp_path, model.url, {"channels": {"telegram": bot}}) as program:
            telegram.say(OWNER, "hello")
            await until(lambda: telegram.shown(OWNER))
            telegram.fail("*", Fault(500, f"bad token {telegram.token}", times=3))
            seen = len(telegram.calls)
            telegram.say(OWNER, "and now?")
            await until(lambda: len(telegram.calls) > seen + 3, 20)
            assert "bad token ***" in logged(program)
            assert telegram.token not in logged(program)


async def test_a_token_that_a_platform_repeats_is_told_and_kept_nowhere(tmp_path: Path) -> None:
    async with chat(tmp_path) as here:
        telegram, program = here.telegram, here.program
        telegram.fail("sendMessage", Fault(400, f"x {telegram.token} y"))
        telegram.say(OWNER, "hello")
        await until(lambda: "was not delivered" in logged(program) or "x *** y" in logged(program))
        shown = (await program.run("messages", "list", "--json"))[1]
        names = [row.get("key") or row["id"] for row in json.loads(shown)["messages"]]
        stories = [(await program.run("messages", "show", name))[1] for name in names]
        assert any("x *** y" in story for story in stories)
        kept = b"".join(file.read_bytes() for file in program.state.glob("state.db*"))
        assert telegram.token not in "".join([shown, logged(program), *stories])
        assert telegram.token.encode() not in kept


async def test_a_strangers_flood_neither_fills_the_disk_nor_reaches_the_owner(tmp_path: Path) -> None:
    async with chat(tmp_path) as here:
        for number in range(3_000):
            here.telegram.say(666, f"spam-{number} " + "x" * 3_000)
        for number in range(3_000):
            here.telegram.say(10_000 + number, "spam-x")
        await here.answered(here.telegram, "the owner")
        query = "SELECT count(*), sum(body LIKE '%spam-%' AND state='done') FROM inbox WHERE channel='telegram'"
        await until(lambda: not _row(here.program.state, "SELECT count(*) FROM inbox WHERE state='pending'")[0])
        stored, readable = _row(here.program.state, query)
        assert (stored <= 201 * 2, readable) == (True, 0)
        assert all("666" not in said for said in here.telegram.shown(OWNER))


def _row(state: Path, query: str) -> Sequence[Any]:
    with closing(sqlite3.connect(f"file:{state / 'state.db'}?mode=ro", uri=True)) as database:
        found: Sequence[Any] = database.execute(query).fetchone()
        return found
