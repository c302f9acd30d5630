"""Skills as the owner keeps them: looked at, installed, checked, replaced, taken away; by command or by the gateway."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import field
from pathlib import Path
from typing import Any

from garra.checks.security import code
from garra.config.load import Snapshot, load
from garra.config.paths import Paths
from garra.core import bundle
from garra.core.errors import NotFound, UserError
from garra.core.value import frozen
from garra.domains.skills import scan, status, traces, world
from garra.domains.skills.fetch import Fetched, Fetcher
from garra.domains.skills.library import Library, Removed, missing
from garra.domains.skills.look import Look, look
from garra.domains.skills.origin import Origin, origin
from garra.domains.skills.records import Record
from garra.domains.web import settings
from garra.io.clock import SystemClock
from garra.io.http.outside import Outside
from garra.io.process.door import Programs
from garra.sdk.ports import Via


@frozen
class Wish:
    """What is to be installed. `agent`: into its workspace; empty: for all agents. `name` is the folder it is to have,
    `sha256` what its archive must be, `inside` the folder of it that is meant.
    """

    source: str
    name: str = ""
    agent: str = ""
    sha256: str = ""
    inside: str = ""


@frozen
class Offer:
    """What would be installed, and where: nothing is there yet."""

    wish: Wish
    folder: Path
    fetched: Fetched
    look: Look
    hits: tuple[str, ...] = ()

    @property
    def seal(self) -> str:
        """What stands for all that is shown: whoever agrees to it agrees to these very bytes."""
        return bundle.digest(repr(sorted(bundle.digests(self.fetched.files).items())).encode())

    def told(self) -> dict[str, Any]:
        """As JSON."""
        found = self.fetched
        return {
            **self.look.told(),
            "folder": str(self.folder),
            "origin": found.origin.shown,
            "version": found.version or None,
            "archiveSha256": found.archive or None,
            "hints": list(self.hits),
            "seal": self.seal,
        }


@frozen
class Anew:
    """What an update would change; `own` is what the person has changed since the install."""

    record: Record
    offer: Offer
    changes: bundle.Changes
    own: bundle.Changes


@frozen
class Shop:
    """`here` is the folder that paths of a person start in."""

    paths: Paths
    env: Mapping[str, str]
    snapshot: Callable[[], Snapshot]
    fetcher: Fetcher
    here: Path
    now_ms: Callable[[], int] = field(default_factory=lambda: SystemClock().now_ms)

    @property
    def library(self) -> Library:
        return Library(self.paths.state)

    def root(self, agent: str = "") -> Path:
        """Where skills are installed: for all agents, or for one. Raises NotFound for an agent that is not there."""
        if not agent:
            return self.paths.skills
        config = self.snapshot().config
        if agent not in config.agents.ids():
            raise NotFound(f'unknown agent id "{agent[:64]}"')
        return self.paths.workspace(agent, config) / "skills"

    async def offer(self, wish: Wish) -> Offer:
        """Fetch and judge it; nothing is written. Raises UserError as the fetcher does."""
        found = await asyncio.to_thread(origin, wish.source, self.here, self.paths.home)
        return await self._offered(wish, found)

    async def wanted(
        self, source: str, *, name: str = "", agent: str = "", sha256: str = "", inside: str = ""
    ) -> Offer:
        """`offer` for a wish in pieces."""
        return await self.offer(Wish(source, name, agent, sha256, inside))

    async def _offered(self, wish: Wish, found: Origin) -> Offer:
        fetched = await self.fetcher.get(found, wish.inside, wish.sha256)
        return await asyncio.to_thread(self._judged, wish, fetched)

    def _judged(self, wish: Wish, fetched: Fetched) -> Offer:
        inner = wish.inside.rstrip("/").rpartition("/")[2]
        said = look(fetched.files, "").skill.name
        name = bundle.slug(*([wish.name] if wish.name else [said, inner, fetched.origin.name]))
        return Offer(wish, self.root(wish.agent) / name, fetched, look(fetched.files, name), tuple(hits(fetched.files)))

    async def install(self, offer: Offer, *, force: bool = False) -> Record:
        """Raises Conflict where something stands there already."""
        name = offer.look.skill.name
        return await asyncio.to_thread(
            self.library.install, offer.folder, name, offer.fetched, self.now_ms(), force=force
        )

    def found(self, name: str, agent: str = "") -> Record:
        """An installed skill. Raises NotFound."""
        record = self.library.find(name, self.root(agent))
        if record is None:
            raise missing(name)
        return record

    async def anew(self, record: Record, source: str = "", sha256: str = "") -> Anew:
        """What an update would bring: from where it came, or from elsewhere."""
        wish = Wish(source or record.origin, Path(record.folder).name, sha256=sha256, inside=record.inside)
        at = None if source else Origin(_kind(record.kind), record.at, record.ref)
        offer = await (self.offer(wish) if at is None else self._offered(wish, at))
        changes, own = await asyncio.to_thread(self._differs, record, offer)
        return Anew(record, offer, changes, own)

    def _differs(self, record: Record, offer: Offer) -> tuple[bundle.Changes, bundle.Changes]:
        return self.library.preview(record, offer.fetched), self.library.changes(record)

    async def update(self, anew: Anew, *, force: bool = False) -> tuple[Record, str]:
        """Raises Conflict where the person has changed it, unless `force`."""
        return await asyncio.to_thread(self.library.update, anew.record, anew.offer.fetched, self.now_ms(), force=force)

    async def remove(self, record: Record) -> tuple[Removed, list[dict[str, Any]]]:
        """What went, and what turns that had read it wrote meanwhile."""
        written = await asyncio.to_thread(traces.of, self.paths.state, record.folder)
        return await asyncio.to_thread(self.library.remove, record), written

    def status(self, agent: str = "") -> dict[str, Any]:
        """`skills.status`. Blocks."""
        snapshot = self.snapshot()
        config = snapshot.config
        agent = agent or config.agents.default_id()
        workspace = self.root(agent).parent
        extra = [self.paths.expand(text) for text in config.skills.load.extra_dirs]
        seen, off = world.world(config, snapshot.resolved, self.env, agent), world.off(config)
        found = scan.Skills(scan.sources(workspace, self.paths.skills, extra=extra)).scan(seen, off)
        rows = [self._row(status.row(one, seen, off)) for one in found]
        return {
            "workspaceDir": str(workspace),
            "managedSkillsDir": str(self.paths.skills),
            "agentId": agent,
            "skills": rows,
        }

    def _row(self, row: dict[str, Any]) -> dict[str, Any]:
        record = self.library.at(Path(row["baseDir"]))
        return row if record is None else {**row, "installed": status.installed(record, self.library.changes(record))}

    def detail(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """A row with what is in its files, and what turns that had read it wrote. Blocks."""
        files = read(Path(row["baseDir"]))
        return {
            **row,
            **{name: value for name, value in look(files, str(row["name"])).told().items() if name != "name"},
            "hints": list(hits(files)),
            "written": traces.of(self.paths.state, str(row["baseDir"])),
        }


def read(folder: Path) -> dict[str, bytes]:
    """The files of a skill as they are now; links, which a person may have put there, are left out. Blocks."""
    files: dict[str, bytes] = {}
    for above, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in bundle.PASSED_OVER)
        for name in sorted(names):
            path = Path(above) / name
            if len(files) < bundle.FILES and path.is_file() and not path.is_symlink():
                with path.open("rb") as stream:
                    files[str(path.relative_to(folder))] = stream.read(bundle.FILE_BYTES)
    return files


def hits(files: Mapping[str, bytes]) -> list[str]:
    """What in the text of the files deserves a look: a hint, no promise."""
    found: list[str] = []
    for path, data in files.items():
        language = code.LANGUAGES.get(Path(path).suffix.lower(), "shell" if data.startswith(b"#!") else None)
        if language is not None:
            text = data.decode("utf-8", "replace")
            found += [f"{path}:{hit.line} {hit.what} ({hit.severity})" for hit in code.scan(text, language)]
    return found


def _kind(text: str) -> Any:
    if text not in ("folder", "archive", "url", "git"):
        raise UserError(f"a skill from {text!r} cannot be updated by this Garra: install it anew")
    return text


@asynccontextmanager
async def opened(paths: Paths, env: Mapping[str, str], here: Path) -> AsyncIterator[Shop]:
    """For a command: its own doors, until the end."""
    snapshot = await asyncio.to_thread(load, paths, env)
    programs = Programs()
    try:
        async with lent(paths, env, lambda: snapshot, programs, here=here) as shop:
            yield shop
    finally:
        await programs.close()


@asynccontextmanager
async def lent(
    paths: Paths, env: Mapping[str, str], snapshot: Callable[[], Snapshot], programs: Programs, *, here: Path
) -> AsyncIterator[Shop]:
    """With the programs of who calls."""
    async with door(snapshot) as web:
        getting = Fetcher(web.open, programs, env.get("PATH", ""), lambda: via(snapshot()))
        yield Shop(paths, env, snapshot, getting, here)


@asynccontextmanager
async def door(snapshot: Callable[[], Snapshot]) -> AsyncIterator[Outside]:
    """The way to archives: what is not public is refused unless `tools.web.fetch.ssrfPolicy` lists the host."""
    web = Outside(
        lambda: settings.hosts(snapshot().config.tools.web.fetch.ssrf_policy),
        lambda: via(snapshot()),
        lambda: snapshot().bound,
    )
    try:
        yield web
    finally:
        await web.close()


def via(snapshot: Snapshot) -> Via:
    return Via(snapshot.config.proxy_url or None, snapshot.config.ca_file or None)
