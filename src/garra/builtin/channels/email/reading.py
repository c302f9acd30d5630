"""The reading loop: a mail's number is stored only after the mail is."""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import Any

from garra.builtin.channels.email.codec import Place, Read, known, read, root
from garra.builtin.channels.email.letter import BROKEN, Letter
from garra.builtin.channels.email.letter import read as parsed
from garra.builtin.channels.email.mailbox import Facts, Mailbox, Raw
from garra.builtin.channels.email.outgoing import Thread
from garra.builtin.channels.email.settings import Settings
from garra.core.value import frozen
from garra.sdk.channel import Cursor, Ignored, Inbound, Pulse, Receive
from garra.sdk.ports import Clock

REMEMBERED = 1_000
NOTES = 20
READ_S = 20.0
"""So long a mail may take to be read."""
LATE_MS = 7 * 86_400_000
"""A mail may be so much older than its arrival, when a folder is numbered anew."""


@frozen
class Position:
    """The last mail taken: the folder's numbering, its number in it, when it came, and its id."""

    validity: int
    uid: int
    at_ms: int = 0
    id: str = ""

    def text(self) -> str:
        return f"{self.validity}:{self.uid}:{self.at_ms}:{self.id}"


def position(text: str | None) -> Position | None:
    """The stored position; None where there is none, or nonsense."""
    parts = (text or "").split(":", 3)
    if len(parts) != 4 or not all(part.isdecimal() for part in parts[:3]):
        return None
    return Position(int(parts[0]), int(parts[1]), int(parts[2]), parts[3])


