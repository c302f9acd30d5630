"""The four layers of a chat message: transport, turn kernel, replies, agent runtime; each knows only those below."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import garra

ROOT = Path(garra.__file__).parent

KNOWS = {
    "builtin/channels": ("garra.sdk", "garra.core", "garra.builtin.channels"),
    "domains/delivery": ("garra.domains.delivery", "garra.config", "garra.io", "garra.sdk", "garra.core"),
    "runs": (
        "garra.runs", "garra.domains", "garra.client", "garra.config", "garra.agent", "garra.io", "garra.sdk",
        "garra.core",
    ),
    "agent": ("garra.agent", "garra.sdk", "garra.core"),
}  # fmt: skip
"""What each layer may know of the house. The kernel (`turns`) stands above the last three, beside none."""


def imported(folder: str) -> Iterator[tuple[Path, str]]:
    for path in sorted((ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module:
                yield path, node.module
            elif isinstance(node, ast.Import):
                yield from ((path, name.name) for name in node.names)


@pytest.mark.req("CH-03")
@pytest.mark.parametrize("layer", KNOWS)
def test_a_layer_knows_only_those_below(layer: str) -> None:
    found = [(path, module) for path, module in imported(layer) if module.split(".")[0] == "garra"]
    assert found
    for path, module in found:
        known = any(module == name or module.startswith(f"{name}.") for name in KNOWS[layer])
        assert known or module == "garra", f"{path.relative_to(ROOT)} imports {module}"


@pytest.mark.req("CH-03")
def test_the_kernel_knows_no_platform_and_no_face() -> None:
    above = ("garra.builtin", "garra.gateway", "garra.app", "garra.faces")
    assert [(path, module) for path, module in imported("turns") if module.startswith(above)] == []
