from __future__ import annotations

import pytest

from garra.io import env
from garra.io.env import Environment


def test_reads_and_never_prints() -> None:
    found = env.read()
    assert found["PATH"]
    assert len(found) == len(list(found))
    assert repr(Environment({"KEY": "hunter2"})) == "Environment(1 variables)"


def test_what_is_beneath_fills_only_gaps() -> None:
    found = Environment({"A": "1", "B": ""}).beneath({"A": "2", "B": "3", "C": "4"})
    assert dict(found) == {"A": "1", "B": "3", "C": "4"}
    with pytest.raises(KeyError):
        found["D"]
