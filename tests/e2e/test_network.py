"""What comes over the wire: clients that vanish, repeat, flood, lie, or ask for more than they may."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import websockets

from garra.gateway import table
from garra.gateway.method import READ, Method
from garra.gateway.server import Gateway
from tests.e2e.outside import house, logged, until
from tests.e2e.resident import TOKEN, Client, Resident, strict_model, words

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(90)]

MIB = 1 << 20


def peak_mib(program: Resident) -> int:
    """The most memory the gateway ever had, in MiB."""
    assert program.process is not None
    status = Path(f"/proc/{program.process.pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) // 1024


def entries(program: Resident) -> list[dict[str, Any]]:
    """Every line of every transcript."""
    files = sorted((program.state / "agents/main/sessions").glob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def said(history: dict[str, Any], role: str) -> list[str]:
    return [words({"message": row}) for row in history["messages"] if row["role"] == role]


async def history(client: Client) -> dict[str, Any]:
    return await client.call("chat.history", {"sessionKey": "agent:main:main", "limit": 200})


# Where it listens


@pytest.mark.req("OV-01")
async def test_it_listens_on_this_machine_alone(tmp_path: Path) -> None:
    async with house(tmp_path) as (program, _):
        assert program.process is not None
        own = {str(link.readlink()) for link in Path(f"/proc/{program.process.pid}/fd").iterdir()}
        heard = []
        for table_of in ("tcp", "tcp6"):
            rows = [line.split() for line in Path(f"/proc/net/{table_of}").read_text().splitlines()[1:]]
            heard += [row[1] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in own]
        port = f"{program.port:04X}"
        assert heard[:1] == [f"0100007F:{port}"]
        assert set(heard[1:]) <= {f"{'0' * 24}01000000:{port}"}
        code, _, err = await program.run("gateway", "run", "--port", "0")
        assert (code, len(err.splitlines())) == (1, 1)


@pytest.mark.parametrize(
    "headers",
    [
        ["Host: evil.example"],
        ["Host: 127.evil.com"],
        ["Host: localhost."],
        ["Host: localhost.evil.example"],
        ["Origin: https://evil.example"],
        ["Origin: null"],
        ["X-Forwarded-For: 127.0.0.1"],
        ["X-Real-IP: 127.0.0.1"],
        ["Forwarded: for=127.0.0.1"],
    ],
    ids=lambda headers: headers[0],
)
async def test_a_request_that_comes_from_elsewhere_is_refused(shared: Resident, headers: list[str]) -> None:
    name = headers[0].partition(":")[0]
    own = [] if name == "Host" else [f"Host: 127.0.0.1:{shared.port}"]
    upgrade = ["Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13"]
    for path, more in (
        ("/healthz", []),
        ("/v1/models", [f"Authorization: Bearer {TOKEN}"]),
        ("/", [*upgrade, "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="]),
    ):
        status, answer = await raw(shared, [f"GET {path} HTTP/1.1", *own, *headers, *more])
        upgraded_page = name == "Origin" and path == "/"
        assert status == (101 if upgraded_page else 403), f"{path} {headers}: {answer!r}"
        assert TOKEN.encode() not in answer


@pytest.fixture
async def shared(tmp_path: Path) -> AsyncIterator[Resident]:
    async with house(tmp_path) as (program, _):
        yield program


async def raw(program: Resident, lines: list[str]) -> tuple[int, bytes]:
    """(status, what came) of a request whose every header is ours to choose."""
    reader, writer = await asyncio.open_connection("127.0.0.1", program.port)
    writer.write("\r\n".join([*lines, "", ""]).encode())
    answer = await asyncio.wait_for(reader.read(4096), 5)
    writer.transport.abort()
    return int(answer.split(b" ")[1]), answer


async def test_a_page_of_someone_else_is_shown_out_whatever_it_says(shared: Resident) -> None:
    url, origin = f"ws://127.0.0.1:{shared.port}/", websockets.Origin("https://evil.example")
    async with websockets.connect(url, origin=origin, compression=None) as connection:
        with pytest.raises(RuntimeError, match="rigin"):
            await Client(connection).connect()


# Clients that vanish


@pytest.mark.req("OV-02", "GW-14")
async def test_a_run_outlives_its_client_and_another_reads_its_result(tmp_path: Path) -> None:
    async with house(tmp_path) as (program, model):
        async with program.client() as client:
            run = await client.send("sleep:1.5")
            await until(lambda: model.asked("sleep:1.5"))
        async with program.client(client=OTHER) as other:
            assert said(await history(other), "assistant") == [], "still running"
            waited = await other.call("agent.wait", {"runId": run, "timeoutMs": 10_000})
            assert waited["status"] == "ok"
            page = await history(other)
            assert (said(page, "user"), said(page, "assistant")) == (["sleep:1.5"], ["slept"])
        async with program.client() as client:
            page = await history(client)
            assert said(page, "assistant") == ["slept"]
            await client.call("health")
            assert not [e for e in client.events if e["event"] in ("chat", "agent")], "nothing old is sent again"


OTHER = {"id": "cli", "version": "1", "platform": "linux", "mode": "cli"}


# The same, many times


@pytest.mark.req("GW-13")
async def test_one_key_from_many_clients_at_once_is_one_run(tmp_path: Path) -> None:
    async with house(tmp_path) as (program, model):
        params = {"sessionKey": "agent:main:main", "message": "only once", "idempotencyKey": "key-1"}

        async def client() -> list[dict[str, Any]]:
            async with program.client() as one:
                return [await one.call("chat.send", params) for _ in range(5)]

        answers = [answer for some in await asyncio.gather(*(client() for _ in range(6))) for answer in some]
        assert {answer["runId"] for answer in answers} == {"key-1"}
        assert [answer["status"] for answer in answers].count("started") == 1
        async with program.client() as one:
            await one.call("agent.wait", {"runId": "key-1", "timeoutMs": 10_000})
            page = await history(one)
            assert (said(page, "user"), len(said(page, "assistant"))) == (["only once"], 1)
            with pytest.raises(RuntimeError, match="INVALID"):
                await one.call("chat.send", {**params, "message": "something else"})
            with pytest.raises(RuntimeError, match="INVALID"):
                await one.call("chat.send", {"sessionKey": "agent:main:main", "message": "no key"})
        assert len(model.requests) == 1


async def test_fifty_messages_at_once_in_one_session_are_all_ended_and_none_is_lost(tmp_path: Path) -> None:
    more = {"messages": {"queue": {"cap": 100}}}
    async with house(tmp_path, **more) as (program, model), program.client() as client:
        runs = await asyncio.gather(*(sent(program, range(first, first + 5)) for first in range(0, 50, 5)))
        for run in (run for some in runs for run in some):
            waited = await client.call("agent.wait", {"runId": run, "timeoutMs": 20_000})
            assert waited["status"] == "ok", waited
        last = await client.say("and now?")
        assert last["state"] == "final"
        asked = json.dumps(model.requests[-1].body["messages"])
        assert [n for n in range(50) if f"number {n:02}" not in asked] == []
        assert not model.refused
        assert len(said(await history(client), "user")) == 51


async def test_more_messages_than_may_wait_are_told_so(tmp_path: Path) -> None:
    more = {"messages": {"queue": {"cap": 2, "mode": "followup", "drop": "new"}}}
    async with house(tmp_path, **more) as (program, model), program.client() as client:
        first = await client.send("sleep:1.5")
        await until(lambda: model.asked("sleep:1.5"))
        runs = [await client.send(f"late {number}") for number in range(5)]
        ends = [(await client.until(run)) for run in (first, *runs)]
        refused = [end for end in ends if end["state"] == "error"]
        assert len(refused) == 3
        assert all("Too many messages wait" in end["errorMessage"] for end in refused)


async def sent(program: Resident, numbers: range) -> list[str]:
    async with program.client() as client:
        return [await client.send(f"number {number:02}") for number in numbers]


async def test_two_local_commands_at_once_share_one_session(tmp_path: Path) -> None:
    async with strict_model() as model:
        program = Resident(tmp_path, model.url)
        texts = ("sleep:0.7 first", "sleep:0.7 second")
        ends = await asyncio.gather(*(program.run("agent", "--local", "-m", text) for text in texts))
        assert [(code, err) for code, _, err in ends] == [(0, ""), (0, "")]
        code, out, _ = await program.run("agent", "--local", "-m", "and a third")
        assert (code, "and a third" in out) == (0, True)
        asked = json.dumps(model.requests[-1].body["messages"])
        assert all(text in asked for text in texts), "both are remembered"
        assert not model.refused
        assert len([entry for entry in entries(program) if entry["type"] == "session"]) == 1


# Told to stop


async def test_sigterm_lets_a_turn_end_and_a_second_one_does_not(tmp_path: Path) -> None:
    async with strict_model() as model:
        program = Resident(tmp_path, model.url)
        await program.start()
        async with program.client() as client:
            await client.send("sleep:1")
            await until(lambda: model.asked("sleep:1"))
            assert await program.stop() == 0
        assert [e["message"]["role"] for e in entries(program) if e["type"] == "message"] == ["user", "assistant"]
        await program.start()
        async with program.client() as client:
            assert said(await history(client), "assistant") == ["slept"]
            await client.send('tool:exec {"command": "sleep 272"}')
            await until(lambda: len(model.asked("sleep 272")) == 1)
            assert program.process is not None
            program.process.send_signal(signal.SIGTERM)
            await asyncio.sleep(0.3)
            program.process.send_signal(signal.SIGTERM)
            assert await asyncio.wait_for(program.process.wait(), 10) == 0
        await program.start()
        async with program.client() as client:
            assert (await client.say("and on"))["state"] == "final"
        assert not model.refused
        assert "Traceback" not in logged(program)
        assert await program.stop() == 0


# Too much


async def test_a_hundred_megabytes_are_refused_within_bounded_memory(tmp_path: Path) -> None:
    async with house(tmp_path) as (program, _):
        before = peak_mib(program)
        piece = b"x" * MIB
        connection = await websockets.connect(f"ws://127.0.0.1:{program.port}/", max_size=None, compression=None)
        await Client(connection).connect()
        with pytest.raises(websockets.ConnectionClosed) as closed:
            await connection.send(b"{" + piece * 100)
            await connection.recv()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1009
        for path in ("/v1/chat/completions", "/tools/invoke", "/no/such/path"):
            assert await flood(program, path, piece) in {0, 404, 413}
        assert peak_mib(program) - before < 80, "nothing of it was kept"
        async with program.client() as client:
            assert (await client.say("alive"))["state"] == "final"


async def flood(program: Resident, path: str, piece: bytes) -> int:
    """The status of a POST of 100 MB in chunks; 0 when the connection was cut before it could be read."""
    reader, writer = await asyncio.open_connection("127.0.0.1", program.port)
    head = [f"POST {path} HTTP/1.1", f"Host: 127.0.0.1:{program.port}", f"Authorization: Bearer {TOKEN}"]
    writer.write("\r\n".join([*head, "Content-Type: application/json", "Transfer-Encoding: chunked", "", ""]).encode())
    try:
        for _ in range(100):
            writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            await writer.drain()
        return int((await asyncio.wait_for(reader.read(200), 10)).split(b" ")[1])
    except (OSError, IndexError):
        return 0
    finally:
        writer.transport.abort()


# More than one may


def rows() -> dict[str, Method]:
    """The table's rows for operators that need no gateway to be listed."""
    bound = " ".join(table.METHODS[module] for module in ("device", "node", "presence")).split()
    every = table.of(cast(Gateway, SimpleNamespace(devices=None)))
    return {row.name: row for row in every if row.name not in bound and row.role == "operator"}


