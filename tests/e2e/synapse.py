"""A real homeserver, and people who sit at it."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from tests.e2e.resident import free_port

SHARED = "a-shared-secret"
SERVER = "localhost"
_CONFIG = """
server_name: "localhost"
pid_file: {folder}/homeserver.pid
listeners:
  - {{port: {port}, bind_addresses: ["127.0.0.1"], tls: false, type: http, x_forwarded: false,
     resources: [{{names: [client], compress: false}}]}}
database: {{name: sqlite3, args: {{database: {folder}/homeserver.db}}}}
log_config: {folder}/log.yaml
media_store_path: {folder}/media
registration_shared_secret: {shared}
signing_key_path: {folder}/signing.key
report_stats: false
macaroon_secret_key: macaroon
form_secret: form
trusted_key_servers: []
suppress_key_server_warning: true
rc_message: {{per_second: {rate}, burst_count: {rate}}}
rc_login: {{address: {free}, account: {free}, failed_attempts: {free}}}
rc_registration: {free}
rc_joins: {{local: {free}, remote: {free}}}
rc_joins_per_room: {free}
rc_invites: {{per_room: {free}, per_user: {free}, per_issuer: {free}}}
"""
_LOG = (
    "version: 1\nformatters: {f: {format: '%(asctime)s %(name)s %(levelname)s %(message)s'}}\n"
    "handlers: {h: {class: logging.FileHandler, formatter: f, filename: FILE}}\nroot: {level: WARNING, handlers: [h]}\n"
)


def python() -> str:
    """The Python that has Synapse."""
    return os.environ.get("GARRA_TEST_SYNAPSE", "")


class Synapse:
    """Synapse on a free port, with its data in `folder`."""

    def __init__(self, folder: Path, rate: int = 10_000) -> None:
        folder.mkdir()
        self.port, self._folder = free_port(), folder
        free = "{per_second: 10000, burst_count: 10000}"
        config = _CONFIG.format(folder=folder, port=self.port, shared=SHARED, rate=rate, free=free)
        (folder / "hs.yaml").write_text(config)
        (folder / "log.yaml").write_text(_LOG.replace("FILE", str(folder / "homeserver.log")))
        self.url = f"http://127.0.0.1:{self.port}"

    async def start(self) -> None:
        words = ["-m", "synapse.app.homeserver", "-c", str(self._folder / "hs.yaml")]
        if not (self._folder / "signing.key").exists():
            made = await asyncio.create_subprocess_exec(python(), *words, "--generate-keys")
            assert await made.wait() == 0
        with (self._folder / "out.log").open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                python(), *words, stdout=log, stderr=log, cwd=self._folder
            )
        async with asyncio.timeout(60):
            while (await request(self.port, "GET", "/health"))[0] != 200:
                assert self._process.returncode is None, (self._folder / "out.log").read_text()[-3000:]
                await asyncio.sleep(0.2)

    async def kill(self) -> None:
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()

    async def register(self, name: str, password: str = "a-long-password") -> Person:
        """A new account, logged in."""
        path = "/_synapse/admin/v1/register"
        _, nonce = await request(self.port, "GET", path)
        parts = [nonce["nonce"], name, password, "notadmin"]
        mac = hmac.new(SHARED.encode(), "\0".join(parts).encode(), hashlib.sha1).hexdigest()
        body = {
            "nonce": nonce["nonce"],
            "username": name,
            "password": password,
            "displayname": name.title(),
            "mac": mac,
        }
        status, found = await request(self.port, "POST", path, body)
        assert status == 200, found
        return Person(self.port, found["user_id"], found["access_token"], found["device_id"])


class Person:
    """Somebody with a client that speaks in clear. `events` is all they were shown, by room."""

    def __init__(self, port: int, user: str, token: str, device: str) -> None:
        self.port, self.id, self.token, self.device = port, user, token, device
        self.events: list[tuple[str, dict[str, Any]]] = []
        self._since, self._next = "", 0

    async def ask(self, method: str, path: str, body: Any = None, query: Mapping[str, Any] | None = None) -> Any:
        """The answer's object; fails the test when it is an error."""
        address = f"/_matrix/client/v3{path}" + (f"?{urlencode(query)}" if query else "")
        status, found = await request(self.port, method, address, body, self.token)
        while status == 429:
            await asyncio.sleep(found["retry_after_ms"] / 1000)
            status, found = await request(self.port, method, address, body, self.token)
        assert status == 200, (status, found, path)
        return found

    async def room(self, *invited: str, direct: bool = False, name: str = "", locked: bool = False) -> str:
        """A new room of this person."""
        body: dict[str, Any] = {"invite": list(invited), "is_direct": direct, "preset": "private_chat"}
        if name:
            body["name"] = name
        if locked:
            state = {"type": "m.room.encryption", "state_key": "", "content": {"algorithm": "m.megolm.v1.aes-sha2"}}
            body["initial_state"] = [state]
        found = await self.ask("POST", "/createRoom", body)
        return str(found["room_id"])

    async def join(self, room: str) -> None:
        await self.ask("POST", f"/join/{quote(room)}", {})

    async def members(self, room: str) -> set[str]:
        return set((await self.ask("GET", f"/rooms/{quote(room)}/joined_members"))["joined"])

    async def entered(self, room: str, who: str) -> None:
        """Wait until somebody is in a room."""
        async with asyncio.timeout(20):
            while who not in await self.members(room):  # noqa: ASYNC110 - it happens in another process
                await asyncio.sleep(0.1)

    async def tell(self, room: str, text: str, **content: Any) -> str:
        return await self.put(room, "m.room.message", {"msgtype": "m.text", "body": text, **content})

    async def put(self, room: str, kind: str, content: Mapping[str, Any]) -> str:
        self._next += 1
        path = f"/rooms/{quote(room)}/send/{kind}/{self.device}-{self._next}"
        return str((await self.ask("PUT", path, content))["event_id"])

    async def upload(self, data: bytes, mime: str) -> str:
        status, found = await request(self.port, "POST", "/_matrix/media/v3/upload", data, self.token, mime)
        assert status == 200, found
        return str(found["content_uri"])

    async def look(self, hold_ms: int = 500) -> dict[str, Any]:
        """Read on once."""
        query = {"timeout": hold_ms} | ({"since": self._since} if self._since else {})
        found: dict[str, Any] = await self.ask("GET", "/sync", query=query)
        self._since = found["next_batch"]
        for room, body in (found.get("rooms") or {}).get("join", {}).items():
            self.events += [(room, event) for event in body["timeline"]["events"]]
        return found

    async def until(self, found: Callable[[], object], timeout_s: float = 20.0) -> None:
        """Read on until something was shown."""
        try:
            async with asyncio.timeout(timeout_s):
                while not found():
                    await self.look()
        except TimeoutError:
            raise AssertionError("\n".join(str(event) for event in self.events[-12:])) from None

    def heard(self, sender: str, room: str = "") -> list[str]:
        """What `sender` said in rooms of this person, edits apart."""
        return [str(one["content"].get("body", "")) for one in self.messages(sender, room) if not _edits(one)]

    def messages(self, sender: str, room: str = "") -> list[dict[str, Any]]:
        return [
            event
            for where, event in self.events
            if event["sender"] == sender and event["type"] == "m.room.message" and room in {"", where}
        ]


