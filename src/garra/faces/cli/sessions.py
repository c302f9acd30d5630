"""`garra sessions`: list, read, export and delete conversations; the rest of it stands in `sessions_more`."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from garra.client import quick
from garra.client.socket import Unreachable
from garra.core import keys, taint, transcript
from garra.core.errors import GarraError, NotFound, UserError
from garra.domains.sessions.store import Query, Session, Sessions, entry_json
from garra.faces.cli import discreet, output, parsing, sessions_compact, sessions_more
from garra.faces.cli.place import Place, here
from garra.faces.cli.sessions_place import key_of, main_of, store
from garra.io.clock import SystemClock
from garra.io.files import atomic

if TYPE_CHECKING:
    pass

Step = Callable[[argparse.Namespace, Place], Awaitable[int]]

SHOWN = 100
"""Sessions listed, and messages shown, where nothing is said."""


def run(arguments: Sequence[str]) -> int:
    """Exit code 0 when done, 1 when something could not be done, 2 when the command line is wrong."""
    words = list(arguments)
    if not words or (words[0].startswith("-") and words[0] not in ("-h", "--help")):
        words.insert(0, "list")
    try:
        asked = _parser().parse_args(words)
    except SystemExit as end:
        return int(end.code or 0)
    step: Step = asked.step
    try:
        return asyncio.run(_run(step, asked))
    except UserError as fault:
        if asked.json:
            output.say_json({"ok": False, "error": {"type": "cli_error", "message": fault.message}})
        else:
            output.note(f"garra: {fault.message}")
        return 1


async def _run(step: Step, asked: argparse.Namespace) -> int:
    return await step(asked, here())


def _parser() -> argparse.ArgumentParser:
    parser = parsing.parser("sessions", "List, read, export and delete conversations.")
    steps = parser.add_subparsers(metavar="COMMAND", required=True)

    def add(name: str, step: Step, summary: str) -> argparse.ArgumentParser:
        found = parsing.with_json(steps.add_parser(name, help=summary, description=f"{summary.capitalize()}."))
        found.set_defaults(step=step)
        return found

    rows = add("list", _list, "the conversations, newest first")
    rows.add_argument("--agent", default=None, metavar="ID", help="only this agent's")
    rows.add_argument("--all-agents", action="store_true", help="every agent's (the default)")
    rows.add_argument("--active", type=_positive, default=0, metavar="MINUTES", help="only what changed since then")
    rows.add_argument("--search", default="", metavar="WORDS", help="only those whose key, label or title holds these")
    rows.add_argument("--limit", type=_limit, default=SHOWN, metavar="N", help=f"at most N, or all ({SHOWN})")
    rows.add_argument("--archived", action="store_true", help="the archived ones")
    said = add("history", _history, "what was said in a conversation")
    said.add_argument("key", nargs="?", default="main", help="its key, or the end of it (main)")
    said.add_argument("--agent", default="main", metavar="ID", help="whose, where the key does not say (main)")
    said.add_argument("--limit", type=_limit, default=SHOWN, metavar="N", help=f"the last N messages, or all ({SHOWN})")
    copy = add("export", _export, "write a conversation to a file")
    copy.add_argument("key", nargs="?", default="main", help="its key, or the end of it (main)")
    copy.add_argument("--agent", default="main", metavar="ID", help="whose, where the key does not say (main)")
    copy.add_argument(
        "--format",
        default="md",
        choices=("md", "html", "jsonl"),
        help="Markdown, a web page, the transcript itself",
    )
    copy.add_argument("--output", type=_file, metavar="FILE", help="where to (standard output)")
    gone = add("delete", _delete, "delete conversations; their transcripts are kept as *.deleted.*")
    gone.add_argument("keys", nargs="+", metavar="KEY", help="session keys, or beginnings of their ids")
    gone.add_argument("--agent", default="main", metavar="ID", help="whose, where a key does not say (main)")
    gone.add_argument("--yes", action="store_true", help="do not ask")
    gone.add_argument("--dry-run", action="store_true", help="only say what would be deleted")
    sessions_more.add(add)
    sessions_compact.add(add)
    return parser


def _file(text: str) -> Path | None:
    return None if text == "-" else Path(text).expanduser().absolute()


def _positive(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"a whole number above 0 is wanted, not {text!r}")
    return number


def _limit(text: str) -> int:
    return sys.maxsize >> 1 if text == "all" else _positive(text)


async def _list(asked: argparse.Namespace, place: Place) -> int:
    now = SystemClock().now_ms()
    query = Query(
        agent_id=None if asked.agent is None else keys.agent_id(asked.agent),
        search=asked.search,
        archived=asked.archived,
        since=now - asked.active * 60_000 if asked.active else 0,
        limit=asked.limit,
    )
    try:
        async with store(place) as sessions:
            page = await sessions.list(query)
    except NotFound:
        if not asked.json:
            raise
        page = None
    found = page.sessions if page else ()
    total = page.total if page else 0
    if asked.json:
        output.say_json(
            {
                "path": str(place.paths.db),
                "count": len(found),
                "totalCount": total,
                "limitApplied": min(asked.limit, 1 << 31),
                "hasMore": total > len(found),
                "sessions": [_row(session, now) for session in found],
            }
        )
        return 0
    output.say(_table(found, now) if found else "no sessions match")
    if total > len(found):
        output.note(f"{total - len(found)} more: garra sessions list --limit all")
    return 0


def _row(session: Session, now: int) -> dict[str, Any]:
    kind = keys.parse(session.key).kind
    head = {"key": session.key, "agentId": session.agent_id, "kind": kind, "ageMs": max(0, now - session.updated_at)}
    return {**head, **entry_json(session)}


def _table(found: Sequence[Session], now: int) -> str:
    rows = [
        (
            session.key,
            age(now - session.updated_at),
            session.override or (f"{session.provider}/{session.model}" if session.model else "-"),
            compact(session.totals.total) if session.totals else "-",
            session.label or session.display_name or session.title or "",
        )
        for session in found
    ]
    return output.table(rows, ("key", "changed", "model", "tokens", "title"))


def age(ms: int) -> str:
    """`ms` as people say it."""
    for unit, length in (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000)):
        if ms >= length:
            return f"{ms // length}{unit} ago"
    return "now"


def compact(count: int) -> str:
    for unit, size in (("m", 1_000_000), ("k", 1_000)):
        if count >= size:
            return f"{count / size:.1f}{unit}"
    return str(count)


async def _history(asked: argparse.Namespace, place: Place) -> int:
    key = key_of(place, asked.key, asked.agent)
    async with store(place) as sessions:
        session, entries = await sessions.read(key)
    said = [entry for entry in entries if entry.type == "message"]
    shown, blots = said[-asked.limit :], await asyncio.to_thread(discreet.blots_of, place)
    if asked.json:
        messages = [{"id": entry.id, **blots.value(entry.body["message"])} for entry in shown]
        output.say_json({"key": key, "sessionId": session.session_id, "totalMessages": len(said), "messages": messages})
        return 0
    if read := taint.told(session.extra.get(taint.ROW)):
        output.note(f"It holds text from outside: {read}")
    for entry in shown:
        if (message := entry.message) is not None:
            who = output.painted(f"{_who(message)}  {transcript.stamp(message.timestamp)}", "quiet")
            calls = "".join(f"[calls {call.name}] " for call in getattr(message, "calls", ()))
            fault = f"({error})" if (error := getattr(message, "error", None)) else ""
            output.say(f"{who}\n{calls}{blots.text(' '.join(filter(None, (message.text, fault))))}\n")
    return 0


def _who(message: object) -> str:
    return {"ToolResult": "tool"}.get(type(message).__name__, type(message).__name__.lower())


async def _export(asked: argparse.Namespace, place: Place) -> int:
    key = key_of(place, asked.key, asked.agent)
    async with store(place) as sessions:
        data = await sessions.export(key, asked.format)
    data = (await asyncio.to_thread(discreet.blots_of, place)).data(data)
    if asked.json:
        text = data.decode("utf-8", "replace")
        output.say_json({"ok": True, "key": key, "format": asked.format, "bytes": len(data)} | _where(asked, text))
    elif asked.output is None:
        output.say(data.decode("utf-8", "replace").rstrip("\n"))
    if asked.output is not None:
        await asyncio.to_thread(atomic.write, asked.output, data)
        output.note(f"{key}: {len(data)} bytes written to {asked.output}")
    return 0


def _where(asked: argparse.Namespace, text: str) -> dict[str, Any]:
    return {"content": text} if asked.output is None else {"output": str(asked.output)}


async def _delete(asked: argparse.Namespace, place: Place) -> int:
    async with store(place) as sessions:
        results = [await _judged(sessions, place, text, asked.agent) for text in asked.keys]
        wanted = [result["key"] for result in results if result["ok"]]
        if wanted and not asked.dry_run and not asked.yes and not await asyncio.to_thread(_sure, asked, wanted):
            return 1
        if not asked.dry_run:
            results = [await _deleted(sessions, place, result) if result["ok"] else result for result in results]
    good = all(result["ok"] for result in results)
    if asked.json:
        output.say_json({"ok": good, "operation": "delete", "dryRun": asked.dry_run, "results": results})
        return 0 if good else 1
    for result in results:
        where = f", kept as {result['archived']}" if result.get("archived") else ""
        tell = output.note if result.get("error") else output.say
        tell(f"{result['key']}: {result.get('error') or result['status'].replace('_', ' ')}{where}")
    return 0 if good else 1


def _sure(asked: argparse.Namespace, wanted: Sequence[str]) -> bool:
    if asked.json or not os.isatty(0):
        raise UserError("deleting needs --yes where nobody can be asked; --dry-run shows what would go")
    output.note(f"Delete {len(wanted)} session{'s' if len(wanted) > 1 else ''} ({', '.join(wanted)})? [y/N] ")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


async def _judged(sessions: Sessions, place: Place, text: str, agent: str) -> dict[str, Any]:
    """Whether a session can be deleted."""
    key = key_of(place, text, agent)
    if await sessions.get(key) is None:
        error = "no such session: see garra sessions list"
        return {"key": key, "ok": False, "status": "not_found", "error": error}
    if keys.is_main(key, main_of(place)):
        error = "an agent's main session cannot be deleted: begin it anew with /new in a chat"
        return {"key": key, "ok": False, "status": "failed", "error": error}
    return {"key": key, "ok": True, "status": "would_delete"}


async def _deleted(sessions: Sessions, place: Place, result: dict[str, Any]) -> dict[str, Any]:
    """Delete through the gateway where one runs, for the sessions are then its own; else here."""
    key = result["key"]
    try:
        if await asyncio.to_thread(lambda: place.holder) is not None:
            ask = partial(quick.call, scopes=("operator.admin",))
            answer = await asyncio.to_thread(ask, place.target(), "sessions.delete", {"key": key})
            kept = [str(path) for path in answer.get("archived") or ()]
        else:
            kept = [str(path)] if (path := await sessions.delete(key)) else []
    except (GarraError, Unreachable) as fault:
        return {"key": key, "ok": False, "status": "failed", "error": str(fault)}
    return {"key": key, "ok": True, "status": "deleted", **({"archived": kept[0]} if kept else {})}