CHANGES = ("set", "patch", "apply", "delete", "remove", "reset", "send", "create", "abort", "approve", "reject",
           "revoke", "rotate", "update", "inject", "invoke", "restart", "compact", "steer", "write", "put")  # fmt: skip


async def test_a_reader_may_read_and_nothing_else(tmp_path: Path) -> None:
    async with house(tmp_path) as (program, model):
        async with program.client() as owner:
            hello = await advertised(program)
            await owner.say("something to read")
        known = await asyncio.to_thread(rows)
        names = sorted({*hello, *known})
        async with program.client(scopes=["operator.read"]) as reader:
            allowed = {name for name in names if await may(reader, name)}
        assert allowed >= {name for name, row in known.items() if row.scope == READ}
        assert not {name for name, row in known.items() if row.scope != READ} & allowed
        assert {name for name in allowed if name.rpartition(".")[2] in CHANGES} <= {"sessions.viewers.set"}
        async with program.client(scopes=[]) as nobody:
            assert not [name for name in names if known.get(name) and await may(nobody, name)]
        assert len(model.requests) == 1


async def advertised(program: Resident) -> list[str]:
    async with websockets.connect(f"ws://127.0.0.1:{program.port}/", compression=None) as connection:
        methods: list[str] = (await Client(connection).connect())["features"]["methods"]
        return methods


async def may(client: Client, name: str) -> bool:
    """Whether the caller's rights reach `name`; asked with parameters that no method takes."""
    try:
        await client.call(name, {"noSuchParameter": 1})
    except RuntimeError as refused:
        error = json.loads(str(refused))
        if error["code"] != "FORBIDDEN":
            return True
        assert error["details"]["code"] == "MISSING_SCOPE", name
        assert error["details"]["requiredScopes"], name
        return False
    return True


async def test_a_changed_token_shows_out_who_came_in_by_the_old_one(tmp_path: Path) -> None:
    async with house(tmp_path) as (program, _):
        async with program.client() as client:
            program.config["gateway"]["auth"]["token"] = "another-token-0123456789"
            program.write()
            with pytest.raises(websockets.ConnectionClosed) as closed:
                async with asyncio.timeout(20):
                    while True:
                        await client.call("health")
                        await asyncio.sleep(0.2)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 4001
        with pytest.raises((RuntimeError, websockets.ConnectionClosed)):
            async with program.client():
                pass
