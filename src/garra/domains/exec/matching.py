"""Regular expressions, in a child that is ended when one takes too long."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from garra.core.errors import ToolFailed, Unavailable
from garra.io.process import scan
from garra.io.process.door import Limits, Programs, Start
from garra.sdk.ports import Hit

SECONDS = 5
_SCRIPT = str(Path(scan.__file__))


async def match(programs: Programs, pattern: str, texts: Sequence[tuple[str, bytes]], limit: int) -> list[Hit]:
    """As `sdk.ports.Exec.match`."""
    asked = {"pattern": pattern, "limit": limit, "texts": [[name, len(data)] for name, data in texts]}
    given = b"\n".join((msgspec.json.encode(asked), b"".join(data for _, data in texts)))
    start = Start(
        (sys.executable, "-I", "-S", _SCRIPT),
        "/",
        stdin=True,
        stderr="drop",
        limits=Limits(memory=2 << 30, cpu_s=SECONDS, file_bytes=0),
    )
    try:
        finished = await programs.run(start, given=given, timeout_s=SECONDS, limit=4 << 20)
    except Unavailable as error:
        raise ToolFailed(error.message) from None
    if finished.code != 0:
        raise ToolFailed(f"pattern: it took more than {SECONDS} seconds; make it simpler or search in fewer files")
    return [_hit(line) for line in finished.output.splitlines()]


def _hit(line: bytes) -> Hit:
    body = msgspec.json.decode(line)
    if isinstance(body, dict):
        raise ToolFailed(f"pattern: no regular expression: {body.get('error')}")
    return Hit(*body)
