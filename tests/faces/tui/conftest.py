"""The terminal library reads its style sheet and looks up paths as it starts: that alone may block here."""

from __future__ import annotations

import pytest
from blockbuster import BlockBuster

ALLOWED = {"textual/_path.py": "_make_path_object_relative", "textual/css/stylesheet.py": "read"}


@pytest.fixture(autouse=True)
def screen_may_load(no_blocking: BlockBuster) -> None:
    for function in no_blocking.functions.values():
        for file, name in ALLOWED.items():
            function.can_block_in(file, name)
