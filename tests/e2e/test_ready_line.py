"""What a gateway logs when it is ready."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.e2e.resident import Resident

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize(("level", "steps"), [("info", False), ("debug", True)])
async def test_the_address_for_everybody_and_the_steps_for_who_mends(
    tmp_path: Path, level: str, *, steps: bool
) -> None:
    gateway = Resident(tmp_path, "http://127.0.0.1:1", {"logging": {"level": level}})
    await gateway.start()
    try:
        said = gateway.log()
    finally:
        await gateway.stop()
    port = gateway.port
    assert re.search(rf"ready on port {port} in \d+ ms: ws://127\.0\.0\.1:{port}$", said, re.MULTILINE)
    assert bool(re.search(r"the steps of the start: lock \d+ ms · config \d+ ms · .* · ready \d+ ms", said)) is steps
