"""Answers about what was said: a page of history, or what is new since a cursor."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated, Any

from msgspec import Meta

from garra.core.ids import SessionKey
from garra.core.transcript import Entry
from garra.gateway.history import CAP, Cursor, Page, Stored, activity, cursor_from, cursor_text, displayed, page
from garra.gateway.host import Host
from garra.gateway.params import Index, Limit, Name, Params
from garra.gateway.rows import defaults

CHARS = 200_000
"""Characters of one text that a page shows when the client does not say."""

TRIES = 3
"""How often a page is made where each time a run of its session ended meanwhile."""


class ChatHistory(Params, frozen=True):
    session_key: Name
    agent_id: Name | None = None
    cursor: str | None = None
    limit: Annotated[int, Meta(ge=1, le=1000)] = 200
    max_bytes: Annotated[int, Meta(ge=1024)] = CAP
    offset: Index = 0
    pending_before: Limit | None = None
    input_run_ids: tuple[Name, ...] = ()
    message_id: Name | None = None
    session_id: Name | None = None
    max_chars: Annotated[int, Meta(ge=1, le=500_000)] = CHARS


async def spoken(host: Host, key: SessionKey) -> tuple[str | None, list[Entry]]:
    """(session id, its message entries); nothing when there is no such session."""
    if await host.sessions.get(key) is None:
        return None, []
    transcript = await host.sessions.transcript(key)
    return transcript.session_id, [entry for entry in transcript.entries() if entry.type == "message"]


async def read(host: Host, params: ChatHistory) -> dict[str, Any]:
    """The answer to `chat.history` and `chat.startup`: never older than the end of a run that was told before it, for
    a client that is told of a run in flight waits for its end."""
    key = host.key(params.session_key, params.agent_id)
    tries = 0
    while True:
        before = host.show.text(key)
        answer = await _read(host, key, params)
        live, tries = host.show.text(key), tries + 1
        if tries == TRIES or before is None or (live and live[0] == before[0]):
            break
    if live:
        run_id, text, started = live
        answer["inFlightRun"] = {"runId": run_id, "text": text, "startedAt": started}
    return answer


async def _read(host: Host, key: SessionKey, params: ChatHistory) -> dict[str, Any]:
    session_id, entries = await spoken(host, key)
    row = await host.row(key)
    common: dict[str, Any] = {"sessionKey": key, "pendingInputs": {"items": [], "total": 0}}
    if row is not None:
        common |= {"sessionId": session_id, "sessionInfo": row}
    if session_id and params.cursor and (news := _since(entries, session_id, params.cursor)) is not None:
        messages = [_news(key, entry, seq, row) for entry, seq in news]
        return {**common, "kind": "delta", "messages": messages, "deltaCursor": _cursor(session_id, entries)}
    offset = _around(entries, params) if params.message_id else params.offset
    got = await asyncio.to_thread(
        page, entries, limit=params.limit, offset=offset, max_bytes=params.max_bytes, chars=params.max_chars
    )
    agent_id = host.agent(params.agent_id) if row is None else str(row["agentId"])
    shown = defaults(host.config, host.models, agent_id)
    return {**common, **_shown(got), **_place(session_id, entries), "defaults": shown}


def _shown(got: Page) -> dict[str, Any]:
    answer: dict[str, Any] = {"messages": got.rows, "hasMore": got.more, "totalMessages": got.total}
    if calls := activity(got.rows):
        answer["activity"] = calls
    if got.more:
        answer["nextOffset"] = got.offset + len(got.rows)
    if got.offset:
        answer["offset"] = got.offset
    return answer


def _place(session_id: str | None, entries: Sequence[Entry]) -> dict[str, Any]:
    return {"deltaCursor": _cursor(session_id, entries)} if session_id and entries else {}


def _cursor(session_id: str, entries: Sequence[Entry]) -> str:
    return cursor_text(Cursor(session_id, len(entries), entries[-1].id if entries else ""))


def _since(entries: Sequence[Entry], session_id: str, text: str) -> list[tuple[Stored, int]] | None:
    """What came after the cursor, with its numbers; None when the cursor is of another past."""
    cursor = cursor_from(text)
    if cursor is None or cursor.session_id != session_id or not 0 <= cursor.last_seq <= len(entries):
        return None
    if cursor.last_seq and entries[cursor.last_seq - 1].id != cursor.last_id:
        return None
    return [(entries[at], at + 1) for at in range(cursor.last_seq, len(entries))]


def _news(key: str, entry: Stored, seq: int, row: dict[str, Any] | None) -> dict[str, Any]:
    message = displayed(entry.body, seq)
    about = {"sessionKey": key, "agentId": row["agentId"] if row else None, "message": message, "messageSeq": seq}
    return {**about, "messageId": message["__openclaw"]["id"], "session": row}


def _around(entries: Sequence[Entry], params: ChatHistory) -> int:
    """The offset of a page with the message in its middle."""
    at = next((at for at, entry in enumerate(entries) if entry.id == params.message_id), None)
    return params.offset if at is None else max(0, len(entries) - at - 1 - params.limit // 2)
