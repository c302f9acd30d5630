"""A gateway that is ready has loaded what it needs at once, and what a tool or a command needs is loaded by its first
use: each module that everybody waits for costs every start, and its memory for good."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from tests.e2e.resident import Resident

pytestmark = pytest.mark.e2e

LATER = {
    "html.parser", "difflib", "markdown_it", "textual", "httpx2", "cryptography", "PIL", "tree_sitter",
    "garra.builtin.tools.web.page", "garra.builtin.tools.web.markdown", "garra.builtin.tools.web.duckduckgo",
    "garra.checks", "garra.app.migration", "garra.faces.tui",
}  # fmt: skip
"""By these names, and below them."""


async def test_what_is_used_later_is_loaded_later(tmp_path: Path) -> None:
    gateway = Resident(tmp_path, "http://127.0.0.1:1")
    gateway.env["PYTHONPROFILEIMPORTTIME"] = "1"
    await gateway.start()
    try:
        said = await asyncio.to_thread((tmp_path / "gateway.log").read_text)
    finally:
        await gateway.stop()
    loaded = set(re.findall(r"^import time: .*\|\s+([\w.]+)$", said, re.MULTILINE))
    assert "garra.app.house" in loaded, said[:500]
    early = {name for name in loaded for later in LATER if name == later or name.startswith(f"{later}.")}
    assert not early
