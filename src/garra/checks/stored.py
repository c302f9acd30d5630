"""Can what is kept be read: the state database and the transcripts. Looked at only while no gateway writes to them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from garra.checks.finding import Finding, Ground
from garra.domains.upkeep import backup
from garra.io.lock import holder
from garra.io.store import damage, lines

MOST = 20_000
"""So many transcripts are looked at."""


def check(ground: Ground) -> list[Finding]:
    if holder(ground.paths.lock) is not None:
        return []
    return [*_database(ground), *_transcripts(ground)]


def _database(ground: Ground) -> list[Finding]:
    file = ground.paths.db
    if not file.is_file():
        return []
    said = damage.damage(file)
    if not said:
        return [Finding("stored", "ok", "the state database is whole", str(file))]
    what = f"the state database is damaged: {said}"
    if damage.in_an_index(said):
        how = "garra doctor --fix makes the index anew; the file as it was is kept beside"
        return [Finding("stored", "bad", what, str(file), how, lambda: _indexed(file))]
    return [Finding("stored", "bad", what, str(file), _remedy(ground))]


def _remedy(ground: Ground) -> str:
    found = backup.listed(ground.paths.state / "backups")
    if not found:
        return f"move it away (mv {ground.paths.db} {ground.paths.db}.damaged): chats are read from their transcripts"
    return f"garra backup restore {found[0]['path']} brings back what was packed; what stands now is kept beside"


def _indexed(file: Path) -> str:
    kept = _free(file)
    for end in ("", "-wal"):
        part = file.with_name(file.name + end)
        if part.exists():
            shutil.copy2(part, kept.with_name(kept.name + end))
    damage.indexed(file)
    return f"made the indexes of {file} anew; the file as it was is kept as {kept}"


def _free(file: Path) -> Path:
    number, kept = 0, file.with_name(f"{file.name}.damaged")
    while kept.exists():
        number += 1
        kept = file.with_name(f"{file.name}.damaged.{number}")
    return kept


def _transcripts(ground: Ground) -> list[Finding]:
    torn = [file for file in _listed(ground.paths.agents) if _torn(file)]
    if not torn:
        return []
    more = f" and {len(torn) - 1} more" if len(torn) > 1 else ""
    how = "garra doctor --fix cuts the half line off; so does the next message there. What was acknowledged stays"
    return [Finding("stored", "note", f"a transcript ends in half a line{more}", str(torn[0]), how, lambda: _cut(torn))]


def _listed(agents: Path) -> list[Path]:
    return sorted(agents.glob("*/sessions/*.jsonl"))[:MOST]


def _torn(file: Path) -> bool:
    try:
        opened = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        size = os.fstat(opened).st_size
        return size > 0 and os.pread(opened, 1, size - 1) != b"\n"
    finally:
        os.close(opened)


def _cut(files: Sequence[Path]) -> str:
    for file in files:
        opened = os.open(file, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            lines.mend(opened)
        finally:
            os.close(opened)
    return f"cut a half line off {len(files)} transcript{'' if len(files) == 1 else 's'}"
