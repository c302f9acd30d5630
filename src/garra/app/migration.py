"""`garra migrate`: what another program holds is looked at, planned for, and taken over. Nothing there is changed."""

from __future__ import annotations

import asyncio
import importlib
import json
import secrets
import uuid
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from garra.app.migrated_files import Desk
from garra.config import view
from garra.config.load import load
from garra.config.paths import Paths
from garra.config.write import Writer
from garra.core import foreign, keys
from garra.core.errors import ConfigInvalid, Conflict, GarraError, UserError
from garra.core.migration import Chat, Found, Here, Item, Plan, State, Wanted, plan
from garra.core.redact import SENTINEL
from garra.core.transcript import stamp
from garra.domains.access.pairing import Pairing, Person
from garra.domains.sessions.session import entry_from
from garra.domains.sessions.store import Query, Sessions
from garra.io import lock
from garra.io.clock import SystemClock
from garra.io.env import Environment
from garra.io.files import atomic
from garra.io.store.db import Database
from garra.io.store.shelf import Shelf

SOURCES: Mapping[str, tuple[str, str]] = {
    "openclaw": (".openclaw", "OPENCLAW_STATE_DIR"),
    "hermes": (".hermes", "HERMES_HOME"),
    "nanobot": (".nanobot", ""),
    "claude": (".claude", "CLAUDE_CONFIG_DIR"),
}
"""Where each keeps its things below the home folder, and which variable says otherwise."""


def source_of(provider: str, paths: Paths, env: Environment) -> Path:
    """The folder of a provider. Raises UserError for one that nobody knows."""
    if provider not in SOURCES:
        raise UserError(f"nothing is known of {provider}; there is {', '.join(SOURCES)}")
    folder, variable = SOURCES[provider]
    named = env.get(variable, "") if variable else ""
    return Path(named) if named else paths.home / folder


def found(provider: str, source: Path) -> Found:
    """What a source holds. Blocks. Raises UserError where it is not one."""
    result: Found = importlib.import_module(f"garra.domains.migration.{provider}").found(source)
    return result


def planned(paths: Paths, env: Environment, source: Found, wanted: Wanted) -> Plan:
    """What would be done. Nothing is."""
    return plan(source, asyncio.run(_here(paths, env, source)), wanted)


async def _here(paths: Paths, env: Environment, source: Found) -> Here:
    desk = Desk(paths, await asyncio.to_thread(load, paths, env))
    here: dict[str, str] = {}
    if paths.db.is_file():
        db = Database(paths.db)
        try:
            sessions = Sessions(db, paths.agents, SystemClock(), lambda: str(uuid.uuid4()))
            page = await sessions.list(Query(archived=None, limit=1_000_000))
            here = {str(each.key): str(each.session_id) for each in page.sessions}
            await sessions.close()
        finally:
            await db.close()
    return await asyncio.to_thread(desk.here, source, here)


def applied(paths: Paths, env: Environment, wanted: Plan) -> Plan:
    """Do it, piece by piece; what fails is told and the rest goes on. Raises Conflict while a gateway runs."""
    holder = lock.holder(paths.lock)
    if holder is not None:
        raise Conflict(f"a gateway is running on {paths.state} (process {holder.get('pid')}); stop it first")
    with lock.acquire(paths.lock, {"pid": 0, "what": "migrate"}):
        return asyncio.run(_applied(paths, env, wanted))


async def _applied(paths: Paths, env: Environment, wanted: Plan) -> Plan:
    await asyncio.to_thread(atomic.folder, paths.state)
    done: list[Item] = []
    async with AsyncExitStack() as stack:
        doing = _Doing(paths, env, wanted.found.provider)
        await doing.open(stack)
        for item in wanted.items:
            due = item.state in ("planned", "conflict")
            done += [await _tried(doing, item) if due else item]
        result = replace(wanted, items=tuple(done))
        await doing.report(result)
    return result


async def _tried(doing: _Doing, item: Item) -> Item:
    try:
        note = await doing.take(item)
    except ConfigInvalid as fault:
        issues = (fault.details or {}).get("issues") or []
        told = "; ".join(f"{one.get('path')}: {one.get('message')}" for one in issues[:5])
        return replace(item, state="failed", note=told or fault.message)
    except (GarraError, OSError) as fault:
        return replace(item, state="failed", note=str(fault))
    state: State = "done"
    return replace(item, state=state, note=note)


