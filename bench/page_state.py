"""A state folder with very long lists: so many conversations of so many messages each, and so many in the inbox.

The registry, the inbox and the transcripts' lines are written by the program's own code; each transcript holds the same
words, with facts of its own in its head, its first and its last line.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

from garra.core import transcript
from garra.core.messages import Assistant, Text, Usage, User
from garra.domains.delivery.store import packed
from garra.domains.sessions import rows
from garra.domains.sessions.store import Sessions
from garra.io.clock import SystemClock
from garra.io.store.db import Connection, Database
from garra.sdk.channel import Address, Inbound, Sender

TEXTS = (
    "What did we decide about the build of the small blue house by the river, part {n}?",
    (
        "We keep the roof and move the door to the **east** side, part {n}.\n\n- walls 17,900\n- roof 4,200\n\n"
        "The offer of the joiner is still missing; I ask again on Friday and write it into the list."
    ),
)
STEP_MS = 60_000
DAY_MS = 86_400_000
"""The conversations are as new as this, so that their model calls count as counted already."""

ADDRESS = Address("webchat", "default", "page", "direct")


async def made(state: Path, sessions: int, messages: int, mails: int) -> None:
    """Fill `state`, which nothing runs on."""
    clock = SystemClock()
    db = Database(state / "state.db")
    try:
        store = Sessions(db, state / "agents", clock, _ids())
        body = await asyncio.to_thread(lines, messages, clock.now_ms())
        found = [await store.ensure(f"agent:main:talk-{n:04}", agent_id="main", cwd="/") for n in range(sessions)]
        await asyncio.to_thread(_write, state, found, body)
        now = clock.now_ms()
        told = [
            replace(
                each,
                created_at=now + DAY_MS,
                updated_at=now - at * STEP_MS,
                title=f"The blue house, conversation {at}",
                last_message=f"We keep the roof, conversation {at}.",
                provider="fake",
                model="fake",
            )
            for at, each in enumerate(found)
        ]  # fmt: skip
        await db.write(lambda connection: rows.put(connection, told))
        await db.write(lambda connection: _mails(connection, mails, now))
        await store.close()
    finally:
        await db.close()


def _ids() -> Any:
    count = iter(range(1 << 30))
    return lambda: f"00000000-0000-4000-8000-{next(count):012x}"


def lines(messages: int, now: int) -> bytes:
    """The lines of one conversation, without its head."""
    found, parent = [], None
    for n in range(messages):
        at = now - (messages - n) * 1_000
        said = TEXTS[n % 2].format(n=n)
        answer = Assistant((Text(said),), at, "openai-completions", "fake", "fake", Usage(20, 40))
        message = answer if n % 2 else User((Text(said),), at)
        entry = transcript.message_entry(message, id_=f"m{n:07}", parent=parent, now_ms=at)
        found.append(entry.raw + b"\n")
        parent = entry.id
    return b"".join(found)


def _write(state: Path, found: list[Any], body: bytes) -> None:
    for each in found:
        with (state / "agents" / "main" / "sessions" / f"{each.session_id}.jsonl").open("ab") as file:
            file.write(body)


def _mails(connection: Connection, mails: int, now: int) -> None:
    rows_ = [
        (f"in-{n}", "webchat", "default", "page", "", "message", f"e{n}", "done", now - n * 1_000, now - n * 1_000,
         packed(Inbound(f"e{n}", "message", ADDRESS, Sender("7", "Ines"), f"Message {n}: is there news?")))
        for n in reversed(range(mails))
    ]  # fmt: skip
    connection.executemany(
        "INSERT INTO inbox (id, channel, account, chat, thread, event, event_id, state, received, updated, body)"
        " VALUES (?,?,?,?,?,?,?,?,?,?,?)",
        rows_,
    )
    connection.executemany(
        "INSERT INTO stations (message, at, station) VALUES (?,?,?)",
        [
            (row[0], row[8] + 300 * step, name)
            for row in rows_
            for step, name in enumerate(("received", "model", "sent"))
        ],
    )
