"""A turn as a waterfall: asked through the protocol and at the command line, of a gateway that runs."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from garra.testing.model_server import Fail, Say, Use
from tests.e2e.outside import until
from tests.e2e.resident import KEY, Resident, resident, strict_model
from tests.e2e.test_chats import FRIEND, running

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(60)]

SECRET = "the-word-nobody-else-may-read"


async def test_where_the_time_of_a_turn_went(tmp_path: Path) -> None:
    async with strict_model() as model, resident(tmp_path, model.url) as house:
        model.then(Fail(503, "overloaded, later"), Use("read", {"path": "AGENTS.md"}), Say(SECRET))
        async with house.client() as client:
            run_id = await client.send(f"do it, {SECRET}")
            assert (await client.until(run_id))["state"] == "final"
            async with asyncio.timeout(30):
                while not settled(found := await client.call("trace.get", {"runId": run_id})):  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
            newest = await client.call("trace.list")
            by_message = await client.call("trace.get", {"messageId": await message_of(client)})
        kinds = [span["kind"] for span in found["spans"]]
        assert kinds[0] == "turn"
        assert {"inbox", "queue", "context", "model", "tool"} <= set(kinds)
        models = [span["attributes"] for span in found["spans"] if span["kind"] == "model"]
        assert [each["result"] for each in models] == ["overloaded", "success", "success"]
        assert models[1]["level"] != "first"
        assert models[2]["firstTokenMs"] >= 0
        tool = next(span for span in found["spans"] if span["kind"] == "tool")
        assert tool["name"] == "read"
        whole = found["spans"][0]
        assert all(whole["startMs"] <= span["startMs"] <= span["endMs"] <= whole["endMs"] for span in found["spans"])
        assert [row["runId"] for row in newest["traces"]] == [run_id]
        assert by_message["spans"] == found["spans"]
        assert SECRET not in json.dumps(found)
        assert KEY not in json.dumps(found)
        await drawn(house, run_id)
        await house.stop()
        await house.start()
        async with house.client() as client:
            assert (await client.call("trace.get", {"runId": run_id}))["spans"] == found["spans"]
            with pytest.raises(RuntimeError, match="no trace of run"):
                await client.call("trace.get", {"runId": "nobody"})


async def message_of(client: Any) -> str:
    found = await client.call("messages.list")
    return str(found["messages"][0]["id"])


async def drawn(house: Resident, run_id: str) -> None:
    code, out, err = await house.run("trace", run_id, env={"COLUMNS": "80"})
    assert code == 0, err
    assert all(len(line) <= 80 for line in out.splitlines()), out
    assert "fake/fake" in out
    assert "read" in out
    code, out, _ = await house.run("trace")
    assert run_id[:14] in out
    code, out, _ = await house.run("trace", run_id, "--json")
    assert json.loads(out)["runId"] == run_id
    code, _, err = await house.run("trace", "nobody")
    assert code == 1
    assert "nobody" in err


async def test_a_chat_s_turn_from_its_arrival_to_the_platform_s_word(tmp_path: Path) -> None:
    async with running(tmp_path) as (program, model, telegram):
        model.then(Say("It is Paris."))
        telegram.say(FRIEND, "capital of France?")
        await until(lambda: bool(telegram.shown(FRIEND)))
        async with program.client() as client:
            message = await message_of(client)
            async with asyncio.timeout(30):
                while not (sends := [each for each in await spans(client, message) if confirmed(each)]):  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
            found = await spans(client, message)
        names = [each["name"] for each in found]
        order = ["turn", "received", "admitted", "routed", "queued", "context", "fake/fake", "send"]
        assert [name for name in names if name in order] == order
        assert sends[-1]["attributes"]["channel"] == "telegram"
        assert sends[-1]["endMs"] <= found[0]["endMs"]


def settled(found: dict[str, Any]) -> bool:
    """The message is done with too, a moment after its run."""
    return any(span["attributes"].get("state") == "done" for span in found["spans"])


def confirmed(span: dict[str, Any]) -> bool:
    return span["kind"] == "send" and bool(span["attributes"].get("confirmed"))


async def spans(client: Any, message: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await client.call("trace.get", {"messageId": message}))["spans"]
    return found
