"""`garra sessions search | fork | archive | unarchive | rename | cleanup`."""

from __future__ import annotations

import argparse
import asyncio
import importlib
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any

from garra.client import quick
from garra.core import weights
from garra.core.errors import GarraError, NotFound
from garra.core.ids import SessionKey
from garra.core.keys import agent_of, is_main, single
from garra.domains.sessions.keeping import Keeping, policy
from garra.faces.cli import discreet, output
from garra.faces.cli.place import Place
from garra.faces.cli.sessions_place import asked as ask
from garra.faces.cli.sessions_place import key_of, main_of, store
from garra.io.clock import SystemClock

Step = Callable[[argparse.Namespace, Place], Awaitable[int]]
Add = Callable[[str, Step, str], argparse.ArgumentParser]
OWNER = "whose, where the key does not say (main)"


def add(step: Add) -> None:
    """The commands of this module, each made by `step`."""
    search = step("search", _search, "what was said anywhere, before a /new too")
    search.add_argument("words", nargs="+", metavar="WORDS", help="words that a message holds")
    search.add_argument("--agent", default=None, metavar="ID", help="only this agent's")
    search.add_argument("--limit", type=int, default=20, metavar="N", help="at most N (20)")
    fork = step("fork", _fork, "a new conversation that begins with what was said in another")
    fork.add_argument("key", nargs="?", default="main", help="its key, or the end of it (main)")
    fork.add_argument("--at", default=None, metavar="ENTRY", help="only up to this entry")
    fork.add_argument("--agent", default="main", metavar="ID", help=OWNER)
    for name, about in (
        ("archive", "put conversations away; nothing of them is lost"),
        ("unarchive", "bring them back"),
    ):
        away = step(name, _archive if name == "archive" else _unarchive, about)
        away.add_argument("keys", nargs="+", metavar="KEY", help="session keys, or beginnings of their ids")
        away.add_argument("--agent", default="main", metavar="ID", help=OWNER)
        away.add_argument("--dry-run", action="store_true", help="only say what would be done")
    heavy = step("context", _context, "what fills the model's window in a conversation")
    heavy.add_argument("key", nargs="?", default="main", help="its key, or the end of it (main)")
    heavy.add_argument("--agent", default="main", metavar="ID", help=OWNER)
    heavy.add_argument("--detail", action="store_true", help="with sections, and the largest tools and skills")
    rename = step("rename", _rename, "give a conversation a name")
    rename.add_argument("key", metavar="KEY", help="which conversation")
    rename.add_argument("name", metavar="NAME", help="empty takes the name away")
    rename.add_argument("--agent", default="main", metavar="ID", help=OWNER)
    clean = step("cleanup", _cleanup, "put old conversations away by the rules of session.maintenance")
    clean.add_argument("--agent", default=None, metavar="ID", help="only this agent's")
    clean.add_argument("--all-agents", action="store_true", help="every agent's (the default)")
    clean.add_argument("--dry-run", action="store_true", help="only say what would be done")
    clean.add_argument("--enforce", action="store_true", help="also where session.maintenance.mode is warn")


async def _search(asked: argparse.Namespace, place: Place) -> int:
    async with store(place) as sessions:
        hits = await sessions.search(" ".join(asked.words), agent_id=asked.agent, limit=asked.limit, ended=True)
    blots = await asyncio.to_thread(discreet.blots_of, place)
    rows = [
        {
            "sessionKey": hit.session.key, "sessionId": hit.session.session_id, "messageId": hit.entry_id,
            "role": hit.role, "timestamp": hit.timestamp, "snippet": blots.text(hit.snippet),
        }
        for hit in hits
    ]  # fmt: skip
    if asked.json:
        output.say_json({"results": rows})
    for row in () if asked.json else rows:
        when = datetime.fromtimestamp(int(str(row["timestamp"])) / 1000).astimezone().strftime("%Y-%m-%d %H:%M")
        head = output.painted(f"{when}  {row['role']}  {row['sessionKey']}", "quiet")
        output.say(f"{head}\n  {output.harmless(str(row['snippet']))}")
    if not rows and not asked.json:
        output.say("nothing was said like that")
    return 0