class _Doing:
    """The stores of this installation, open for what comes in."""

    def __init__(self, paths: Paths, env: Environment, provider: str) -> None:
        self._paths, self._env, self._provider = paths, env, provider
        self._clock = SystemClock()
        now = stamp(self._clock.now_ms()).replace(":", "-")
        self.folder = paths.state / "migrations" / f"{now}-{provider}"

    async def open(self, stack: AsyncExitStack) -> None:
        db = Database(self._paths.db)
        stack.push_async_callback(db.close)
        self._pairing = Pairing(lambda name: Shelf(db, name), self._clock, secrets.randbelow)
        self._sessions = Sessions(db, self._paths.agents, self._clock, lambda: str(uuid.uuid4()))
        stack.push_async_callback(self._sessions.close)
        await self._pairing.load()
        self._desk = await self._looked()

    async def _looked(self) -> Desk:
        return Desk(self._paths, await asyncio.to_thread(load, self._paths, self._env), self.folder / "aside")

    async def take(self, item: Item) -> str:
        """One piece; a line about it, where there is something to say. Raises GarraError or OSError."""
        match item.kind:
            case "config":
                return await self._config(item)
            case "pairing":
                person = Person(**item.content, approved_at=self._clock.now_ms())
                await self._pairing.admit(person)
            case "approvals":
                offline = importlib.import_module("garra.app.approvals_offline")
                await offline.answer(self._paths, "exec.approvals.set", {"file": item.content})
            case "session" | "archive":
                await self._chat(item.content, current=item.kind == "session")
            case "auth":
                return await asyncio.to_thread(self._desk.logins, item)
            case "cron":
                await asyncio.to_thread(self._desk.document, self._paths.state / "cron" / "jobs.json", item.content)
                return "kept in cron/jobs.json; no schedules run yet"
            case _:
                return await asyncio.to_thread(self._desk.files, item)
        return ""

    async def _config(self, item: Item) -> str:
        writer = Writer(self._paths, self._env)

        def put() -> None:
            if isinstance(item.content, str):
                writer.keep_aside()
                writer.replace(self._desk.settled(item.content), shrink=True)
            else:
                writer.patch(dict(item.content))

        await asyncio.to_thread(put)
        self._desk = await self._looked()
        return item.note

    async def _chat(self, chat: Chat, *, current: bool) -> None:
        agent = keys.agent_id(chat.agent)
        key = keys.canonical(chat.key or f"agent:{agent}:{chat.session_id}", agent)
        session = entry_from(
            key, agent, {"updatedAt": self._clock.now_ms(), **foreign.titles(chat.lines), **chat.entry}
        )
        await self._sessions.adopt(session, chat.lines, current=current)

    async def report(self, result: Plan) -> None:
        """Write what came of it, without any secret."""
        text = json.dumps(result.shown(), ensure_ascii=False, indent=2)
        await asyncio.to_thread(atomic.folder, self.folder)
        await asyncio.to_thread(atomic.write, self.folder / "report.json", f"{text}\n".encode())


def without_keys(text: str) -> tuple[str, int]:
    """A configuration's text without its secrets, and how many were taken out."""
    include: Any = importlib.import_module("garra.config.include")
    plain = include.decode(view.text(text))
    count = 0

    def kept(value: Any) -> Any:
        nonlocal count
        if isinstance(value, dict):
            count += sum(each == SENTINEL for each in value.values())
            return {name: kept(each) for name, each in value.items() if each != SENTINEL}
        return [kept(each) for each in value if each != SENTINEL] if isinstance(value, list) else value

    lean = kept(plain)
    return json.dumps(lean, ensure_ascii=False, indent=2), count


def keyless(source: Found) -> Found:
    """The same without the secrets of its configuration."""

    def lean(item: Item) -> Item:
        if item.kind != "config" or not isinstance(item.content, str):
            return item
        text, count = without_keys(item.content)
        note = f"without its {count} secrets; take them over with --include-secrets" if count else ""
        return replace(item, content=text, note=note)

    return replace(source, items=tuple(map(lean, source.items)))
