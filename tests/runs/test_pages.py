"""A stored conversation is put in order by a new branch; what was there stays."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from garra.core.errors import UserError
from garra.core.messages import Assistant, Message, Text, ToolCall, ToolResult, User
from garra.domains.sessions.store import Sessions
from garra.domains.sessions.transcript import Transcript
from garra.io.store.db import Database
from garra.runs.pages import MOVED, StoredPages
from garra.testing.clock import ManualClock

SAID: tuple[Message, ...] = (
    User((Text("list it"),), 1),
    Assistant((ToolCall("c", "ls", {}),), 2, stop="toolUse"),
    ToolResult("c", "ls", (Text("a very long list"),), 3),
    Assistant((Text("there"),), 4),
    User((Text("thanks"),), 5),
)


@pytest.fixture
async def transcript(tmp_path: Path) -> AsyncIterator[Transcript]:
    db = Database(tmp_path / "state.db")
    names = iter(f"id-{number}" for number in range(100))
    sessions = Sessions(db, tmp_path / "agents", ManualClock(1_796_044_636_255), lambda: next(names))
    await sessions.open()
    await sessions.ensure("agent:main:main", agent_id="main", cwd="/w")
    opened = await sessions.transcript("agent:main:main")
    for message in SAID:
        await opened.append(message)
    yield opened
    await sessions.close()
    await db.close()


@pytest.mark.req("SESS-19")
async def test_a_change_makes_a_branch_and_keeps_what_was(transcript: Transcript) -> None:
    pages, before = StoredPages(transcript), transcript.every()
    rows = dict(pages.rows())
    assert tuple(rows.values()) == SAID
    ids = list(rows)
    shorter = ToolResult("c", "ls", (Text("[short]"),), 3)
    assert await pages.rewrite({ids[2]: shorter}) == 3
    assert transcript.messages() == (*SAID[:2], shorter, *SAID[3:])
    assert transcript.every()[: len(before)] == before
    assert [entry.message for entry in transcript.branch_to(ids[-1]) if entry.message] == list(SAID)
    pages.rows()
    assert await pages.rewrite({}) == 0


async def test_messages_can_be_left_out_and_the_first_can_change(transcript: Transcript) -> None:
    pages = StoredPages(transcript)
    ids = [id_ for id_, _ in pages.rows()]
    first = User((Text("list it, please"),), 1)
    assert await pages.rewrite({ids[0]: first, ids[1]: None, ids[2]: None}) == 3
    assert transcript.messages() == (first, *SAID[3:])


async def test_what_an_entry_says_of_others_it_says_of_those_in_their_place(transcript: Transcript) -> None:
    pages = StoredPages(transcript)
    ids = [id_ for id_, _ in pages.rows()]
    await transcript.note("custom", {"customType": "toy", "data": {"about": [ids[3], 7]}})
    pages.rows()
    await pages.summarise("They listed it.", ids[3])
    assert [message.text for message in transcript.messages()] == ["They listed it.", "there", "thanks"]
    rows = pages.rows()
    await pages.rewrite({rows[1][0]: Assistant((Text("here"),), 4)})
    assert [message.text for message in transcript.messages()] == ["They listed it.", "here", "thanks"]
    noted = [entry for entry in transcript.entries() if entry.body.get("customType") == "toy"][-1]
    assert noted.body["data"]["about"] == [pages.rows()[1][0], 7]


@pytest.mark.req("SESS-19")
async def test_what_is_not_of_this_conversation_or_has_moved_on_is_refused(transcript: Transcript) -> None:
    pages = StoredPages(transcript)
    with pytest.raises(UserError, match=MOVED.split(":")[0]):
        await pages.rewrite({})
    ids = [id_ for id_, _ in pages.rows()]
    with pytest.raises(UserError, match="'nothing' is no message of this conversation"):
        await pages.rewrite({"nothing": None})
    await transcript.append(User((Text("wait"),), 6))
    with pytest.raises(UserError, match="gone on meanwhile"):
        await pages.summarise("It was.", ids[0])
    assert len(transcript.messages()) == 6
