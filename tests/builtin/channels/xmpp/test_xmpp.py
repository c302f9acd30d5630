"""The channel on a real server: rooms, archives, acknowledgements, TLS, files, edits and reactions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, SubElement

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from garra.builtin.channels.xmpp.channel import Xmpp
from garra.core.secret import Secret
from garra.io.clock import SystemClock
from garra.io.files.root import Root
from garra.io.http import GuardedHttp
from garra.io.tasks import Tasks
from garra.sdk.channel import (
    Account,
    Address,
    File,
    Ignored,
    Inbound,
    LinkLost,
    LinkRefused,
    Ports,
    SendFailed,
)
from garra.testing.channels import Heard, MemoryCursor, outbound
from tests.e2e.xmppd import PASSWORD, ROOMS, Person, Prosody, house
from tests.io.test_http_tls import certificate

__all__ = ["certificate"]

pytestmark = pytest.mark.needs("prosody")


def named(folder: Path, host: str) -> Path:
    """A certificate that signs itself, for a name, with its key in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name, today = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "garra test")]), datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(today - timedelta(days=1))
        .not_valid_after(today + timedelta(days=2))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain)
    file = folder / "named.pem"
    file.write_bytes(secret + made.public_bytes(pem))
    return file


BOT, ROOM = "bot@localhost", f"den@{ROOMS}"


class Town:
    """A server with a bot's account, and people."""

    def __init__(self, server: Prosody, http: GuardedHttp, tasks: Tasks) -> None:
        self.server, self.http, self.tasks = server, http, tasks
        self.people: list[Person] = []
        self.more: dict[str, Any] = {}

    async def person(self, user: str, *rooms: str, nick: str = "") -> Person:
        self.people.append(await Person(self.server.port, user).enter(*rooms, nick=nick))
        return self.people[-1]

    def bot(self, cursor: MemoryCursor, **ports: Any) -> Xmpp:
        own = {"jid": BOT, "password": Secret(PASSWORD), "host": "127.0.0.1", "port": self.server.port}
        own |= {"security": "none", "nick": "garra", **self.more}
        door = Ports(self.http, SystemClock(), self.tasks, cursor, dial=self.http, **ports)
        return Xmpp(Account("default", own), door)


@asynccontextmanager
async def town(**how: Any) -> AsyncIterator[Town]:
    http = GuardedHttp()
    with house() as folder:
        server = Prosody(folder, "bot", "ann", "bob", **how)
        await server.start()
        async with Tasks() as tasks:
            place = Town(server, http, tasks)
            try:
                yield place
            finally:
                for person in place.people:
                    await person.close()
        await server.stop()
    await http.close()


@asynccontextmanager
async def link(channel: Xmpp, heard: Heard) -> AsyncIterator[None]:
    task = asyncio.ensure_future(channel.run(heard.receive, heard))
    try:
        await heard.until(lambda h: h.me is not None or task.done())
        await asyncio.sleep(0.1)
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError, LinkLost):
            await task


def group(text: str = ROOM) -> Address:
    return Address("xmpp", "default", text, "group")


async def test_in_a_room_it_knows_real_addresses_and_hears_what_it_missed_once() -> None:
    async with town() as place:
        place.more["rooms"] = [ROOM]
        ann = await place.person("ann", ROOM, nick="Anna")
        heard, cursor = Heard(), MemoryCursor()
        async with link(place.bot(cursor), heard):
            ann.tell(ROOM, "garra: hello")
            await heard.until(lambda h: h.said == ["hello"])
        event = heard.events[-1]
        assert isinstance(event, Inbound)
        assert (event.sender.id, event.sender.name, event.address.kind) == ("ann@localhost", "Anna", "group")
        assert event.mentioned
        ann.tell(ROOM, "garra: while you were away")
        await asyncio.sleep(0.3)
        again = Heard()
        async with link(place.bot(cursor), again):
            await again.until(lambda h: h.said == ["while you were away"])
            ann.tell(ROOM, "nobody is meant")
            await again.until(lambda h: len(h.said) == 2)
        missed = again.events[0]
        assert isinstance(missed, Inbound)
        assert missed.sender.id == "ann@localhost"
        last = again.events[-1]
        assert isinstance(last, Inbound)
        assert not last.mentioned


async def test_a_room_it_was_the_first_to_enter_is_remembered_as_well() -> None:
    async with town() as place:
        place.more["rooms"] = [f"{ROOM} "]
        heard, cursor = Heard(), MemoryCursor()
        async with link(place.bot(cursor), heard):
            ann = await place.person("ann", ROOM)
            ann.tell(ROOM, "garra: hello")
            await heard.until(lambda h: h.said == ["hello"])
        ann.tell(ROOM, "garra: alone")
        again = Heard()
        async with link(place.bot(cursor), again):
            await again.until(lambda h: bool(h.said))
        assert again.said == ["alone"]


