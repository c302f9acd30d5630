"""Kill the program anywhere, several times in a row: each message is answered once, in order, or known to be unsure."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

POSTMAN = Path(__file__).with_name("postman.py")


def started(folder: Path, last: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, str(POSTMAN), str(folder), str(last)], stdout=subprocess.PIPE)


def killed(folder: Path, after_s: float) -> list[int]:
    """The updates that it said were stored, before it was killed."""
    with started(folder, 1_000_000) as child:
        assert child.stdout is not None
        first = child.stdout.readline()
        time.sleep(after_s)
        child.kill()
        rest = child.stdout.read()
    return [int(line) for line in (first + rest).split(b"\n")[:-1]]


@pytest.mark.req("MSG-02", "ONE-03")
@pytest.mark.parametrize("seed", range(4))
def test_killed_anywhere_nothing_is_lost_and_nothing_doubled(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    told = [number for _ in range(3) for number in killed(tmp_path, rng.uniform(0.0, 0.25))]
    last = max(told)
    with started(tmp_path, last) as child:
        assert child.wait(15) == 0
    shown = [line.split() for line in (tmp_path / "shown").read_text().splitlines()]
    keys = [key for key, _, _ in shown]
    assert len(set(keys)) == len(keys)
    for chat in {chat for _, chat, _ in shown}:
        numbers = [int(text) for _, where, text in shown if where == chat]
        assert numbers == sorted(numbers)
    with sqlite3.connect(tmp_path / "state.db") as db:
        states = dict(db.execute("SELECT key, state FROM outbox"))
        came = [int(number) for (number,) in db.execute("SELECT event_id FROM inbox WHERE state='done'")]
    db.close()
    assert set(told) <= set(came)
    assert len(set(came)) == len(came)
    assert {f"out:{number}" for number in came} == set(states)
    assert {key for key, state in states.items() if state == "sent"} <= set(keys)
    assert set(states.values()) <= {"sent", "unsure"}
    assert sum(state == "unsure" for state in states.values()) <= 3 * 3
