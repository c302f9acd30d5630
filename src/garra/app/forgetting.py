"""`garra forget`: what is kept of one person is removed, with a report. The gateway must not run meanwhile."""

from __future__ import annotations

import asyncio
import secrets
import uuid
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from garra.config.load import load
from garra.config.paths import Paths
from garra.core import dreams, forgetting
from garra.core.dreaming import SPOKEN
from garra.core.errors import Conflict, GarraError, NotFound
from garra.core.forgetting import Person, Report
from garra.core.ids import SessionKey
from garra.core.value import frozen
from garra.domains.access.pairing import Pairing
from garra.domains.delivery.handles import SPACE
from garra.domains.delivery.media import MediaRoot
from garra.domains.memory import recalls
from garra.domains.sessions.store import Query, Session, Sessions
from garra.io import lock
from garra.io.clock import SystemClock
from garra.io.env import Environment
from garra.io.files import atomic
from garra.io.store.db import Connection, Database
from garra.io.store.shelf import Shelf
from garra.io.store.wipe import wiped

EVERY = 1_000_000
NOTES = ("MEMORY.md", "USER.md", "memory/**/*.md")
"""Of a workspace, where a person may be spoken of."""


class Left:
    """What could not be removed, and why: the rest is done all the same, and run again it goes on with that."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def unlink(self, path: Path) -> bool:
        """Whether it is gone. Blocks."""
        try:
            path.unlink(missing_ok=True)
        except OSError as fault:
            self.lines.append(f"{path}: {fault.strerror}")
            return False
        return True

    def write(self, path: Path, data: bytes) -> None:
        """Blocks."""
        try:
            atomic.write(path, data, path.stat().st_mode & 0o777)
        except (OSError, GarraError) as fault:
            why = fault.strerror if isinstance(fault, OSError) else fault.message
            self.lines.append(f"{path}: {why}")


def forget(paths: Paths, env: Environment, who: Person, *, dry: bool) -> Report:
    """Remove it, or only say what there is. Blocks. Raises Conflict while a gateway runs, NotFound without a state."""
    holder = lock.holder(paths.lock)
    if holder is not None and not dry:
        raise Conflict(f"a gateway is running on {paths.state} (process {holder.get('pid')}); stop it first")
    if not paths.db.is_file():
        raise NotFound(f"nothing is kept in {paths.state}")
    if dry:
        return asyncio.run(_forget(paths, env, who, dry=True))
    with lock.acquire(paths.lock, {"pid": 0, "what": "forget"}):
        return asyncio.run(_forget(paths, env, who, dry=False))


async def _forget(paths: Paths, env: Environment, who: Person, *, dry: bool) -> Report:
    db = Database(paths.db)
    sessions = Sessions(db, paths.agents, SystemClock(), lambda: str(uuid.uuid4()))
    try:
        page = await sessions.list(Query(archived=None, limit=EVERY))
        theirs = forgetting.family({each.key: each.extra.get("spawnedBy") for each in page.sessions}, who)
        rows = [each for each in page.sessions if each.key in theirs]
        own = {row.key: await asyncio.to_thread(_transcripts, paths.sessions(row.agent_id), row) for row in rows}
        mine = {path for found in own.values() for path in found}
        handles = await asyncio.to_thread(_attached, mine)
        found = await asyncio.to_thread(_scrubbed, paths.agents, who, mine, dry=True)
        left = Left()
        files = await _files(Shelf(db, SPACE), paths, theirs, handles | found.handles, left=left, dry=dry)
        scrubbed = found
        if not (dry or left.lines):  # what names a file goes behind the file
            scrubbed = await asyncio.to_thread(_scrubbed, paths.agents, who, mine, dry=False, left=left)
            await _unshown(sessions, page.sessions, scrubbed.ids)
        counts = await _rows(db, who, list(own), dry=dry)
        let_in = await _let_in(db, who, dry=dry)
        dreamt = await _dreamt(db, who, mine, dry=dry)
        promoted = await asyncio.to_thread(_promoted, paths, env, who, left, dry=dry)
        gone = list(own) if dry else await _removed(sessions, own, left)
    finally:
        await sessions.close()
        await db.close()
    if not dry:
        await asyncio.to_thread(wiped, paths.db)
        await asyncio.to_thread(_unindexed, paths.agents, left)
    names = {who.sender, *(label for each in rows if (label := each.display_name))}
    mentions = await asyncio.to_thread(_mentions, paths, env, names)
    return replace(
        counts, conversations=tuple(gone), lines=scrubbed.lines, files=files, let_in=let_in, mentions=mentions,
        promoted=promoted, dreamt=dreamt, left=tuple(left.lines),
    )  # fmt: skip


async def _removed(sessions: Sessions, own: Mapping[SessionKey, Sequence[Path]], left: Left) -> list[str]:
    """Remove whole conversations, the ended ones and the copies, too. A row goes last: by it all else is found."""
    gone: list[str] = []
    for key, paths in own.items():
        if left.lines:
            left.lines.append(f"the conversation {key}: it is removed when the rest is")
        elif all([await asyncio.to_thread(left.unlink, path) for path in paths]):
            if (kept := await sessions.delete(key)) is not None:
                await asyncio.to_thread(left.unlink, kept)
            gone.append(key)
    return gone


def _attached(paths: Iterable[Path]) -> set[str]:
    """The names of the files that came with what transcripts hold. Blocks."""
    return {name for path in paths for line in _lines(path) for name in forgetting.media(line)}


def _unindexed(root: Path, left: Left) -> None:
    """Take the indexes of memory away: they hold copies, and are made anew from what is left. Blocks."""
    for path in root.glob("*/memory.sqlite*"):
        left.unlink(path)


def _transcripts(folder: Path, session: Session) -> list[Path]:
    """All files of a conversation: the current one, those before it, and copies. Blocks."""
    told = f'"key":"{session.key}"'.encode()
    found = [path for path in folder.glob("*.jsonl*") if path.is_file() and told in _head(path)]
    current = folder / f"{session.session_id}.jsonl"
    return [*found, current] if current.is_file() and current not in found else found


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(16_384)


def _lines(path: Path) -> list[bytes]:
    try:
        return path.read_bytes().split(b"\n")
    except OSError:
        return []


@frozen
class _Scrubbed:
    """What was taken out of others' conversations: lines, names of files, ids of the transcripts."""

    lines: int
    handles: frozenset[str]
    ids: frozenset[str]


