"""`python -m tests.chaos [TURNS [SEED]]`: 2,000 turns over models that fail at random; exit code 1 when broken."""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path

from tests.chaos.storm import storm


def main(turns: int = 2_000, seed: int = 1) -> int:
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        outcome = asyncio.run(storm(Path(folder), turns, seed))
    print(f"{turns} turns in {time.monotonic() - began:.0f} s, seed {seed}: {outcome.answered} answered,")
    print(f"{sum(outcome.explained.values())} explained: {dict(outcome.explained.most_common())}")
    print(
        f"faults given: {dict(outcome.faults.most_common())}; calls counted {outcome.calls}, effects {outcome.effects}"
    )
    for line in sorted(outcome.broken)[-50:]:
        print(f"BROKEN: {line}")
    return int(bool(outcome.broken))


if __name__ == "__main__":
    raise SystemExit(main(*map(int, sys.argv[1:])))