class Threads:
    """Subjects and ids of the threads lately heard of, so that answers bear them."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, Thread] = OrderedDict()

    def met(self, letter: Letter) -> None:
        key = root(letter)
        self._known[key] = thread(letter)
        self._known.move_to_end(key)
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)

    def get(self, key: str) -> Thread | None:
        return self._known.get(key)


def thread(letter: Letter) -> Thread:
    return Thread(letter.subject, (*letter.references, letter.id))


class Reader:
    """Reads one folder of an account, run after run."""

    def __init__(self, own: Settings, account: str, cursor: Cursor, clock: Clock) -> None:
        self.own, self.cursor, self.clock = own, cursor, clock
        self.place = Place(account, own.address, own.receivers, own.credulous)
        self.told: set[str] = set()
        self.threads = Threads()

    async def run(self, box: Mailbox, facts: Facts, receive: Receive, pulse: Pulse) -> None:
        """From where it stopped, until cancelled. Raises LinkLost."""
        await _Run(self, box, facts, receive, pulse).run()


@dataclass(slots=True)
class _Run:
    """One connection's reading."""

    reader: Reader
    box: Mailbox
    facts: Facts
    receive: Receive
    pulse: Pulse

    async def run(self) -> None:
        here = await self._begin()
        while True:
            for uid in await asyncio.to_thread(self.box.after, here.uid):
                here = await self._next(here, uid)
            self.pulse.alive()
            if not self.box.more:
                await self._rest()

    async def _begin(self) -> Position:
        """The stored position. Without one, now; after a new numbering, behind what came since."""
        facts, cursor = self.facts, self.reader.cursor
        here = position(await cursor.get())
        if here is not None and here.validity == facts.validity:
            return here
        if here is None:
            at, named = await asyncio.to_thread(self.box.last) if facts.count else (0, "")
            here = Position(facts.validity, facts.next - 1, at, named)
        else:
            self.pulse.note("the folder was numbered anew; what came meanwhile is looked for by its time")
            here = await self._renumbered(here)
        await cursor.set(here.text())
        return here

    async def _renumbered(self, old: Position) -> Position:
        """Take what came since, under its new numbers. The host knows by its id what was there before."""
        here = Position(self.facts.validity, self.facts.next - 1, old.at_ms, old.id)
        for uid in await asyncio.to_thread(self.box.since, old.at_ms):
            raw = await self._mail(uid) if uid <= here.uid else None
            if raw is None:
                continue
            letter, found = await self._read(raw)
            if letter is None or letter.id == old.id or 0 < letter.date_ms < old.at_ms - LATE_MS:
                continue
            await self._store(letter, found)
            here = Position(here.validity, here.uid, max(here.at_ms, raw.at_ms), letter.id)
        return here

    async def _next(self, here: Position, uid: int) -> Position:
        raw = await self._mail(uid)
        if raw is None:
            return here
        letter, found = await self._read(raw)
        await self._store(letter, found)
        here = Position(here.validity, uid, raw.at_ms, letter.id if letter else "")
        await self.reader.cursor.set(here.text())
        if self.reader.own.mark_seen:
            await asyncio.to_thread(self.box.seen, uid)
        self.pulse.alive()
        return here

    async def _mail(self, uid: int) -> Raw | None:
        return await asyncio.to_thread(self.box.mail, uid, self.reader.own.room)

    async def _read(self, raw: Raw) -> tuple[Letter | None, Read]:
        """A mail that takes too long is recorded as such: those behind it do not wait for it."""
        try:
            async with asyncio.timeout(READ_S):
                return await asyncio.to_thread(self._event, raw)
        except TimeoutError:
            return None, Read(Ignored(_unnamed(raw), None, "too-slow"))

    def _event(self, raw: Raw) -> tuple[Letter | None, Read]:
        """Blocks. A mail that cannot be taken apart is recorded as such, so that it stops nothing behind it."""
        reader = self.reader
        try:
            letter = parsed(raw.data, lambda letter: known(letter, reader.place))
            found = read(letter, reader.place, f"{self.facts.validity}.{raw.uid}", reader.clock.now_ms())
        except BROKEN:
            return None, Read(Ignored(_unnamed(raw), None, "malformed"))
        return letter, found if raw.whole else _over(found, raw, reader.own.room)

    async def _store(self, letter: Letter | None, found: Read) -> None:
        told = self.reader.told
        if letter is not None:
            self.reader.threads.met(letter)
        if found.unknown and found.unknown not in told and len(told) < NOTES:
            told.add(found.unknown)
            self.pulse.note(f"a mail was not heard, since its From is not proven: {found.unknown}")
        await self.receive(found.event)

    # ---- waiting

    async def _rest(self) -> None:
        """Until there may be something new."""
        reader, box = self.reader, self.box
        if not self.facts.idles:
            await reader.clock.sleep(reader.own.poll_s)
            await asyncio.to_thread(box.noop)
            return
        until = reader.clock.monotonic() + reader.own.idle_s
        quiet = await asyncio.to_thread(box.idle)
        while quiet and (left := until - reader.clock.monotonic()) > 0:
            told = await asyncio.to_thread(box.told)
            if any(line.endswith((b" EXISTS", b" RECENT")) for line in told):
                break
            if told:
                self.pulse.alive()
            quiet = await _readable(box.socket(), left)
        await asyncio.to_thread(box.awake)
        self.pulse.alive()


def _unnamed(raw: Raw) -> str:
    return f"none-{hashlib.sha256(raw.data).hexdigest()[:40]}"


def _over(found: Read, raw: Raw, room: int) -> Read:
    event = found.event
    if not isinstance(event, Inbound):
        return found
    told = f"this mail has {raw.size / 1e6:.1f} MB; over {room / 1e6:.0f} MB only the beginning is read"
    return replace(found, event=replace(event, text=f"{event.text}\n\n[{told}, and no attachment]", media=()))


async def _readable(sock: Any, wait_s: float) -> bool:
    """Wait until something comes, at most so long. No thread is held meanwhile: there are few of them."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    number = sock.fileno()

    def come() -> None:
        if not ready.done():
            ready.set_result(None)

    loop.add_reader(number, come)
    try:
        async with asyncio.timeout(wait_s):
            await ready
    except TimeoutError:
        return False
    finally:
        loop.remove_reader(number)
    return True
