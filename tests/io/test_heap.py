"""What the start makes is not looked through for garbage, until the start is over."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import gc, weakref
from garra.io import heap

class Ring:
    def __init__(self):
        self.me = self

heap.start()
left = weakref.ref(Ring())
print(gc.isenabled(), left() is not None)
heap.started()
print(gc.isenabled(), gc.get_freeze_count() > 1000)
gc.collect()
print(left() is not None)
heap.settle()
print(left() is None, gc.get_freeze_count() > 1000)
"""


def test_the_start_is_left_alone_and_what_it_left_over_goes_once() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True", "True", "True", "True", "True", "True"]
