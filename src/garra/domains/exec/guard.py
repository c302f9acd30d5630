"""The files of a workspace that a command may see and not change."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress

from garra.core.errors import ToolFailed


class Holder:
    """What is held fast for the commands that run now."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._held: Counter[str] = Counter()
        self._made: set[str] = set()

    async def hold(self, root: str, names: Iterable[str]) -> tuple[str, ...]:
        """Where `names` (a folder's ends in /) stand in the real folder `root`.

        What is missing is made, empty, until `free`: only what exists can be held fast, and an empty file says nothing.
        Raises ToolFailed where it cannot be made. Other spellings of a name are held too; links are not, see `holds`.
        """
        async with self._turn:
            places, made = await asyncio.to_thread(_fixed, root, names)
            self._held.update(places)
            self._made.update(made)
        return places

    async def free(self, places: Iterable[str]) -> None:
        """A command has ended; what was made for it alone, and is empty still, goes."""
        async with self._turn:
            self._held.subtract(places)
            over = [path for path in self._made if self._held[path] <= 0]
            self._made.difference_update(over)
            self._held = +self._held
            await asyncio.to_thread(_remove, over)


def _fixed(root: str, names: Iterable[str]) -> tuple[tuple[str, ...], list[str]]:
    """All places, and those that had to be made."""
    places: set[str] = set()
    made: list[str] = []
    for name in names:
        plain = name.rstrip("/")
        found = _spelled(root, plain)
        if all(entry.name != plain for entry in found):
            made.append(_made(os.path.join(root, plain), folder=name.endswith("/")))  # noqa: PTH118
        places.update(entry.path for entry in found if _is_plain(entry))
    return tuple(sorted({*places, *made})), made


def _remove(places: Iterable[str]) -> None:
    for path in places:
        with suppress(OSError):
            if os.path.isdir(path):  # noqa: PTH112
                os.rmdir(path)  # noqa: PTH106
            elif os.lstat(path).st_size == 0:
                os.unlink(path)  # noqa: PTH108


def closed(root: str, private: Iterable[str]) -> Iterator[str]:
    """The `private` places that lie in the real folder `root`, where they really are; a folder's ends in /. Blocks."""
    lead, above = root.rstrip("/") + "/", "\0"
    for real in sorted(os.path.realpath(place) for place in private):
        if real.startswith(lead) and not real.startswith(above) and os.path.exists(real):  # noqa: PTH110
            folder = os.path.isdir(real)  # noqa: PTH112
            above = f"{real}/" if folder else above
            yield f"{real}/" if folder else real


def holds(root: str, names: Iterable[str]) -> bool:
    """Whether all of them can be held fast in the folder `root`: a link cannot. Blocks."""
    try:
        return all(_is_plain(entry) for name in names for entry in _spelled(os.path.realpath(root), name.rstrip("/")))
    except OSError:
        return True  # there is no such folder, so nothing will run in it


def _spelled(root: str, plain: str) -> list[os.DirEntry[str]]:
    with os.scandir(root) as found:
        return [entry for entry in found if entry.name.casefold() == plain.casefold()]


def _is_plain(entry: os.DirEntry[str]) -> bool:
    return entry.is_dir(follow_symlinks=False) or entry.is_file(follow_symlinks=False)


def _made(path: str, *, folder: bool) -> str:
    try:
        if folder:
            os.mkdir(path, 0o700)  # noqa: PTH102
        else:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o600))
    except FileExistsError:
        pass
    except OSError as error:
        raise ToolFailed(f"No command was run: {path} cannot be made: {error.strerror}") from None
    return path