async def _context(asked: argparse.Namespace, place: Place) -> int:
    key = key_of(place, asked.key, asked.agent)
    report = await ask(place, "sessions.context", {"key": key}, "operator.read")
    if report is None:
        offline = importlib.import_module("garra.app.weighing")  # opens the house; only where no gateway runs
        report = await offline.answer(place.paths, place.env, key, asked.agent)
    if asked.json:
        output.say_json(report)
    else:
        output.say(output.harmless(weights.words(report, detail=asked.detail)))
    return 0


async def _fork(asked: argparse.Namespace, place: Place) -> int:
    key = key_of(place, asked.key, asked.agent)
    new = single(agent_of(key, "main"), "dashboard", quick.fresh())
    async with store(place) as sessions:
        if place.holder is None:
            await sessions.fork(key, new, asked.at)
        else:
            _, entries = await sessions.read(key)
            if not entries:
                raise NotFound(f"nothing was said yet in {key}")
            params = {"sessionKey": key, "entryId": asked.at or entries[-1].id}
            done = await ask(place, "sessions.fork", params, "operator.write")
            new = SessionKey(str(done["sessionKey"]))
    output.say_json({"ok": True, "key": new, "from": key}) if asked.json else output.say(new)
    return 0


async def _archive(asked: argparse.Namespace, place: Place) -> int:
    return await _put(asked, place, {"archived": True}, "archived")


async def _unarchive(asked: argparse.Namespace, place: Place) -> int:
    return await _put(asked, place, {"archived": False}, "unarchived")


async def _rename(asked: argparse.Namespace, place: Place) -> int:
    asked.keys, asked.dry_run = [asked.key], False
    return await _put(asked, place, {"label": asked.name.strip() or None}, "renamed")


async def _put(asked: argparse.Namespace, place: Place, change: Mapping[str, Any], done: str) -> int:
    """The same change to each conversation that is named; one that cannot be done stops no other."""
    results: list[dict[str, Any]] = []
    async with store(place) as sessions:
        for text in asked.keys:
            key = key_of(place, text, asked.agent)
            row: dict[str, Any] = {"key": key, "ok": True, "status": f"would_be_{done}" if asked.dry_run else done}
            try:
                await sessions.need(key)
                if change.get("archived") and is_main(key, main_of(place)):
                    raise NotFound("an agent's main conversation stays: begin it anew with /new in a chat")
                if (
                    not asked.dry_run
                    and await ask(place, "sessions.patch", {"key": key, **change}, "operator.write") is None
                ):
                    await sessions.patch(key, change)
            except GarraError as fault:
                row |= {"ok": False, "status": "failed", "error": fault.message}
            results.append(row)
    good = all(row["ok"] for row in results)
    if asked.json:
        output.say_json({"ok": good, "operation": done, "dryRun": asked.dry_run, "results": results})
    for row in () if asked.json else results:
        (output.note if row.get("error") else output.say)(f"{row['key']}: {row.get('error') or row['status']}")
    return 0 if good else 1


async def _cleanup(asked: argparse.Namespace, place: Place) -> int:
    wanted = {"dryRun": asked.dry_run} | ({"agent": asked.agent} if asked.agent else {})
    wanted |= {"enforce": True} if asked.enforce else {}
    done = await ask(place, "sessions.cleanup", wanted, "operator.admin")
    if done is None:
        from garra.config.load import load  # noqa: PLC0415 - its types take a while; only this command needs them

        settings = (await asyncio.to_thread(load, place.paths, place.env)).config.session.maintenance
        dry = asked.dry_run or (settings.mode == "warn" and not asked.enforce)
        async with store(place) as sessions:
            keeping = Keeping(sessions, place.paths.agents, lambda _: False, main_of(place))
            outcome = await keeping.clean(policy(settings), SystemClock().now_ms(), dry=dry, agent_id=asked.agent)
        done = {"ok": True, "mode": settings.mode, "dryRun": dry, **outcome.shown()}
    if asked.json:
        output.say_json(done)
        return 0
    for action in done["actions"]:
        output.say(f"  {action['action']:<8} {action['key']}")
    would = "would be " if done["dryRun"] else ""
    output.say(
        f"{done['archived']} {would}put away, {done['pruned']} {would}removed, {done['removedFiles']} old copies "
        f"{would}deleted ({done['freedBytes']} bytes)"
    )
    return 0
