"""A sandboxed command of the running program reaches a host that is listed, and asks about one that is not."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from garra.testing.model_server import Say, Use
from tests.e2e.resident import Client, StrictModel, resident, strict_model, words

pytestmark = [pytest.mark.e2e, pytest.mark.needs("bwrap")]

APPROVER = {
    "scopes": ["operator.admin", "operator.read", "operator.write", "operator.approvals"],
    "caps": ["exec-approvals", "plugin-approvals"],
}


async def hello(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\nConnection: close\r\n\r\nhello there")
    await writer.drain()
    writer.close()


def results(model: StrictModel) -> list[str]:
    said = model.requests[-1].body["messages"]
    return [str(message["content"]) for message in said if message["role"] == "tool"]


async def waiting(person: Client) -> list[Any]:
    return [row for name in ("exec", "plugin") for row in await person.call(f"{name}.approval.list")]


async def asked(person: Client) -> dict[str, Any]:
    """The question that waits."""
    async with asyncio.timeout(15):
        while not (found := await waiting(person)):  # noqa: ASYNC110 - it asks over the wire
            await asyncio.sleep(0.02)
    row: dict[str, Any] = found[0]
    return row


async def test_a_listed_host_is_reached_and_another_is_asked_about_once(tmp_path: Path) -> None:
    site = await asyncio.start_server(hello, "127.0.0.1", 0)
    port = site.sockets[0].getsockname()[1]
    sandbox = {"egress": {"allow": [f"127.0.0.1:{port}"]}}
    more = {"agents": {"defaults": {"model": {"primary": "fake/fake"}, "sandbox": sandbox}}}
    async with (
        strict_model() as model,
        resident(tmp_path, model.url, more) as program,
        program.client() as client,
        program.client(**APPROVER) as person,
    ):
        other = "curl -sS -m 9 http://blocked.example/"
        model.then(Use("exec", {"command": other}), Say("one"))
        run = await client.send("fetch it")
        question = await asked(person)
        assert "blocked.example" in str(question)
        kind = question["approvalKind"]
        await person.call("approval.resolve", {"id": question["id"], "kind": kind, "decision": "allow-always"})
        assert words(await client.until(run)) == "one"
        assert "blocked.example was refused" in results(model)[-1]
        assert "The owner has allowed it: run the command again" in results(model)[-1]

        model.then(Use("exec", {"command": other}), Say("two"))
        await client.say("again")
        assert "was refused" not in results(model)[-1]
        assert not await waiting(person)

        own = f"curl -sS -m 9 -x $http_proxy --noproxy '' http://127.0.0.1:{port}/"
        model.then(Use("exec", {"command": own}), Say("three"))
        await client.say("now the other")
        assert "hello there" in results(model)[-1]
    site.close()