async def test_where_a_room_hides_people_they_are_known_by_its_marks() -> None:
    async with town(public=False) as place:
        ann = await place.person("ann", ROOM)
        bob = await place.person("bob", ROOM, nick="first")
        place.more["rooms"] = [ROOM]
        heard = Heard()
        async with link(place.bot(MemoryCursor()), heard):
            bob.tell(ROOM, "garra: one")
            await heard.until(lambda h: h.said == ["one"])
            bob.client.send_presence(pto=f"{ROOM}/second")
            await asyncio.sleep(0.2)
            bob.tell(ROOM, "garra: two")
            ann.tell(ROOM, "garra: three")
            await heard.until(lambda h: sorted(h.said) == ["one", "three", "two"])
        one, two, three = sorted(
            (event for event in heard.events if isinstance(event, Inbound)),
            key=lambda event: ["one", "two", "three"].index(event.text),
        )
        assert one.sender.id == two.sender.id
        assert one.sender.id.startswith(f"{ROOM}/occupant-id:")
        assert three.sender.id != one.sender.id


async def test_its_own_message_in_a_room_confirms_itself_and_is_its_own() -> None:
    async with town() as place:
        place.more["rooms"] = [ROOM]
        ann = await place.person("ann", ROOM)
        heard = Heard()
        channel = place.bot(MemoryCursor())
        async with link(channel, heard):
            known = await channel.send(outbound(group(), "hi all"))
            await heard.until(lambda h: h.said == ["hi all"])
            own = heard.events[-1]
            assert isinstance(own, Inbound)
            assert own.own
            assert own.id == known
            await channel.edit(known, outbound(group(), "hi everybody"))
            await channel.react(group(), known, "👍")
            await channel.type(group())
            with pytest.raises(SendFailed) as failed:
                await channel.send(outbound(group(f"other@{ROOMS}"), "hi"))
            assert failed.value.fault == "gone"
            await ann.until(lambda p: "hi everybody" in p.said(f"{ROOM}/garra"))
        replaced = [stanza.xml.find("{urn:xmpp:message-correct:0}replace") for stanza in ann.stanzas]
        assert known.split(" ")[0] in [one.get("id") for one in replaced if one is not None]
        with pytest.raises(SendFailed) as failed:
            await channel.send(outbound(group(), "too late"))
        assert failed.value.fault == "passing"


async def test_replies_reactions_corrections_and_what_cannot_be_read() -> None:
    async with town() as place:
        ann = await place.person("ann")
        heard = Heard()
        channel = place.bot(MemoryCursor())
        async with link(channel, heard):
            known = await channel.send(outbound(Address("xmpp", "default", "ann@localhost", "direct"), "which one?"))
            ann.tell(BOT, "this one", id="m1", payloads=[Element("{urn:xmpp:reply:0}reply", {"id": known, "to": BOT})])
            shown = Element("{urn:xmpp:reactions:0}reactions", {"id": known})
            SubElement(shown, "{urn:xmpp:reactions:0}reaction").text = "👍"
            ann.tell(BOT, "", id="m2", payloads=[shown])
            ann.tell(BOT, "that one", id="m3", payloads=[Element("{urn:xmpp:message-correct:0}replace", {"id": "m1"})])
            sealed = Element("{eu.siacs.conversations.axolotl}encrypted")
            ann.tell(BOT, "[OMEMO encrypted]", id="m4", payloads=[sealed])
            await heard.until(lambda h: len(h.events) >= 4)
        events = [event for event in heard.events if isinstance(event, Inbound)]
        assert [(event.event, event.text, event.data) for event in events] == [
            ("message", "this one", ""),
            ("reaction", "", "👍"),
            ("edit", "that one", "m1"),
        ]
        assert events[0].reply_to == events[1].reply_to == known
        sealed_event = heard.events[-1]
        assert isinstance(sealed_event, Ignored)
        assert sealed_event.reason == "encrypted"
        assert any("OMEMO" in note for note in heard.notes)


async def test_a_crash_between_arrival_and_storage_loses_nothing() -> None:
    """The server is told only of what is stored, and the archive's mark moves only then."""

    def refuse(event: Inbound | Ignored) -> None:
        if isinstance(event, Inbound) and event.text == "second":
            raise OSError("disk full")

    async with town() as place:
        ann = await place.person("ann")
        heard, cursor = Heard(before=refuse), MemoryCursor()
        channel = place.bot(cursor)
        task = asyncio.ensure_future(channel.run(heard.receive, heard))
        await heard.until(lambda h: h.me is not None)
        await asyncio.sleep(0.1)
        for text in ("first", "second", "third"):
            ann.tell(BOT, text)
        with pytest.raises(OSError):
            await asyncio.wait_for(task, 10)
        again = Heard()
        async with link(place.bot(cursor), again):
            await again.until(lambda h: h.said == ["second", "third"])


async def test_an_archive_that_has_forgotten_our_mark_is_read_by_time() -> None:
    async with town() as place:
        ann = await place.person("ann")
        heard, cursor = Heard(), MemoryCursor()
        async with link(place.bot(cursor), heard):
            ann.tell(BOT, "first")
            await heard.until(lambda h: h.said == ["first"])
        assert cursor.value is not None
        known = cursor.value
        ann.tell(BOT, "second")
        await asyncio.sleep(0.3)
        first = heard.events[0].id.split(" ")[1]
        cursor.value = known.replace(first, "forgotten")
        again = Heard()
        async with link(place.bot(cursor), again):
            await again.until(lambda h: "second" in h.said)
        cursor.value = '{"bot@localhost":["forgotten",""]}'
        third = Heard()
        async with link(place.bot(cursor), third):
            await third.until(lambda h: any("cannot be read" in note for note in h.notes))
            ann.tell(BOT, "third")
            await third.until(lambda h: "third" in h.said)


