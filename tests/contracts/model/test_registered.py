"""The families as the house finds them: by name, loaded when one is asked for, gone with the plugin that brought it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from garra.core.errors import NotFound
from garra.domains.plugins import discover
from garra.domains.plugins.registry import Registry
from garra.io.clock import SystemClock
from garra.io.http import GuardedHttp
from garra.io.tasks import Tasks
from garra.sdk.model import Warms
from tests.contracts.model.traffic import FAMILIES, Cloud

CODE = """
class Mine:
    family = "mine"

    def stream(self, request, key):
        return None

def register(api):
    api.api(Mine())
"""


def anything(_schema: Mapping[str, Any], _value: Any) -> Iterable[str]:
    return ()


@pytest.mark.req("MODEL-02")
async def test_the_box_brings_nine_families_and_a_plugin_takes_its_own_along(tmp_path: Path) -> None:
    async with Tasks() as tasks:
        ports = {"http": GuardedHttp(), "spawn": tasks, "clock": SystemClock(), "cloud": Cloud()}
        registry = Registry(ports)
        await asyncio.to_thread(_found, tmp_path, registry)
        assert {registry.api(name).family for name in FAMILIES} == set(FAMILIES)


def _found(root: Path, registry: Registry) -> None:
    folder = root / "mine"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "plugin.py").write_text(CODE)
    (folder / "openclaw.plugin.json").write_text('{"id": "mine", "configSchema": {}, "python": "plugin:register"}')
    _scan(registry, root, on=True)
    for name in FAMILIES:
        made = registry.api(name)
        assert made.family == name
        assert isinstance(made, Warms)
    assert registry.api("mine").family == "mine"
    _scan(registry, root, on=False)
    with pytest.raises(NotFound, match="no api is called 'mine'"):
        registry.api("mine")
    assert registry.api("ollama").family == "ollama"


def _scan(registry: Registry, root: Path, *, on: bool) -> None:
    roots = [discover.bundled(discover.box()), discover.extensions(root)]
    registry.scan(roots, {"entries": {"mine": {"enabled": on}}}, anything)


LOADED = """
import sys
from tests.contracts.model import traffic
names = ("anthropic", "openai", "google.genai", "mistralai", "boto3", "botocore")
print([name for name in names if name in sys.modules])
"""


async def test_no_vendors_library_comes_with_a_family() -> None:
    asked = [sys.executable, "-c", LOADED]
    told = await asyncio.to_thread(subprocess.run, asked, capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"
