"""`garra`, with an end set for it: `python -m tests.e2e.crash gateway run`.

The file `deaths` in the state folder names a point a line; each start takes the first line and dies there. Without a
line left it is the program as it is.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from garra.__main__ import main
from tests.e2e.crash.points import DOUBTS, KIN, POINTS, SMALLER, arm


def doom(deaths: Path) -> None:
    """Take the next point from the file, and arm it."""
    first, *others = deaths.read_text().splitlines() or [""]
    deaths.write_text("\n".join(others))
    if first:
        arm({**POINTS, **DOUBTS, **KIN, **SMALLER}[first])


if __name__ == "__main__":
    doom(Path(os.environ["GARRA_STATE_DIR"]) / "deaths")
    sys.exit(main())
