"""The whole program on a real homeserver: invitations, strangers, rooms, threads, restarts, a server that dies."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from garra.builtin.channels.matrix.channel import Matrix
from garra.core.secret import Secret
from garra.io.clock import SystemClock
from garra.io.files.root import Root
from garra.io.http import GuardedHttp
from garra.io.tasks import Tasks
from garra.sdk.channel import Account, File, Inbound, Media, Ports, SendFailed
from garra.testing.channels import Heard, MemoryCursor, outbound
from garra.testing.model_server import Say
from tests.e2e.resident import Resident, StrictModel, resident, strict_model
from tests.e2e.synapse import Person, Synapse

pytestmark = [pytest.mark.e2e, pytest.mark.needs("synapse"), pytest.mark.timeout(240)]
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
async def home(folder: Path, rate: int = 10_000, **channel: Any) -> AsyncIterator[Home]:
    async with AsyncExitStack() as stack:
        server = Synapse(folder / "synapse", rate)
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


@pytest.mark.req("CH-20")
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
        answered = ann.heard
        await ann.until(lambda: all(any(f"message-{n}" in text for text in answered(net.bot.id)) for n in range(4)), 40)
        await asyncio.sleep(2)
        await ann.look()
        for number in range(4):
            told = [text for text in answered(net.bot.id) if f"message-{number}" in text]
            assert len(told) == 1, told


@dataclass
class Alone:
    """The channel without a gateway, on the real server."""

    bot: Person
    ann: Person
    folder: Path
    ports: Ports

    @asynccontextmanager
    async def linked(self, server: Synapse, **own: Any) -> AsyncIterator[tuple[Matrix, Heard]]:
        heard = Heard()
        base = {"homeserver": server.url, "accessToken": Secret(self.bot.token), "encryption": False}
        channel = Matrix(Account("default", {**base, **own}), self.ports)
        link = asyncio.ensure_future(channel.run(heard.receive, heard))
        try:
            await heard.until(lambda h: h.beats > 0)
            yield channel, heard
        finally:
            link.cancel()
            with suppress(asyncio.CancelledError):
                await link


@asynccontextmanager
async def alone(folder: Path) -> AsyncIterator[tuple[Synapse, Alone]]:
    async with AsyncExitStack() as stack:
        server = Synapse(folder / "synapse")
        await server.start()
        stack.push_async_callback(server.kill)
        http, tasks = GuardedHttp(), Tasks()
        stack.push_async_callback(http.close)
        stack.push_async_callback(tasks.close)
        ports = Ports(http, SystemClock(), tasks, MemoryCursor(), Root(folder))
        yield server, Alone(await server.register("garra"), await server.register("ann"), folder, ports)


async def test_what_was_missed_is_fetched_and_what_was_before_is_not(tmp_path: Path) -> None:
    async with alone(tmp_path) as (server, net):
        ann = net.ann
        room = await ann.room(name="a room")
        for number in range(15):
            await ann.tell(room, f"before-{number}")
        async with net.linked(server, autoJoin="always") as (_, heard):
            await ann.ask("POST", f"/rooms/{room}/invite", {"user_id": net.bot.id})
            await ann.tell(room, "since the invitation")
            await ann.entered(room, net.bot.id)
            await ann.tell(room, "now")
            await heard.until(lambda h: "now" in h.said)
            assert [text for text in heard.said if text] == ["since the invitation", "now"]
        for number in range(230):
            await ann.tell(room, f"missed-{number}")
        async with net.linked(server) as (_, heard):
            await heard.until(lambda h: "missed-229" in h.said)
            fresh = [text for text in heard.said if text not in {"", "since the invitation", "now"}]
            assert fresh == [f"missed-{number}" for number in range(230)]


async def test_a_server_that_wants_time_gets_it(tmp_path: Path) -> None:
    async with home(tmp_path, rate=1, dmPolicy="open", allowFrom=["*"], textChunkLimit=100) as net:
        ann, room = net.ann, await net.ann.room(net.bot.id, direct=True)
        await ann.entered(room, net.bot.id)
        words = [f"word{number:03}" for number in range(60)]
        net.model.then(Say(" ".join(words)))
        await ann.tell(room, "tell it all")
        await said(ann, net.bot, "word059")
        told = " ".join(text for text in ann.heard(net.bot.id) if "word" in text)
        assert told.split() == words


async def test_what_a_channel_does_is_seen_by_others(tmp_path: Path) -> None:
    async with alone(tmp_path) as (server, net), net.linked(server) as (channel, heard):
        bot, ann = net.bot, net.ann
        (tmp_path / "a.txt").write_bytes(b"figures")
        address = await channel.open_direct(ann.id)
        await ann.join(address.chat)
        assert (await channel.open_direct(ann.id)).chat == address.chat
        sent = await channel.send(outbound(address, "one"))
        assert await channel.send(outbound(address, "one, again")) == sent
        await channel.edit(sent, outbound(address, "two"))
        file = File("file", "a.txt", "a.txt", "text/plain", 7)
        shown = await channel.send(outbound(address, "", "out:2", files=(file,)))
        taken = await channel.send(outbound(address, "not this", "out:3"))
        await channel.delete(address, taken)
        await channel.delete(address, taken)
        question = await ann.tell(address.chat, "hello")
        await heard.until(lambda h: "hello" in h.said)
        await channel.react(address, question, "👀")
        await channel.react(address, question, "✅")
        await channel.type(address)
        await ann.until(lambda: "m.room.redaction" in str(ann.events[-3:]) and "✅" in str(ann.events))
        by_id = {event["event_id"]: event for _, event in ann.events}
        changed = await ann.ask("GET", f"/rooms/{address.chat}/event/{sent}")
        assert changed["unsigned"]["m.relations"]["m.replace"]["content"]["m.new_content"]["body"] == "two"
        assert by_id[taken]["content"] == {} or "redacted_because" in str(by_id.values())
        url = by_id[shown]["content"]["url"]
        assert b"".join([chunk async for chunk in channel.fetch(Media("file", url), 100)]) == b"figures"
        reactions = [event for _, event in ann.events if event["type"] == "m.reaction" and event["content"]]
        assert {event["content"]["m.relates_to"]["key"] for event in reactions} >= {"✅"}
        await channel.react(address, question, "")
        with pytest.raises(SendFailed) as failed:
            await channel.send(outbound(replace(address, chat="!none:localhost"), "hello", "out:4"))
        assert failed.value.fault == "gone"
        assert {event.sender.id for event in heard.events if isinstance(event, Inbound)} <= {bot.id, ann.id}


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