async def test_a_long_absence_is_read_in_pages() -> None:
    async with town() as place:
        ann = await place.person("ann")
        heard, cursor = Heard(), MemoryCursor()
        async with link(place.bot(cursor), heard):
            ann.tell(BOT, "before")
            await heard.until(lambda h: h.said == ["before"])
        for number in range(130):
            ann.tell(BOT, f"m{number}")
        await asyncio.sleep(1)
        again = Heard()
        async with link(place.bot(cursor), again):
            await again.until(lambda h: len(h.said) >= 130)
        once = {event.id: event.text for event in again.events if isinstance(event, Inbound)}
        assert list(once.values()) == [f"m{number}" for number in range(130)]


async def test_files_both_ways(tmp_path: Path) -> None:
    data = bytes(range(256)) * 2000
    (tmp_path / "a.png").write_bytes(data)
    async with town() as place:
        ann = await place.person("ann")
        heard = Heard()
        channel = place.bot(MemoryCursor(), media=Root(str(tmp_path)))
        async with link(channel, heard):
            to = Address("xmpp", "default", "ann@localhost", "direct")
            file = File("image", "a.png", "a b.png", "image/png", len(data))
            await channel.send(outbound(to, "look", files=(file,)))
            await ann.until(lambda p: len(p.heard) == 2)
            url = ann.heard[1][2]
            assert ann.heard[0][2] == "look"
            oob = Element("{jabber:x:oob}x")
            SubElement(oob, "{jabber:x:oob}url").text = url
            ann.tell(BOT, url, payloads=[oob])
            await heard.until(lambda h: any(isinstance(event, Inbound) for event in h.events))
            event = heard.events[-1]
            assert isinstance(event, Inbound)
            assert event.text == ""
            media = event.media[0]
            assert media.kind == "image"
            assert b"".join([chunk async for chunk in channel.fetch(media, 1 << 20)]) == data
            with pytest.raises(SendFailed) as failed:
                _ = [chunk async for chunk in channel.fetch(media, 1000)]
            assert failed.value.fault == "too_large"
        guarded = GuardedHttp(guard=True)
        closed = place.bot(MemoryCursor(), public=guarded)
        with pytest.raises(SendFailed, match="not a public address"):
            _ = [chunk async for chunk in closed.fetch(media, 1 << 20)]
        await guarded.close()


async def test_tls_is_required_and_checked_for_the_address_not_the_host(certificate: Path) -> None:
    async with town(tls=certificate) as place:
        heard = Heard()
        place.more |= {"security": "starttls", "jid": "bot@localhost"}
        with pytest.raises(LinkLost, match=r"(?i)certificate"):
            await place.bot(MemoryCursor()).run(heard.receive, heard)
        place.more |= {"caFile": str(certificate)}
        with pytest.raises(
            LinkLost, match=r"(?i)certificate"
        ):  # it is one for 127.0.0.1, and the address is of localhost
            await place.bot(MemoryCursor()).run(heard.receive, heard)
    async with town() as place:
        place.more["security"] = "starttls"
        with pytest.raises(LinkRefused, match="no safe way"):
            await place.bot(MemoryCursor()).run(heard.receive, heard)


async def test_over_tls_agreed_midway_and_at_once(tmp_path: Path) -> None:
    pem = await asyncio.to_thread(named, tmp_path, "localhost")
    async with town(tls=pem) as place:
        for security, port in (("starttls", place.server.port), ("tls", place.server.secure)):
            place.more = {"security": security, "port": port, "caFile": str(pem)}
            heard = Heard()
            async with link(place.bot(MemoryCursor()), heard):
                assert heard.me is not None


async def test_what_is_missing_is_said() -> None:
    async with town() as place:
        heard = Heard()
        for own, words in (({"jid": "bot"}, "address"), ({"password": Secret("")}, "password")):
            place.more = own
            with pytest.raises(LinkRefused, match=words):
                await place.bot(MemoryCursor()).run(heard.receive, heard)
        place.more = {"rooms": ["nowhere@elsewhere.invalid"]}
        channel = place.bot(MemoryCursor())
        async with link(channel, heard):
            assert any("cannot be entered" in note for note in heard.notes)
            assert channel.inspect()["archive"] is True
            with pytest.raises(SendFailed) as failed:
                await channel.send(outbound(Address("xmpp", "default", "no address", "direct"), "x"))
            assert failed.value.fault == "refused"
            with pytest.raises(SendFailed):
                await channel.send(outbound(Address("xmpp", "default", "ann@localhost", "direct"), " "))
        assert (await channel.open_direct("Ann@LocalHost/phone")).chat == "ann@localhost"
