"""The loop stands alone: whoever has a model and tools can use it, without gateway, channels or files."""

from __future__ import annotations

import ast

import pytest

from tests.architecture.caps import SOURCE, files


def imported(package: str) -> set[str]:
    """The parts of ours that a package names in any import, in functions too."""
    found: set[str] = set()
    for path in files(SOURCE / package):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                found.add(node.module or "")
            elif isinstance(node, ast.Import):
                found.update(name.name for name in node.names)
    return {name.split(".")[1] for name in found if name.startswith("garra.")}


@pytest.mark.req("OV-03")
def test_the_loop_knows_neither_gateway_nor_channels() -> None:
    assert imported("agent") == {"agent", "core", "sdk"}
    assert imported("sdk") <= {"core", "sdk"}
    assert imported("core") == {"core"}
