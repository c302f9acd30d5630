from __future__ import annotations

from pathlib import Path

import pytest

from tests.config.place import Installation


@pytest.fixture
def here(tmp_path: Path) -> Installation:
    return Installation(tmp_path)
