"""`trace.get` and `trace.list`: how single turns went, step by step, in time. No words of a message are in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final

import msgspec

from garra.core import waterfall
from garra.core.errors import NotFound, Unavailable, UserError
from garra.core.trace import Marks
from garra.core.waterfall import Letter, Passed, Span, Told
from garra.gateway.host import Host
from garra.gateway.method import READ, Caller, Method
from garra.gateway.params import Name, Params
from garra.gateway.work import TRACES
from garra.io.store.db import Connection, Database
from garra.runs.recorder import COLUMNS, Kept, Recorder

LETTERS: Final = 200
"""Messages of one turn that are told of."""


class TraceGet(Params, frozen=True):
    """One of both: a run's id, or a message's, or a beginning that only one has."""

    run_id: Name | None = None
    message_id: Name | None = None


class TraceList(Params, frozen=True):
    """The newest runs, of one conversation where `session_key` is given."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=500)] = 50
    session_key: Name | None = None


def _parts(host: Host) -> tuple[Recorder, Database]:
    found = host.more.get(TRACES)
    if found is None:
        raise Unavailable("the gateway is only starting; try again in a moment", retryable=True)
    recorder, db = found
    assert isinstance(recorder, Recorder)
    assert isinstance(db, Database)
    return recorder, db


async def got(host: Host, caller: Caller, params: TraceGet) -> dict[str, Any]:
    if (params.run_id is None) == (params.message_id is None):
        raise UserError("say one of runId and messageId")
    recorder, db = _parts(host)
    wanted = params.message_id or ""
    run_id = str(params.run_id or await db.read(lambda c: _run_of(c, wanted)))
    fresh = next((each for each in recorder.now() if each.run == run_id), None)
    kept = fresh if fresh is not None else await db.read(lambda c: _find(c, run_id))
    runs = (kept.run, kept.led_by) if kept.led_by else (kept.run,)
    posted, passed = await db.read(lambda c: letters(c, runs))
    told = Told(kept.run, kept.session, kept.agent, kept.origin, kept.led_by)
    spans = waterfall.spans(told, kept.marks, posted, passed)
    return {**_row(kept), "spans": [_span(span) for span in spans]}


async def listed(host: Host, caller: Caller, params: TraceList) -> dict[str, Any]:
    recorder, db = _parts(host)
    key = str(host.key(params.session_key)) if params.session_key else ""
    fresh = [each for each in reversed(recorder.now()) if key in ("", each.session)]
    old = await db.read(lambda c: _newest(c, key, params.limit))
    known = {each.run for each in fresh}
    found = [*fresh, *(each for each in old if each.run not in known)]
    found.sort(key=lambda each: each.started, reverse=True)
    return {"ts": host.clock.now_ms(), "traces": [_row(each) for each in found[: params.limit]]}


def _row(kept: Kept) -> dict[str, Any]:
    marks = kept.marks
    usage = [each.usage for each in marks.requests]
    return {
        "runId": kept.run,
        "sessionKey": kept.session,
        "agentId": kept.agent,
        "origin": kept.origin,
        "startMs": kept.started,
        "endMs": kept.ended or None,
        "durationMs": kept.ended - kept.started if kept.ended else None,
        "outcome": kept.ending or "running",
        "failure": marks.failure or None,
        "ledBy": kept.led_by or None,
        "models": list(dict.fromkeys(f"{each.provider}/{each.model}" for each in marks.requests)),
        "modelRequests": len(marks.requests),
        "toolCalls": len(marks.tools),
        "tokens": sum(each.total for each in usage),
        "costUsd": round(sum(each.cost for each in usage), 6),
    }


def _span(span: Span) -> dict[str, Any]:
    return {
        "id": span.id,
        "parent": span.parent or None,
        "name": span.name,
        "kind": span.kind,
        "startMs": span.start_ms,
        "endMs": span.end_ms,
        "attributes": dict(span.attributes),
    }


def _kept(row: Sequence[Any]) -> Kept:
    run, session, agent, origin, started, ended, ending, led_by, body = row
    return Kept(run, session, agent, origin, started, ended, ending, led_by, msgspec.json.decode(body, type=Marks))


def _newest(connection: Connection, key: str, limit: int) -> list[Kept]:
    where, values = (" WHERE session=?", (key, limit)) if key else ("", (limit,))
    query = f"SELECT {COLUMNS} FROM traces{where} ORDER BY seq DESC LIMIT ?"
    return [_kept(row) for row in connection.execute(query, values)]


def _find(connection: Connection, run_id: str) -> Kept:
    query = f"SELECT {COLUMNS} FROM traces WHERE run=? ORDER BY seq DESC LIMIT 1"
    row = connection.execute(query, (run_id,)).fetchone()
    if row is None:
        query = f"SELECT {COLUMNS} FROM traces WHERE substr(run,1,?)=? ORDER BY seq DESC LIMIT 2"
        rows = connection.execute(query, (len(run_id), run_id)).fetchall()
        if len({each[0] for each in rows}) > 1:
            raise UserError(f"{run_id[:80]} could be several runs: say more of it")
        row = rows[0] if rows else None
    if row is None:
        raise NotFound(f"no trace of run {run_id[:80]}: the newest ones are kept; garra trace lists them")
    return _kept(row)


def _run_of(connection: Connection, message: str) -> str:
    """The run that answered a message, or that an answer is of. Raises NotFound."""
    rows = connection.execute(
        "SELECT run_id FROM inbox WHERE substr(id,1,?1)=?2 UNION SELECT coalesce((SELECT run_id FROM inbox WHERE"
        " id=outbox.inbox_id), '') FROM outbox WHERE substr(key,1,?1)=?2 LIMIT 2",
        (len(message), message),
    ).fetchall()
    found = [str(run) for (run,) in rows]
    if len(found) > 1:
        raise UserError(f"{message[:80]} could be several messages: say more of it")
    if not found:
        raise NotFound(f"no such message: {message[:80]}; garra messages list shows them")
    if not found[0]:
        raise NotFound(f"no run answered message {message[:80]}; garra messages show tells its story")
    return found[0]


def letters(connection: Connection, runs: Sequence[str]) -> tuple[list[Letter], list[Passed]]:
    """The messages that these runs answered and their answers, with every station of theirs."""
    marks = ",".join("?" * len(runs))
    into = connection.execute(
        f"SELECT id, channel, state FROM inbox WHERE run_id IN ({marks}) ORDER BY seq LIMIT {LETTERS}", tuple(runs)
    ).fetchall()
    names = [row[0] for row in into]
    inside = ",".join("?" * len(names))
    out = connection.execute(
        f"SELECT key, channel, state FROM outbox WHERE inbox_id IN ({inside}) ORDER BY place LIMIT {LETTERS}", names
    ).fetchall()
    found = [Letter(*_named(row, "in")) for row in into] + [Letter(*_named(row, "out")) for row in out]
    every = [letter.id for letter in found]
    inside = ",".join("?" * len(every))
    query = f"SELECT at, message, station FROM stations WHERE message IN ({inside}) ORDER BY at, seq LIMIT 5000"
    return found, [Passed(*row) for row in connection.execute(query, every)]


def _named(row: Sequence[Any], way: str) -> tuple[Any, ...]:
    return row[0], way, row[1], row[2]


METHODS: tuple[Method, ...] = (
    Method("trace.get", READ, TraceGet, got),
    Method("trace.list", READ, TraceList, listed),
)
