"""Which program listens on a port of this machine, as far as this user may see."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

_LISTENING: Final = "0A"


def listener(port: int, root: Path = Path("/proc")) -> tuple[int, str] | None:
    """Process id and name of who listens on a TCP port; None where it is hidden, or the system does not say. Blocks."""
    wanted = {f"socket:[{inode}]" for inode in _inodes(port, root)}
    if not wanted:
        return None
    for folder in root.glob("[0-9]*"):
        with suppress(OSError):
            if any(str(handle.readlink()) in wanted for handle in (folder / "fd").iterdir()):
                return int(folder.name), (folder / "comm").read_text().strip()
    return None


def _inodes(port: int, root: Path) -> Iterator[str]:
    for name in ("tcp", "tcp6"):
        with suppress(OSError):
            for line in (root / "net" / name).read_text().splitlines()[1:]:
                words = line.split()
                if words[3] == _LISTENING and int(words[1].rpartition(":")[2], 16) == port:
                    yield words[9]
