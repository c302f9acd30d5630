"""`python -m tests.simulation [FIRST [COUNT]]`: run schedules; it stops at the first that fails and names its seed."""

from __future__ import annotations

import logging
import sys
import time

from tests.simulation.schedule import run


def main(first: int = 0, count: int = 1_000) -> None:
    logging.disable()
    began, answers, unsure = time.monotonic(), 0, 0
    for seed in range(first, first + count):
        outcome = run(seed)
        answers += outcome.answers
        unsure += outcome.unsure
    speed = count / (time.monotonic() - began) * 60
    print(f"seeds {first} to {first + count - 1}: {answers} answers, {unsure} of them unsure; {speed:.0f} a minute")


main(*map(int, sys.argv[1:3]))