def _scrubbed(root: Path, who: Person, own: set[Path], *, dry: bool, left: Left | None = None) -> _Scrubbed:
    """Take their words out of what others share with them. Blocks."""
    count = 0
    handles: set[str] = set()
    ids: set[str] = set()
    for path in sorted({*root.glob("*/sessions/*.jsonl*")} - own):
        new = [(line, forgetting.without(line, who)) for line in _lines(path)]
        theirs = [line for line, gone in new if gone is not None]
        if theirs:
            count += len(theirs)
            ids.add(path.name.partition(".jsonl")[0])
            handles |= {name for line in theirs for name in forgetting.media(line)}
            if left is not None and not dry:
                text = b"\n".join(line if gone is None else gone for line, gone in new)
                left.write(path, text)
    return _Scrubbed(count, frozenset(handles), frozenset(ids))


async def _unshown(sessions: Sessions, rows: Iterable[Session], ids: frozenset[str]) -> None:
    """The rows of shared conversations show no words of theirs either."""
    for row in rows:
        if row.session_id in ids:
            await sessions.record(row.key, title=None, last_message=None)


async def _files(shelf: Shelf, paths: Paths, keys: frozenset[str], handles: set[str], *, left: Left, dry: bool) -> int:
    root = MediaRoot(paths.media, SystemClock())
    count = 0
    for name, row in (await shelf.items()).items():
        if not (keys & set(row["sessions"]) or name.removeprefix("media://") in handles):
            continue
        count += 1
        if not dry:
            path = None
            with suppress(NotFound):  # old files are gone already
                path = await root.path(row["path"])
            if path is None or await asyncio.to_thread(left.unlink, path):
                await shelf.remove(name, durable=True)
    return count


_SENT = "FROM outbox WHERE channel=? AND (chat=? OR inbox_id IN ({}))"
_OF = "json_extract(body, '$.sender.id')=?"


