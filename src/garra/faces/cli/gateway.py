"""`garra gateway`: what stands below it; alone, or with options, it is `garra gateway run`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from garra.faces.cli import gateway_run, table


def run(arguments: Sequence[str]) -> int:
    if arguments and arguments[0] in {"-h", "--help"}:
        sys.stdout.write(told())
        return 0
    return gateway_run.run(arguments)


def told() -> str:
    """What `garra gateway --help` says."""
    rows = table.below("gateway")
    width = max(len(row.name) for row in rows) + 2
    lines = "".join(f"  garra {row.name:<{width}}{row.summary}\n" for row in rows)
    return (
        "usage: garra gateway [COMMAND] ...\n\nThe resident process: run it, ask it.\n\n"
        f"{lines}\nAlone, or with options, it is garra gateway run. garra gateway COMMAND --help says more.\n"
    )
