"""Counts what the caps of docs/concepts/architecture.md speak of. Read by test_caps; reads files, runs nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE, TESTS = ROOT / "src" / "garra", ROOT / "tests"
FILE_LINES, TEST_FILE_LINES, FUNCTION_LINES = 400, 600, 50
POSITIONAL, PARAMETERS = 4, 8


@dataclass(frozen=True)
class Function:
    """One function as it stands in a file; `lines` without its docstring."""

    where: str
    name: str
    lines: int
    positional: int
    parameters: int


def files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.py"))


def functions(path: Path) -> Iterator[Function]:
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0]
            doc = (first.end_lineno or 0) - first.lineno + 1 if ast.get_docstring(node) else 0
            named = [*node.args.posonlyargs, *node.args.args]
            own = named[1:] if named and named[0].arg in {"self", "cls"} else named
            yield Function(
                f"{path.relative_to(ROOT)}:{node.lineno}",
                node.name,
                (node.end_lineno or node.lineno) - node.lineno + 1 - doc,
                len(own),
                len(own) + len(node.args.kwonlyargs),
            )


def handlers(path: Path) -> Iterator[tuple[int, str]]:
    """(line, what) of each handler that catches everything and keeps it; one that tidies up and raises it again hides
    nothing.
    """
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ExceptHandler) and not _passes_on(node):
            kind = ast.unparse(node.type) if node.type else "bare"
            if kind in {"bare", "Exception", "BaseException"}:
                yield node.lineno, kind


def _passes_on(handler: ast.ExceptHandler) -> bool:
    last = handler.body[-1]
    return isinstance(last, ast.Raise) and last.exc is None