def _edits(event: Mapping[str, Any]) -> bool:
    return (event["content"].get("m.relates_to") or {}).get("rel_type") == "m.replace"


async def request(
    port: int, method: str, path: str, body: Any = None, token: str = "", mime: str = "application/json"
) -> tuple[int, Any]:
    """(status, JSON) of one request; status 0 when nobody answers."""
    data = body if isinstance(body, bytes) else (b"" if body is None else json.dumps(body).encode())
    lines = [f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{port}", "Connection: close"]
    lines += [f"Content-Type: {mime}", f"Content-Length: {len(data)}"]
    lines += [f"Authorization: Bearer {token}"] if token else []
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 24)
        writer.write("\r\n".join([*lines, "", ""]).encode() + data)
        answer = await reader.read()
    except OSError:
        return 0, None
    writer.close()
    head, _, rest = answer.partition(b"\r\n\r\n")
    if not head:
        return 0, None
    if b"transfer-encoding: chunked" in head.lower():
        rest = _joined(rest)
    status = int(head.split(b" ")[1])
    return status, json.loads(rest) if rest.startswith(b"{") else rest


def _joined(chunks: bytes) -> bytes:
    whole = b""
    while chunks:
        size, _, chunks = chunks.partition(b"\r\n")
        length = int(size or b"0", 16)
        whole, chunks = whole + chunks[:length], chunks[length + 2 :]
    return whole
