"""What is installed is pinned by hash, and no file names the place it is fetched from."""

from __future__ import annotations

import re

import pytest

from tests.architecture.caps import ROOT

LOCKS = sorted((ROOT / "requirements").glob("*.lock"))


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.name)
def test_every_pin_has_a_hash_and_no_address(lock) -> None:  # type: ignore[no-untyped-def]
    text = lock.read_text()
    assert "://" not in text
    assert "index-url" not in text
    pins = re.findall(r"^([a-z0-9][\w.\-\[\]]*)==", text, re.M)
    assert pins
    blocks = re.split(r"(?m)^(?=[a-z0-9])", text)
    unhashed = [
        block.split("==")[0] for block in blocks if "==" in block.split("\n")[0] and "--hash=sha256:" not in block
    ]
    assert not unhashed


def test_lock_files_exist() -> None:
    assert {path.name for path in LOCKS} >= {"run.lock", "dev.lock", "local.lock"}


def test_web_lock_has_no_registry_address() -> None:
    lock = ROOT / "web" / "package-lock.json"
    assert not lock.exists() or '"resolved"' not in lock.read_text()
