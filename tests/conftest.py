"""What every test gets: a loop that refuses to block, and `needs` for programs a newcomer may lack."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest
from blockbuster import BlockBuster, blockbuster_ctx


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test marked `needs("program")` is skipped where the program is absent; in CI it runs, and so fails."""
    for item in items:
        for mark in item.iter_markers("needs"):
            missing = [name for name in mark.args if not _there(name)]
            if missing and not os.environ.get("CI"):
                item.add_marker(pytest.mark.skip(reason=f"{', '.join(missing)} is not installed"))


def _there(name: str) -> bool:
    """Synapse is no program but a package of another Python, kept apart because of what it needs and its licence."""
    if name == "synapse":
        return bool(os.environ.get("GARRA_TEST_SYNAPSE"))
    return shutil.which(name) is not None


@pytest.fixture(autouse=True)
def no_blocking() -> Iterator[BlockBuster]:
    """Fails the test that blocks the event loop: a blocking call there raises BlockingError."""
    with blockbuster_ctx("garra") as buster:
        yield buster
