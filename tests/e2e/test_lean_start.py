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
    "pydantic", "pydantic_core", "starlette", "anyio", "uvicorn.main", "click", "multiprocessing", "http.client",
    "email.message", "importlib.metadata",
    "garra.builtin.tools.web.page", "garra.builtin.tools.web.markdown", "garra.builtin.tools.web.duckduckgo",
    "garra.checks", "garra.app.migration", "garra.faces.tui",
    "garra.config.schema", "garra.config.sections.thorough", "garra.gateway.http", "garra.gateway.openai",
    "garra.gateway.schema", "garra.gateway.errands.every",
}  # fmt: skip
"""By these names, and below them."""

METHODS = {"channels", "messages", "pairing", "presence", "questions", "status"}
"""The modules of methods that a start may load; the others wait for a call."""

MODULES = 500
"""So many modules of ours may be loaded when the gateway is ready. Who adds one to a start finds one that can wait."""


@pytest.fixture
async def loaded(tmp_path: Path) -> set[str]:
    """The names of the modules that a start loads, a client's handshake with it."""
    gateway = Resident(tmp_path, "http://127.0.0.1:1")
    gateway.env["PYTHONPROFILEIMPORTTIME"] = "1"
    await gateway.start()
    try:
        async with gateway.client():
            said = await asyncio.to_thread((tmp_path / "gateway.log").read_text)
    finally:
        await gateway.stop()
    found = set(re.findall(r"^import time: .*\|\s+([\w.]+)$", said, re.MULTILINE))
    assert "garra.app.house" in found, said[:500]
    return found


async def test_what_is_used_later_is_loaded_later(loaded: set[str]) -> None:
    assert not {name for name in loaded for later in LATER if name == later or name.startswith(f"{later}.")}
    below = "garra.gateway.methods."
    assert {name.removeprefix(below) for name in loaded if name.startswith(below)} <= METHODS
    assert len([name for name in loaded if name.startswith("garra")]) <= MODULES
