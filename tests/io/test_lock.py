"""A lock dies with its holder: shown with real processes that are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from garra.core.errors import Conflict
from garra.io import lock

HOLD = """
import sys, pathlib, os
from garra.io import lock
held = lock.acquire(pathlib.Path(sys.argv[1]), {"pid": os.getpid(), "port": 18789}, 5)
print("held", flush=True)
sys.stdin.read()
"""


def hold(path: Path) -> subprocess.Popen[str]:
    child = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "held\n"
    return child


def test_one_holder_and_all_may_ask_who(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "gateway.lock"
    assert lock.holder(path) is None
    with lock.acquire(path, {"pid": 1}) as held:
        assert lock.holder(path) == {"pid": 1}
        held.update({"pid": 1, "port": 5})
        with pytest.raises(Conflict, match="held by process 1") as caught:
            lock.acquire(path, {})
        assert caught.value.details == {"holder": {"pid": 1, "port": 5}}
    assert lock.holder(path) is None
    lock.acquire(path, {}).release()


def test_a_killed_holder_leaves_no_lock_and_is_not_believed(tmp_path: Path) -> None:
    path = tmp_path / "gateway.lock"
    child = hold(path)
    with child:
        assert lock.holder(path) == {"pid": child.pid, "port": 18789}
        with pytest.raises(Conflict):
            lock.acquire(path, {})
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
    assert b"18789" in path.read_bytes()
    assert lock.holder(path) is None
    with lock.acquire(path, {"pid": 7}):
        assert lock.holder(path) == {"pid": 7}


def test_a_waiter_gets_it_when_the_holder_ends(tmp_path: Path) -> None:
    path = tmp_path / "x.lock"
    with hold(path) as child:
        with pytest.raises(Conflict):
            lock.acquire(path, {}, 0.05)
        child.terminate()
        lock.acquire(path, {}, 10).release()


def test_unreadable_info_is_no_info(tmp_path: Path) -> None:
    path = tmp_path / "x.lock"
    with lock.acquire(path, {}):
        path.write_text("[1")
        assert lock.holder(path) == {}
        path.write_text("[1]")
        with pytest.raises(Conflict, match="another process"):
            lock.acquire(path, {})
