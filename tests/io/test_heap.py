"""One heap for all threads."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

CHILD = """
import ctypes, re, sys, threading
from pathlib import Path
from garra.io import heap

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
if sys.argv[1] == "gathered":
    heap.gather()
places = []
threads = [threading.Thread(target=lambda: places.append(libc.malloc(1000))) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
found = re.search(r"^([0-9a-f]+)-([0-9a-f]+) .*\\[heap\\]$", Path("/proc/self/maps").read_text(), re.M)
start, end = (int(part, 16) for part in found.groups())
print(all(start <= place < end for place in places))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has heaps for threads")
@pytest.mark.parametrize(("how", "one"), [("gathered", "True"), ("as it comes", "False")])
def test_all_threads_take_from_one_heap(how: str, one: str) -> None:
    told = subprocess.run([sys.executable, "-c", CHILD, how], capture_output=True, text=True, check=True, timeout=20)
    assert told.stdout.strip() == one


HOLES = """
import resource
from pathlib import Path
from garra.io import heap

def rss() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

heap.gather()
blocks = [bytes(2000) for _ in range(30_000)]
kept = blocks[::100]
del blocks
before = rss()
heap.trim()
print(before - rss() > 30_000_000)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc gives back what is free in the middle")
def test_what_is_free_between_what_is_kept_goes_back_to_the_system() -> None:
    told = subprocess.run([sys.executable, "-c", HOLES], capture_output=True, text=True, check=True, timeout=20)
    assert told.stdout.strip() == "True"
