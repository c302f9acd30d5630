"""Gets a skill from where it is: a folder, an archive, an address, a repository. What comes is files; none is run."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Final

from garra.core import bundle
from garra.core.characters import escaped
from garra.core.errors import Unavailable, UserError
from garra.core.value import frozen
from garra.domains.skills import pack
from garra.domains.skills.origin import Origin
from garra.io.process.door import Limits, Programs, Start
from garra.sdk.ports import Via
from garra.sdk.web import Visit, Visited

LONGEST_S: Final = 120.0
"""So long one download or clone may take."""
CLONED: Final = 256 << 20
"""Bytes of one file of a clone."""
_SAFE: Final = (
    "core.hooksPath=/dev/null", "core.fsmonitor=false", "core.symlinks=false", "protocol.allow=never",
    "protocol.https.allow=always", "http.followRedirects=initial", "credential.helper=", "submodule.recurse=false",
    "transfer.bundleURI=false", "gc.auto=0", "maintenance.auto=false",
)  # fmt: skip
"""What a repository may not have git do."""

Open = Callable[[Visit], AbstractAsyncContextManager[Visited]]


@frozen
class Fetched:
    """`files` by path in the skill's folder. `archive` is the SHA-256 of the archive they came in, `version` the commit
    of a repository; empty where there is none.
    """

    origin: Origin
    files: Mapping[str, bytes]
    archive: str = ""
    version: str = ""
    inside: str = ""


@frozen
class Fetcher:
    """`visit` opens an address of the web through the guarded door."""

    visit: Open
    programs: Programs
    path: str
    via: Callable[[], Via] = Via

    async def get(self, origin: Origin, inside: str = "", sha256: str = "") -> Fetched:
        """Raises UserError where it is no skill, or not the one that was pinned by `sha256`, that of the archive."""
        if sha256 and origin.kind not in ("archive", "url"):
            raise UserError("--sha256 is that of an archive: a folder or a repository has none")
        match origin.kind:
            case "folder":
                return Fetched(origin, await asyncio.to_thread(pack.folder, Path(origin.at), inside), inside=inside)
            case "git":
                return await self._cloned(origin, inside)
            case "archive":
                data = await asyncio.to_thread(_read, Path(origin.at))
            case _:
                data = await self._downloaded(origin.at, sha256)
        found = bundle.digest(data)
        if sha256 and found != sha256.lower():
            raise UserError(
                f"{escaped(origin.at)} is not what it should be: its SHA-256 is {found}; nothing was installed"
            )
        files = await asyncio.to_thread(pack.archive, data, inside)
        return Fetched(origin, files, archive=found, inside=inside)

    async def _downloaded(self, url: str, sha256: str) -> bytes:
        if url.startswith("http://") and not sha256:
            raise UserError("what comes by http:// can be changed on the way: use https://, or pin it with --sha256")
        try:
            async with asyncio.timeout(LONGEST_S), self.visit(Visit(url, redirects=5)) as answer:
                if answer.status != 200:
                    raise Unavailable(f"{escaped(url)} answers {answer.status}")
                data = bytearray()
                async for chunk in answer.chunks():
                    data += chunk
                    if len(data) > pack.ARCHIVE:
                        raise UserError(f"{escaped(url)} is larger than {pack.ARCHIVE >> 20} MiB: that is no skill")
        except TimeoutError:
            raise Unavailable(f"{escaped(url)} took longer than {LONGEST_S:.0f} seconds") from None
        return bytes(data)

    async def _cloned(self, origin: Origin, inside: str) -> Fetched:
        git = await asyncio.to_thread(shutil.which, "git", path=self.path)
        if git is None:
            raise UserError("git is not installed here: install it, or give the https address of an archive")
        async with _scratch() as folder:
            run = _Git(self.programs, git, folder, self.path, self.via(), origin)
            await run.clone()
            version = (await run("rev-parse", "HEAD")).decode().strip()
            await run("archive", "--format=tar", f"--output={folder / 'skill.tar'}", "HEAD")
            data = await asyncio.to_thread(_read, folder / "skill.tar", pack.UNPACKED)
            return Fetched(origin, await asyncio.to_thread(pack.archive, data, inside), version=version, inside=inside)


@frozen
class _Git:
    """git in an empty home of its own, by https only (or a path of this machine), with hooks and helpers off."""

    programs: Programs
    program: str
    folder: Path
    path: str
    via: Via
    origin: Origin

    async def clone(self) -> None:
        """The one commit that is meant, without a work tree: what git would do to files on the way out it cannot do."""
        where = str(self.folder / "repository")
        ref = self.origin.ref
        await self("init", "--quiet", "--bare", where, at=self.folder)
        await self(
            "fetch", "--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules", self.origin.at, ref or "HEAD"
        )
        await self("update-ref", "--no-deref", "HEAD", "FETCH_HEAD")

    async def __call__(self, *words: str, at: Path | None = None) -> bytes:
        settings = [
            *_SAFE,
            *(["protocol.file.allow=always", "safe.directory=*"] if self.origin.at.startswith("/") else []),
        ]
        settings += [f"http.proxy={self.via.proxy}"] if self.via.proxy else []
        settings += [f"http.sslCAInfo={self.via.ca_file}"] if self.via.ca_file else []
        argv = (self.program, *(word for each in settings for word in ("-c", each)), *words)
        env = {
            "PATH": self.path, "HOME": str(self.folder), "LC_ALL": "C.UTF-8", "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "/bin/false",
            "GIT_TEMPLATE_DIR": "", "GIT_LFS_SKIP_SMUDGE": "1",
        }  # fmt: skip
        start = Start(argv, str(at or self.folder / "repository"), env, keep=True, limits=Limits(file_bytes=CLONED))
        done = await self.programs.run(start, timeout_s=LONGEST_S, limit=64 << 10)
        if done.code == 0:
            return done.output
        if done.code is None:
            raise Unavailable(f"git took longer than {LONGEST_S:.0f} seconds for {escaped(self.origin.shown)}")
        said = done.output.decode("utf-8", "replace").strip().splitlines()
        why = escaped(
            next((line for line in said if line.startswith("fatal:")), said[-1] if said else "it said nothing")
        )
        raise UserError(f"git cannot get {escaped(self.origin.shown)}: {why.removeprefix('fatal: ')[:300]}")


@asynccontextmanager
async def _scratch() -> AsyncIterator[Path]:
    folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="garra-skill-"))
    try:
        yield folder
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


def _read(path: Path, limit: int = pack.ARCHIVE) -> bytes:
    try:
        with path.open("rb") as stream:
            data = stream.read(limit + 1)
    except OSError as fault:
        raise UserError(f"{escaped(str(path))} cannot be read: {fault.strerror or fault}") from None
    if len(data) > limit:
        raise UserError(f"{escaped(str(path))} is larger than {limit >> 20} MiB: that is no skill")
    return data
