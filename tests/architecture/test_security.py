"""Security as documents and code say it: the page of the checks, promises with their tests, compares of secrets."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture import security_checks
from tests.architecture.caps import ROOT, SOURCE, files

PROMISES = ROOT / "docs" / "concepts" / "security.md"
_NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
_ROW = re.compile(r"^\| \*\*.*\|$", re.M)
KINDS = ast.Eq | ast.NotEq | ast.In | ast.NotIn


@pytest.mark.req("SEC-13")
def test_the_page_of_the_checks_is_the_catalog() -> None:
    assert security_checks.PAGE.read_text() == security_checks.page(), (
        "run: python -m tests.architecture.security_checks"
    )


def test_every_promise_names_a_test_that_is_there() -> None:
    text = PROMISES.read_text()
    rows = _ROW.findall(text)
    assert len(rows) >= 30
    assert not [row for row in rows if not _NAMED.search(row)]
    lacking = [f"{path}::{name}" for path, name in _NAMED.findall(text) if name not in _tests(ROOT / path)]
    assert not lacking


def _tests(path: Path) -> set[str]:
    if not path.is_file():
        return set()
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, functions)}


@pytest.mark.req("SEC-10")
def test_no_secret_is_compared_letter_by_letter() -> None:
    found = [f"{path.relative_to(ROOT)}:{line}: {text}" for path in files(SOURCE) for line, text in _compares(path)]
    assert not found


def _compares(path: Path) -> Iterator[tuple[int, str]]:
    """Where the text of a secret (`.reveal()`) meets another text by `==`, `!=` or `in`; a literal is no secret."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Compare) and all(isinstance(op, KINDS) for op in node.ops):
            sides = (node.left, *node.comparators)
            shown = [side for side in sides if ".reveal()" in ast.unparse(side)]
            others = [side for side in sides if side not in shown]
            if shown and not (others and all(_literal(side) for side in others)):
                yield node.lineno, ast.unparse(node)


def _literal(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) or (isinstance(node, ast.Set) and all(map(_literal, node.elts)))
