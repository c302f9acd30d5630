"""The whole program in encrypted rooms of a real homeserver: both ways, over restarts, and what cannot be read."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import stat
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

pytest.importorskip("nio")

from garra.testing.model_dialects import Say, Use
from tests.e2e.outside import logged
from tests.e2e.resident import Resident, StrictModel, resident, strict_model
from tests.e2e.sealed import Sealed
from tests.e2e.synapse import Person, Synapse

pytestmark = [pytest.mark.e2e, pytest.mark.needs("synapse"), pytest.mark.timeout(240)]
CODE = r"\b[A-HJ-NP-Z2-9]{8}\b"


@dataclass
class Home:
    """What a test plays with."""

    server: Synapse
    bot: Person
    ann: Sealed
    program: Resident
    model: StrictModel
    folder: Path


@asynccontextmanager
async def home(folder: Path, **channel: Any) -> AsyncIterator[Home]:
    async with AsyncExitStack() as stack:
        server = Synapse(folder / "synapse")
        await server.start()
        stack.push_async_callback(server.kill)
        bot = await server.register("garra")
        ann = Sealed(await server.register("ann"), folder / "ann")
        stack.push_async_callback(ann.close)
        await ann.enter()
        model = await stack.enter_async_context(strict_model())
        login = {"userId": bot.id, "password": "a-long-password", "deviceName": "Garra"}
        more = {
            "channels": {"matrix": {"homeserver": server.url, **login, **channel}},
            "messages": {"inbound": {"debounceMs": 0}},
        }
        program = await stack.enter_async_context(resident(folder, model.url, more))
        yield Home(server, bot, ann, program, model, folder)


async def room_of(net: Home) -> str:
    room = await net.ann.person.room(net.bot.id, direct=True, locked=True)
    await net.ann.person.entered(room, net.bot.id)
    return room


async def test_a_stranger_is_paired_and_answered_in_secret(tmp_path: Path) -> None:
    async with home(tmp_path) as net:
        ann, room = net.ann, await room_of(net)
        await ann.tell(room, "hello")
        await ann.until(lambda: re.search(CODE, " ".join(ann.texts(net.bot.id))))
        assert net.model.requests == []
        code = re.search(CODE, " ".join(ann.texts(net.bot.id)))
        assert code is not None
        done, out, err = await net.program.run("pairing", "approve", "matrix", code[0])
        assert done == 0, out + err
        await ann.tell(room, "are you there?")
        await ann.said(net.bot.id, "are you there?")
        assert all(event.decrypted for _, event in ann.heard if event.sender == net.bot.id)

        await signed(net)
        folder = net.program.state / "channels" / "matrix" / "default"
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        before = sorted(file.name for file in folder.glob("*.db"))
        await net.program.stop()
        await ann.tell(room, "said while it was away")
        await net.program.start()
        await ann.said(net.bot.id, "said while it was away")
        assert sorted(file.name for file in folder.glob("*.db")) == before
        assert "a-long-password" not in logged(net.program)


async def signed(net: Home) -> None:
    """Ann's server shows that the bot's login is signed by the bot's account."""
    found = await net.ann.person.ask("POST", "/keys/query", {"device_keys": {net.bot.id: []}})
    (own,) = found["self_signing_keys"][net.bot.id]["keys"].values()
    (master,) = found["master_keys"][net.bot.id]["keys"].values()
    for value, signer in ((found["self_signing_keys"][net.bot.id], master), (bots_device(net, found), own)):
        bare = {name: part for name, part in value.items() if name not in {"signatures", "unsigned"}}
        text = json.dumps(bare, ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode()
        signature = value["signatures"][net.bot.id][f"ed25519:{signer}"]
        Ed25519PublicKey.from_public_bytes(base64.b64decode(signer + "==")).verify(
            base64.b64decode(signature + "=="), text
        )


def bots_device(net: Home, found: Any) -> Any:
    """The one that has keys: the gateway's."""
    (device,) = found["device_keys"][net.bot.id].values()
    return device


async def test_a_kill_loses_no_key(tmp_path: Path) -> None:
    async with home(tmp_path, dmPolicy="allowlist", allowFrom=["@ann:localhost"]) as net:
        ann, room = net.ann, await room_of(net)
        for number in range(5):
            ann.client.invalidate_outbound_session(room)  # a new key each time
            await ann.tell(room, f"message-{number}")
            await asyncio.sleep(0.1 * number)
            net.program.kill()
            await net.program.gone()
            await net.program.start()
        for number in range(5):
            await ann.until(lambda n=number: net.model.asked(f"message-{n}"), 40)  # type: ignore[misc]
        await ann.said(net.bot.id, "message-4")
        assert ann.locked == []


async def test_what_cannot_be_read_is_told_and_read_when_its_key_comes(tmp_path: Path) -> None:
    async with home(tmp_path, dmPolicy="allowlist", allowFrom=["@ann:localhost"]) as net:
        ann, room = net.ann, await room_of(net)
        await ann.tell(room, "first")
        await ann.said(net.bot.id, "first")
        ann.client.invalidate_outbound_session(room)
        held = hold_keys(ann)
        await ann.tell(room, "without its key")
        await asyncio.sleep(2)
        assert "cannot be read: its key has not come" in logged(net.program)
        assert not net.model.asked("without its key")
        await net.program.stop()
        await net.program.start()
        for kind, content in held:
            await ann.client.to_device_raw(kind, content)
        await ann.said(net.bot.id, "without its key")


async def test_files_both_ways(tmp_path: Path) -> None:
    async with home(tmp_path, dmPolicy="allowlist", allowFrom=["@ann:localhost"]) as net:
        ann, room = net.ann, await room_of(net)
        await ann.tell(room, "first")
        await ann.said(net.bot.id, "first")
        await ann.show(room, b"the secret figures: 42", "figures.txt", "text/plain")
        await ann.until(lambda: net.model.asked("figures.txt"))
        stored = [file.read_bytes() for file in (net.program.state / "media").rglob("*") if file.is_file()]
        assert b"the secret figures: 42" in stored

        (tmp_path / "answer.txt").write_bytes(b"the secret answer: 43")
        to = ("--to", f"matrix:{room}", "--media", str(tmp_path / "answer.txt"))
        done, out, err = await net.program.run("message", "send", *to, "--message", "here it is")
        assert done == 0, out + err
        await ann.said(net.bot.id, "here it is")
        sent = [event.source["content"] for _, event in ann.heard if event.source["content"].get("file")]
        assert await ann.opened(sent[-1]) == b"the secret answer: 43"


async def test_an_answer_grows_in_secret(tmp_path: Path) -> None:
    own: dict[str, Any] = {"dmPolicy": "allowlist", "allowFrom": ["@ann:localhost"], "streaming": {"mode": "partial"}}
    async with home(tmp_path, **own) as net:
        ann, room = net.ann, await room_of(net)
        before = "First I look at what is there in this folder, which takes a moment."
        net.model.then(Use("read", {"path": "none.txt"}, text=before), Say("There is nothing.", delay_s=4))
        await ann.tell(room, "what is there?")
        await ann.until(lambda: any("First I look" in text for text in ann.texts(net.bot.id)))
        await ann.until(lambda: any("There is nothing." in text for text in ann.texts(net.bot.id)))
        shown = [event for _, event in ann.heard if event.sender == net.bot.id]
        assert all(event.decrypted for event in shown)
        edits = [event.source["content"].get("m.relates_to", {}).get("event_id") for event in shown]
        assert shown[0].event_id in edits


def hold_keys(person: Sealed) -> list[tuple[str, Any]]:
    """From now on the keys a client gives away are kept back, until it is told to send them raw."""
    held: list[tuple[str, Any]] = []
    client = person.client
    send = client._send

    async def held_back(kind: Any, method: str, path: str, data: Any = None, *more: Any, **named: Any) -> Any:
        if "/sendToDevice/m.room.encrypted" in path and not client.letting:
            held.append(("m.room.encrypted", data))
            path = path.replace("m.room.encrypted", "org.example.nothing")
        return await send(kind, method, path, data, *more, **named)

    async def raw(kind: str, content: Any) -> None:
        await person.person.ask("PUT", f"/sendToDevice/{kind}/raw-{len(content)}", json.loads(content))

    client.letting, client._send, client.to_device_raw = False, held_back, raw
    return held
