"""A program that talks in sessions for ever, and tells what is on the disk; tests kill it. Usage: talker.py FOLDER"""

from __future__ import annotations

import asyncio
import itertools
import os
import sys
import uuid
from pathlib import Path

from garra.core.messages import Assistant, Text, ToolCall, ToolResult, User
from garra.domains.sessions.store import Sessions
from garra.io.clock import SystemClock
from garra.io.store.db import Database


def tell(*words: str) -> None:
    os.write(1, (" ".join(words) + "\n").encode())


async def talk(sessions: Sessions, key: str) -> None:
    """Turns with a tool call each; now and then a new beginning, a fork, a way back, a deletion."""
    for number in itertools.count(1):
        session = await sessions.ensure(key, agent_id="main", cwd="/")
        transcript = await sessions.transcript(key)
        call = ToolCall(f"call_{number}", "exec", {"command": "true"})
        for message in (
            User((Text(f"{key} {number}"),), number),
            Assistant((Text("I look"), call), number, provider="p", model="m"),
            ToolResult(call.id, "exec", (Text("done"),), number),
            Assistant((Text(f"done {number}"),), number, provider="p", model="m"),
        ):
            entry = await transcript.append(message)
            tell("kept", session.session_id, entry.id)
        if number % 7 == 0:
            await sessions.reset(key)
        elif number % 5 == 0:
            await sessions.fork(key, f"{key}-{number}")
        elif number % 4 == 0:
            await transcript.branch(transcript.entries()[-2].id)
        elif number % 9 == 0:
            tell("deleting", session.session_id)
            await sessions.delete(key)


async def main(folder: Path) -> None:
    db = Database(folder / "state.db")
    sessions = Sessions(db, folder / "agents", SystemClock(), lambda: str(uuid.uuid4()))
    await asyncio.gather(*(talk(sessions, f"agent:main:k{number}") for number in range(4)))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
