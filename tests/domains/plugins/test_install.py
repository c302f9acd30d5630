"""Installing what a plugin needs: what a person is shown of pip's lines, and the refusals that say what to run."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from garra.core.errors import UserError
from garra.domains.plugins import packages
from garra.domains.plugins.discover import Plugin
from garra.domains.plugins.install import Ground, Installer, progress, reason
from garra.io.process import pip
from garra.io.process.door import Programs
from garra.sdk.manifest import Manifest

HERE = Ground(sys.executable, "/somewhere/site-packages", pip=True, writable=True)


def plugin(folder: Path, *imports: str, extra: str = "parrot") -> Plugin:
    return Plugin(Manifest("parrot", "channel", name="Parrot", extra=extra, imports=imports), folder, "global")


def test_what_is_there_needs_nothing(tmp_path: Path) -> None:
    assert packages.needed(plugin(tmp_path, "json", "msgspec")) == ""
    assert packages.needed(plugin(tmp_path)) == ""


def test_without_a_lock_the_modules_are_named(tmp_path: Path) -> None:
    assert "provides the modules no_such_module" in packages.needed(plugin(tmp_path, "json", "no_such_module"))


def test_what_would_only_do_better_is_told_apart(tmp_path: Path) -> None:
    owl = Plugin(Manifest("owl", "tool", name="Owl", extra="owl", better=("no_such_module",)), tmp_path, "global")
    assert packages.needed(owl) == ""
    assert packages.welcome(owl).endswith("not installed: install what provides no_such_module")
    (tmp_path / "owl.lock").write_text("owl==1.0 --hash=sha256:00\n")
    assert packages.welcome(owl).endswith("run `garra plugins install owl`")


def test_every_extra_of_ours_has_its_lock(tmp_path: Path) -> None:
    found = packages.lock(Plugin(Manifest("matrix", "channel", extra="matrix"), tmp_path, "bundled"))
    assert found is not None
    assert "matrix-nio==" in found.read_text()
    assert packages.lock(Plugin(Manifest("matrix", "channel", extra="matrix"), tmp_path, "global")) is None


def test_what_no_plugin_brings_has_its_lock_too() -> None:
    for name in packages.APART:
        found = packages.apart(name)
        assert found is not None
        assert packages.lock(found) is not None
    assert packages.apart("nonsense") is None


@pytest.mark.parametrize(
    ("ground", "says"),
    [
        (Ground("/opt/tool/python", "/x", pip=False, writable=True), "Run: uv pip install --python /opt/tool/python"),
        (Ground("/usr/bin/python3", "/usr/x", pip=True, writable=False), "/usr/x cannot be written by this user"),
    ],
)
async def test_a_place_that_takes_nothing_is_told_with_the_command_that_can(
    ground: Ground, says: str, tmp_path: Path
) -> None:
    lock = tmp_path / "parrot.lock"
    lock.write_text("parrot-speech==1.0 --hash=sha256:00\n")
    programs, told = Programs(), list[str]()
    try:
        with pytest.raises(UserError) as caught:
            await Installer(programs, {}, told.append, ground)(plugin(tmp_path, "no_such_module"))
    finally:
        await programs.close()
    assert says in caught.value.message
    assert f"--require-hashes -r {lock}" in caught.value.message
    assert told == []


async def test_nothing_is_asked_when_all_is_there(tmp_path: Path) -> None:
    programs = Programs()
    try:
        assert not await Installer(programs, {}, print, HERE)(plugin(tmp_path, "json"))
    finally:
        await programs.close()


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("  Downloading aiohttp-3.14.5-cp311-cp311-manylinux_2_17_x86_64.whl (1.7 MB)", "aiohttp 3.14.5 (1.7 MB)"),
        ("  Using cached h11-0.16.0-py3-none-any.whl (37 kB)", "h11 0.16.0 (37 kB)"),
        ("Downloading https://u:p@mirror.test/x/nio-1.0.tar.gz (3 kB)", "nio 1.0 (3 kB)"),
        ("  Downloading aiohttp-3.14.5-cp311.whl.metadata (8.1 kB)", ""),
        ("Installing collected packages: a, b, c", "putting 3 packages in place"),
        ("Looking in indexes: https://ann:secret@mirror.test/simple", ""),
        ("WARNING: The script x is installed in …", ""),
    ],
)
def test_progress(line: str, shown: str) -> None:
    assert progress(line) == shown


def test_the_reason_is_pips_first_error_without_its_addresses_secrets() -> None:
    said = ["Collecting x", "ERROR: no x at https://ann:secret@mirror.test/simple", "ERROR: No matching distribution"]
    assert reason(said) == "no x at https://mirror.test/simple"
    assert reason(["only this"]) == "only this"
    assert reason([]) == "it said nothing"


def test_pip_hears_its_own_settings_and_nothing_of_ours() -> None:
    given = {
        "PIP_INDEX_URL": "https://mirror.test",
        "HTTPS_PROXY": "http://proxy.test",
        "no_proxy": "localhost",
        "SSL_CERT_FILE": "/ca",
        "TELEGRAM_BOT_TOKEN": "7:x",
        "OPENAI_API_KEY": "k",
        "PYTHONPATH": "/x",
    }
    assert set(pip.environment(given)) == {"PIP_INDEX_URL", "HTTPS_PROXY", "no_proxy", "SSL_CERT_FILE"}
