"""Many writers at once, some of them killed: nothing that was acknowledged is lost, and the file always reads."""

from __future__ import annotations

import random
import subprocess
import sys
import threading

import pyjson5
import pytest

from tests.config.place import Installation

WRITERS, EACH = 10, 5

WRITE = """
import sys
from garra.config.paths import resolve
from garra.config.write import Writer
from garra.io import env
found = env.read()
writer = Writer(resolve(found), found)
for number in range(int(sys.argv[2])):
    key = f"w{sys.argv[1]}n{number}"
    writer.set(f"ui.{key}", key)
    print(key, flush=True)
"""


@pytest.mark.req("BOOT-14")
@pytest.mark.timeout(120)
def test_fifty_writes_at_once_and_kills_at_random_lose_nothing_acknowledged(here: Installation) -> None:
    here.write("{\n  // mine\n  future: { x: 1 },\n}\n")
    children = [
        subprocess.Popen(
            [sys.executable, "-c", WRITE, str(number), str(EACH)],
            env={"HOME": str(here.home), "PATH": "/usr/bin:/bin"},
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(WRITERS)
    ]
    done, faults = threading.Event(), []

    def watch() -> None:
        while not done.wait(0.002):
            try:
                pyjson5.decode(here.text)
            except (OSError, ValueError) as fault:
                faults.append(fault)

    watcher = threading.Thread(target=watch)
    watcher.start()
    acknowledged: list[str] = []
    chance = random.Random(7)
    try:
        victims = chance.sample(children, 4)
        for victim in victims:
            assert victim.stdout is not None
            acknowledged += [victim.stdout.readline().strip() for _ in range(chance.randint(1, 3))]
            victim.kill()
        for child in children:
            output, _ = child.communicate()
            acknowledged += output.split()
    finally:
        done.set()
        watcher.join()
    assert not faults
    kept = pyjson5.decode(here.text)
    acknowledged = [key for key in acknowledged if key]
    assert len(acknowledged) >= (WRITERS - len(victims)) * EACH
    assert set(acknowledged) <= set(kept["ui"])
    assert kept["future"] == {"x": 1}
    assert "// mine" in here.text
    assert here.load().valid
    assert here.writer.set("ui.after", value=True).valid
    assert not list(here.paths.state.glob(".*.draft"))
