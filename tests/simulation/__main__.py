"""`python -m tests.simulation [FIRST [COUNT [PROCESSES]]]`: run schedules, and name the seeds of those that fail."""

from __future__ import annotations

import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

from tests.simulation.schedule import Broken, run

PIECE = 100
"""Schedules that a process runs in one go."""


def piece(seeds: range) -> tuple[Counter[str], list[str]]:
    """(what was seen, what was broken) of some schedules."""
    seen: Counter[str] = Counter()
    broken: list[str] = []
    for seed in seeds:
        try:
            outcome = run(seed)
        except Broken as fault:
            broken.append(str(fault))
            continue
        seen.update(dict(outcome.ends))
        seen.update({"unsure": outcome.unsure, "tool calls": outcome.calls})
    return seen, broken


def main(first: int = 0, count: int = 1_000, processes: int = 2) -> int:
    began, seen, faults = time.monotonic(), Counter[str](), 0
    pieces = [range(at, min(at + PIECE, first + count)) for at in range(first, first + count, PIECE)]
    with ProcessPoolExecutor(processes) as pool:
        for counted, broken in pool.map(piece, pieces):
            seen += counted
            faults += len(broken)
            for fault in broken:
                print(fault, flush=True)
    speed = count / (time.monotonic() - began) * 60
    told = ", ".join(f"{number} {what}" for what, number in seen.most_common())
    print(f"seeds {first} to {first + count - 1}: {told}; {faults} broken; {speed:.0f} a minute")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:4])))
