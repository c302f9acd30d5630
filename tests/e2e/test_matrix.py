"""The whole program on a real homeserver: invitations, strangers, rooms, threads, restarts, a server that dies."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from garra.testing.model_server import Say
from tests.e2e.resident import Resident, StrictModel, resident, strict_model
from tests.e2e.synapse import Person, Synapse

pytestmark = [pytest.mark.e2e, pytest.mark.needs("synapse"), pytest.mark.timeout(120)]
CODE = r"\b[A-HJ-NP-Z2-9]{8}\b"


@dataclass
class Home:
    """What a test plays with."""

    server: Synapse
    bot: Person
    ann: Person
    program: Resident
    model: StrictModel


@asynccontextmanager
async def home(folder: Path, **channel: Any) -> AsyncIterator[Home]:
    async with AsyncExitStack() as stack:
        server = Synapse(folder / "synapse")
        await server.start()
        stack.push_async_callback(server.kill)
        bot, ann = await server.register("garra"), await server.register("ann")
        model = await stack.enter_async_context(strict_model())
        own = {"homeserver": server.url, "accessToken": bot.token, "encryption": False, **channel}
        more = {"channels": {"matrix": own}, "messages": {"inbound": {"debounceMs": 0}}}
        program = await stack.enter_async_context(resident(folder, model.url, more))
        yield Home(server, bot, ann, program, model)


async def said(person: Person, bot: Person, words: str, times: int = 1) -> None:
    await person.until(lambda: sum(words in text for text in person.heard(bot.id)) >= times)


async def paired(net: Home, person: Person, room: str) -> None:
    """From a code to an answer."""
    await person.tell(room, "hello")
    await person.until(lambda: re.search(CODE, " ".join(person.heard(net.bot.id))))
    code = re.search(CODE, " ".join(person.heard(net.bot.id)))
    assert code is not None
    done, out, err = await net.program.run("pairing", "approve", "matrix", code[0])
    assert done == 0, out + err


async def test_a_stranger_is_paired_in_a_direct_chat(tmp_path: Path) -> None:
    async with home(tmp_path) as net:
        ann, room = net.ann, await net.ann.room(net.bot.id, direct=True)
        await ann.tell(room, "said before the bot came in")
        await ann.entered(room, net.bot.id)
        await ann.until(lambda: re.search(CODE, " ".join(ann.heard(net.bot.id))))
        assert net.model.requests == []
        await paired(net, ann, room)
        await ann.tell(room, "are you there?")
        await said(ann, net.bot, "are you there?")

        await net.program.stop()
        await ann.tell(room, "said while it was away")
        await net.program.start()
        await said(ann, net.bot, "said while it was away")
        assert len(net.model.asked("are you there?")) >= 1
        assert sum("are you there?" in text for text in ann.heard(net.bot.id)) == 1


async def test_only_invitations_of_use_are_accepted(tmp_path: Path) -> None:
    async with home(tmp_path) as net:
        bob = await net.server.register("bob")
        group = await bob.room(net.bot.id, name="a room")
        direct = await bob.room(net.bot.id, direct=True)
        await bob.entered(direct, net.bot.id)
        await asyncio.sleep(1)
        assert net.bot.id not in await bob.members(group)


async def test_a_room_a_thread_and_a_picture(tmp_path: Path) -> None:
    async with home(
        tmp_path, groupPolicy="allowlist", groupAllowFrom=["@ann:localhost"], autoJoin="always", groups={"*": {}}
    ) as net:
        ann, bob = net.ann, await net.server.register("bob")
        room = await ann.room(net.bot.id, bob.id, name="the room")
        await bob.join(room)
        await ann.entered(room, net.bot.id)
        await ann.tell(room, "nobody is asked")
        await bob.tell(room, "Garra: let me in", **{"m.mentions": {"user_ids": [net.bot.id]}})
        first = await ann.tell(room, "Garra: what now?", **{"m.mentions": {"user_ids": [net.bot.id]}})
        await said(ann, net.bot, "what now?")
        assert not net.model.asked("let me in")

        thread = {"m.relates_to": {"rel_type": "m.thread", "event_id": first}}
        await ann.tell(room, "Garra, in the thread", **thread, **{"m.mentions": {"user_ids": [net.bot.id]}})
        await said(ann, net.bot, "in the thread")
        answer = ann.messages(net.bot.id, room)[-1]
        assert answer["content"]["m.relates_to"]["event_id"] == first

        net.model.then(Say("**bold** and `code`\n\n- one\n- two"))
        await ann.tell(room, "format, please", **{"m.mentions": {"user_ids": [net.bot.id]}})
        await said(ann, net.bot, "bold and code")
        shown = ann.messages(net.bot.id, room)[-1]["content"]
        assert shown["format"] == "org.matrix.custom.html"
        assert "<strong>bold</strong>" in shown["formatted_body"]
        assert "- one\n- two" in shown["body"]


async def test_a_kill_loses_and_doubles_nothing(tmp_path: Path) -> None:
    async with home(tmp_path, dmPolicy="allowlist", allowFrom=["@ann:localhost"]) as net:
        ann, room = net.ann, await net.ann.room(net.bot.id, direct=True)
        await ann.entered(room, net.bot.id)
        await ann.tell(room, "zero")
        await said(ann, net.bot, "zero")
        for number in range(4):
            await ann.tell(room, f"message-{number}")
            await asyncio.sleep(0.15 * number)
            net.program.kill()
            await net.program.gone()
            await net.program.start()
        for number in range(4):
            await ann.until(lambda n=number: net.model.asked(f"message-{n}"), 40)  # type: ignore[misc]
        await said(ann, net.bot, "message-3")
        await asyncio.sleep(1)
        await ann.look()
        ids = [event["event_id"] for event in ann.messages(net.bot.id)]
        assert len(ids) == len(set(ids))


async def test_a_server_that_dies_is_entered_again(tmp_path: Path) -> None:
    async with home(tmp_path, dmPolicy="allowlist", allowFrom=["@ann:localhost"]) as net:
        ann, room = net.ann, await net.ann.room(net.bot.id, direct=True)
        await ann.entered(room, net.bot.id)
        await ann.tell(room, "before")
        await said(ann, net.bot, "before")
        await net.server.kill()
        await asyncio.sleep(1)
        await net.server.start()
        await ann.tell(room, "after")
        await said(ann, net.bot, "after")
        assert sum("after" in text for text in ann.heard(net.bot.id)) == 1