async def _rows(db: Database, who: Person, gone: Sequence[str], *, dry: bool) -> Report:
    """What is stored of messages on their way, and who paid for what: the ledger keeps its sums under no name."""
    account = (" AND account=?", (who.account,)) if who.account else ("", ())
    mine = f"FROM inbox WHERE channel=? AND {_OF}{account[0]}"
    values: tuple[Any, ...] = (who.channel, who.sender, *account[1])
    sent = _SENT.format(f"SELECT id {mine}")

    def work(connection: Connection) -> Report:
        def counted(query: str, given: tuple[Any, ...]) -> int:
            return int(connection.execute(f"SELECT count(*) {query}", given).fetchone()[0])

        out = (who.channel, who.sender, *values)
        payers = _payers(connection, who)
        calls = sum(counted("FROM usage_calls WHERE sender=?", (payer,)) for payer in payers)
        report = Report(received=counted(mine, values), sent=counted(sent, out), calls=calls)
        if not dry:
            nobody = f"forgotten-{secrets.token_hex(4)}"
            connection.execute(f"DELETE FROM stations WHERE message IN (SELECT id {mine})", values)
            connection.execute(f"DELETE {sent}", out)
            connection.execute(f"DELETE {mine}", values)
            # Each gets a name of its own: two that became one would be two rows of a day under the same key.
            for column, names in (("sender", payers), ("session", gone)):
                for at, name in enumerate(names):
                    for table in ("usage_calls", "usage_days"):
                        query = f"UPDATE {table} SET {column}=? WHERE {column}=?"
                        connection.execute(query, (f"{nobody}-{at}", name))
        return report

    return await (db.read(work) if dry else db.write(work, durable=True))


def _payers(connection: Connection, who: Person) -> list[str]:
    """As whom the ledger knows them: `channel:account:sender`, compared whole, for an id may hold any sign."""
    query = "SELECT sender FROM usage_calls UNION SELECT sender FROM usage_days"
    found = []
    for (payer,) in connection.execute(query):
        channel, _, rest = payer.partition(":")
        account, _, sender = rest.partition(":")
        if (channel, sender) == (who.channel, who.sender) and who.account in ("", account):
            found.append(payer)
    return found


async def _let_in(db: Database, who: Person, *, dry: bool) -> int:
    register = Pairing(lambda name: Shelf(db, name), SystemClock(), secrets.randbelow)
    await register.load()
    people = [each for each in register.people(who.channel, who.account) if each.sender == who.sender]
    asking = [each for each in register.waiting(who.channel, who.account) if each.sender == who.sender]
    if not dry:
        if people:
            await register.revoke(who.channel, who.sender, who.account)
        for each in asking:
            await register.dismiss(each.id)
    return len(people) + len(asking)


async def _dreamt(db: Database, who: Person, own: set[Path], *, dry: bool) -> int:
    """Their words in what dreams proposed, and what was recalled of conversations that are gone."""
    gone = [(f"{SPOKEN}{path.name}",) for path in own]

    def work(connection: Connection) -> int:
        if not dry:
            connection.executemany("DELETE FROM recalls WHERE path=?", gone)
        return recalls.forgotten(connection, who, dry=dry)

    return await (db.read(work) if dry else db.write(work, durable=True))


def _promoted(paths: Paths, env: Environment, who: Person, left: Left, *, dry: bool) -> int:
    """Take out of each MEMORY.md what dreams made of their words: each such line tells whose it is. Blocks."""
    config, count = load(paths, env).config, 0
    for root in {paths.workspace(agent, config) for agent in config.agents.ids()}:
        path = root / "MEMORY.md"
        if not path.is_file():
            continue
        taken = dreams.forgotten(path.read_text("utf-8", "surrogateescape"), who)
        count += taken.gone
        if taken.gone and not dry:
            left.write(path, taken.text.encode("utf-8", "surrogateescape"))
    return count


def _mentions(paths: Paths, env: Environment, names: set[str]) -> tuple[str, ...]:
    """Files of the agents' workspaces that still name them: notes are the owner's, and are not rewritten. Blocks."""
    config = load(paths, env).config
    found: list[str] = []
    for agent in config.agents.ids():
        root = paths.workspace(agent, config)
        for pattern in NOTES:
            for path in sorted(root.glob(pattern)):
                text = path.read_text("utf-8", "replace") if path.is_file() else ""
                if any(name and name in text for name in names):
                    found.append(str(path))
    return tuple(dict.fromkeys(found))
