"""Commands on the machine itself, judged by the running program: what is listed, what is asked, what is remembered."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from garra.testing.model_server import Say, Use
from garra.testing.telegram import TelegramServer
from tests.e2e.outside import until
from tests.e2e.resident import StrictModel, resident, strict_model
from tests.e2e.test_approvals import OWNER, card, press, results

pytestmark = pytest.mark.e2e


def house(telegram: TelegramServer, mode: str = "ask") -> dict[str, Any]:
    bot = {"botToken": telegram.token, "apiRoot": telegram.url, "allowFrom": [OWNER]}
    exec_on_host = {"exec": {"host": "gateway", "mode": mode}}
    return {"tools": exec_on_host, "channels": {"telegram": bot}, "commands": {"ownerAllowFrom": [f"telegram:{OWNER}"]}}


async def turn(model: StrictModel, telegram: TelegramServer, word: str, *calls: Use) -> None:
    """One turn of the owner's, begun: it ends with `word`."""
    model.then(*calls, Say(word))
    telegram.say(OWNER, "go on")


async def ended(telegram: TelegramServer, word: str) -> None:
    await until(lambda: any(word in text for text in telegram.shown(OWNER)), 15)


async def test_listed_commands_run_the_rest_is_asked_and_a_lasting_yes_is_for_just_that(tmp_path: Path) -> None:
    document = {"version": 1, "agents": {"main": {"allowlist": [{"pattern": "echo"}, {"pattern": "cat"}]}}}
    (tmp_path / "approvals.json").write_text(json.dumps(document))
    mark = tmp_path / "made"
    async with (
        strict_model() as model,
        TelegramServer() as telegram,
        resident(tmp_path, model.url, house(telegram)) as program,
    ):
        code, _, err = await program.run("approvals", "set", "--file", str(tmp_path / "approvals.json"))
        assert code == 0, err
        await turn(model, telegram, "one is over", Use("exec", {"command": "echo 'a b' | cat && echo $0 x"}, id="a"))
        await until(lambda: card(telegram, OWNER))
        shown = card(telegram, OWNER)
        assert shown is not None
        assert "it is more than programs with plain arguments: a variable" in shown["text"]
        press(telegram, shown, OWNER, OWNER, "Deny")
        await ended(telegram, "one is over")
        assert "No command was run" in results(model)[-1]

        cards = len(telegram.asked("sendMessage"))
        await turn(model, telegram, "two is over", Use("exec", {"command": "echo 'a b' | cat | wc -w"}, id="b"))
        await ended(telegram, "two is over")
        assert results(model)[-1].strip() == "2"
        assert all(not call.params.get("reply_markup") for call in telegram.asked("sendMessage")[cards:])

        touch = {"command": f"touch {mark}"}
        await turn(model, telegram, "three is over", Use("exec", touch, id="c"))
        await until(lambda: card(telegram, OWNER) is not shown)
        asked = card(telegram, OWNER)
        assert asked is not None
        assert "with exactly these arguments" in asked["text"]
        press(telegram, asked, OWNER, OWNER, "Allow always")
        await ended(telegram, "three is over")
        assert mark.exists()
        mark.unlink()
        await turn(model, telegram, "four is over", Use("exec", touch, id="d"))
        await ended(telegram, "four is over")
        assert mark.exists()
        await turn(model, telegram, "five is over", Use("exec", {"command": f"touch {mark}2"}, id="e"))
        await until(lambda: card(telegram, OWNER) is not asked)
        telegram.say(OWNER, "/deny")
        await ended(telegram, "five is over")
        assert not (tmp_path / "made2").exists()


@pytest.mark.req("TOOL-10")
async def test_after_a_crash_the_agent_finds_what_ran_in_the_background(tmp_path: Path) -> None:
    async with (
        strict_model() as model,
        TelegramServer() as telegram,
        resident(tmp_path, model.url, house(telegram, "full")) as program,
    ):
        (tmp_path / "later.sh").write_text("echo begun; sleep 500\n")
        long = Use("exec", {"command": f"sh {tmp_path}/later.sh", "background": True}, id="a")
        await turn(model, telegram, "it is begun", long)
        await ended(telegram, "it is begun")
        program.kill()
        await program.gone()
        await program.start()
        await turn(model, telegram, "it is back", Use("process", {"action": "list"}, id="b"))
        await ended(telegram, "it is back")
        (line,) = results(model)[-1].splitlines()
        assert "killed" in line
        assert line.endswith("(it ended when the gateway did)")


CALL = """
import sys
from garra.client import quick, target
from garra.config.paths import resolve
from garra.config.peek import peek
from garra.core.errors import GarraError
from garra.io.env import read
env = read(); paths = resolve(env)
where = target.find(paths, env, peek(paths, env), None)
try:
    quick.call(where, "exec.approvals.set", {"file": {"version": 1, "defaults": {"security": "full", "ask": "off"}}},
               scopes=("operator.admin",))
    print("it is set")
except GarraError as fault:
    print("fault:", fault.message)
"""


async def test_an_agent_with_all_of_the_machine_still_does_not_answer_for_its_owner(tmp_path: Path) -> None:
    (tmp_path / "call.py").write_text(CALL)
    free = f"env -i PATH=$PATH HOME={tmp_path} GARRA_STATE_DIR={tmp_path}/state setsid -w {sys.executable}"
    words = f"{free} -m garra approvals allowlist add /usr/bin/id\n{free} {tmp_path}/call.py\necho ENDED\n"
    (tmp_path / "around.sh").write_text(words)
    full = {"tools": {"exec": {"host": "gateway", "mode": "full"}}}
    async with (
        strict_model() as model,
        TelegramServer() as telegram,
        resident(tmp_path, model.url, {**house(telegram), **full}) as program,
    ):
        await turn(model, telegram, "it is over", Use("exec", {"command": f"sh {tmp_path}/around.sh 2>&1"}, id="a"))
        await ended(telegram, "it is over")
        said = results(model)[-1]
        assert "ENDED" in said
        assert said.count("an agent may not answer its own questions") == 2, said
        code, _, err = await program.run("approvals", "allowlist", "add", "/usr/bin/id")
        assert code == 0, err
