"""What is installed is pinned by hash, and no file names the place it is fetched from."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from garra.sdk.manifest import parse
from tests.architecture.caps import ROOT, SOURCE

LOCKS = sorted((ROOT / "requirements").rglob("*.lock"))
EXTRAS = [path for path in LOCKS if path.parent.name == "extras"]
PIN = re.compile(r"^([a-z0-9][\w.\-]*)==(\S+)", re.M)


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


def pins(lock: Path) -> dict[str, str]:
    return {found[1]: found[2] for found in PIN.finditer(lock.read_text())}


@pytest.mark.parametrize("lock", EXTRAS, ids=lambda path: path.name)
def test_extras_agree_with_what_is_installed_already_and_with_each_other(lock: Path) -> None:
    for other in (ROOT / "requirements" / "run.lock", ROOT / "requirements" / "dev.lock", *EXTRAS):
        known = pins(other)
        assert {name: (version, known[name]) for name, version in pins(lock).items() if name in known} == {
            name: (version, version) for name, version in pins(lock).items() if name in known
        }


def test_every_extra_has_a_lock() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(extras) - {"anthropic"} == {path.stem for path in EXTRAS}, "run requirements/lock.sh"


def test_every_plugin_of_ours_that_needs_packages_is_an_extra() -> None:
    locked = {path.stem for path in EXTRAS}
    for file in sorted((SOURCE / "builtin").glob("*/*/manifest.toml")):
        manifest = parse(file.name, file.read_text(), str(file))
        assert bool(manifest.extra) == bool(manifest.imports or manifest.better), file
        assert not manifest.extra or manifest.extra in locked, file


def test_web_lock_has_no_registry_address() -> None:
    lock = ROOT / "web" / "package-lock.json"
    assert not lock.exists() or '"resolved"' not in lock.read_text()
