"""A program that takes messages in, answers and sends them until LAST is answered; tests kill it.

Usage: postman.py FOLDER LAST. `FOLDER/cursor` is what the platform was told, `FOLDER/shown` what is shown in its chats.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from garra.domains.delivery.courier import Courier, Route
from garra.domains.delivery.draft import plain_draft
from garra.domains.delivery.engine import Embedded
from garra.domains.delivery.inbox import Inbox, InboxRow
from garra.domains.delivery.outbox import Outbox
from garra.domains.delivery.pace import Pace
from garra.io.clock import SystemClock
from garra.io.files import atomic
from garra.io.store.db import Database
from garra.io.tasks import Tasks
from garra.sdk.channel import Address, Inbound, Limits, Outbound, Pulse, Receive, Sender

LIMITS = Limits(text=4096, per_second=0)
AGAIN = 3
"""So many updates before the cursor the platform hands over once more."""


class Wire:
    """A platform on the disk: one line a message; it is there before the answer is."""

    limits = LIMITS

    def __init__(self, folder: Path) -> None:
        self._shown = os.open(folder / "shown", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self._count = 0

    async def run(self, receive: Receive, pulse: Pulse) -> None:
        """Everything comes by `take`."""

    async def send(self, message: Outbound) -> str:
        os.write(self._shown, f"{message.key} {message.address.chat} {message.text}\n".encode())
        await asyncio.sleep(0.001)
        self._count += 1
        return f"p{self._count}"


async def take(folder: Path, inbox: Inbox, last: int) -> None:
    """Store each update, then tell the platform, then say so."""
    cursor = folder / "cursor"
    at = int(cursor.read_text()) if cursor.exists() else 0
    for number in range(max(1, at + 1 - AGAIN), last + 1):
        address = Address("wire", "main", f"c{number % 3}", "direct")
        await inbox.accept(Inbound(str(number), "message", address, Sender("u"), str(number)))
        await asyncio.to_thread(atomic.write, cursor, str(number).encode())
        os.write(1, f"{number}\n".encode())


async def answer(engine: Embedded, outbox: Outbox) -> None:
    """What was adopted before is answered first, then what comes."""

    async def put(row: InboxRow) -> None:
        assert isinstance(row.event, Inbound)
        draft = plain_draft(f"out:{row.event.id}", row.event.address, row.event.text)
        await outbox.put([draft], inbox_id=row.id)

    for row in await engine.start():
        await put(row)
    while True:
        job = await engine.next()
        await put(await engine.adopted(job, f"run-{job.row.id}", "agent:main:main"))


async def main(folder: Path, last: int) -> None:
    db, clock = Database(folder / "state.db"), SystemClock()
    inbox, outbox = Inbox(db, clock), Outbox(db, clock)
    async with Tasks() as tasks:
        courier = Courier(Wire(folder), Route("wire", "main", outbox, Pace(LIMITS, clock), clock, tasks))
        engine = Embedded(inbox, clock, tasks)
        tasks(courier.run(), "courier")
        courier.up()
        tasks(answer(engine, outbox), "answers")
        await take(folder, inbox, last)
        open_rows = "SELECT (SELECT count(*) FROM inbox WHERE state<>'done')"
        open_rows += "+(SELECT count(*) FROM outbox WHERE state IN ('pending','sending'))"
        while await db.read(lambda connection: connection.execute(open_rows).fetchone()[0]):
            await clock.sleep(0.01)
    await db.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
