"""Plugins of installed packages are found by what their packages say of themselves."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from garra.domains.plugins import discover
from garra.domains.plugins.discover import Plugin

MANIFEST = 'kind = "hooks"\nid = "parrot"\nname = "Parrot"\nversion = "1.0"\ndescription = "Repeats."\n'


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Path]:
    """A folder of installed packages."""
    sys.path.append(str(tmp_path))
    yield tmp_path
    sys.path.remove(str(tmp_path))


def installed(site: Path, group: str) -> None:
    (site / "parrot_plugin").mkdir()
    (site / "parrot_plugin" / "__init__.py").write_text("raise SystemError('imported')\n")
    (site / "parrot_plugin" / "manifest.toml").write_text(MANIFEST)
    info = site / "parrot_plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: parrot-plugin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{group}]\nparrot = parrot_plugin\n")


def test_a_package_names_itself(site: Path) -> None:
    installed(site, discover.GROUP)
    (found,) = discover.installed()
    assert isinstance(found, Plugin), found
    assert (found.id, found.origin, found.package) == ("parrot", "package", "parrot_plugin")


def test_others_do_not(site: Path) -> None:
    installed(site, "console_scripts")
    assert not list(discover.installed())


def test_an_archive_is_looked_into(site: Path) -> None:
    sys.path.append(str(site / "none.zip"))
    (site / "none.zip").write_bytes(b"")
    try:
        assert not list(discover.installed())
    finally:
        sys.path.remove(str(site / "none.zip"))
