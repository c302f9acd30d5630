"""What a method answers and raises, as its code says: the keys of the objects it returns, the errors in its reach.

Read from the source: of a function, and of those of the same module that it returns the value of. What is put together
elsewhere is said by hand (`words/methods.toml`).
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator
from functools import cache
from types import ModuleType
from typing import Any

Function = ast.FunctionDef | ast.AsyncFunctionDef
DEEP = 4
"""How many calls are followed."""


@cache
def functions(module: ModuleType) -> dict[str, Function]:
    """The functions of a module by name, methods too."""
    found: dict[str, Function] = {}
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, Function):
            found.setdefault(node.name, node)
    return found


def keys(run: Callable[..., Any]) -> tuple[str, ...]:
    """The keys of what `run` returns, in their order; empty where they stand elsewhere."""
    module = inspect.getmodule(run)
    assert module is not None
    known = functions(module)
    return tuple(dict.fromkeys(_returned(known[run.__name__], known, (run.__name__,))))


def raises(run: Callable[..., Any], names: frozenset[str]) -> tuple[str, ...]:
    """Which errors of `names` are raised by `run` and the functions of its module that it calls."""
    module = inspect.getmodule(run)
    assert module is not None
    known = functions(module)
    reached, waiting = set[str](), [run.__name__]
    found: list[str] = []
    while waiting:
        name = waiting.pop()
        if name in reached or name not in known:
            continue
        reached.add(name)
        for node in ast.walk(known[name]):
            if isinstance(node, ast.Raise) and node.exc is not None and (error := _called(node.exc)) in names:
                found.append(error)
            elif isinstance(node, ast.Call):
                waiting.append(_called(node))
    return tuple(dict.fromkeys(found))


def _called(node: ast.expr) -> str:
    """The name that is called, without what stands before its last point."""
    target = node.func if isinstance(node, ast.Call) else node
    if isinstance(target, ast.Name):
        return target.id
    return target.attr if isinstance(target, ast.Attribute) else ""


def _returned(function: Function, known: dict[str, Function], through: tuple[str, ...]) -> Iterator[str]:
    set_to: dict[str, list[ast.expr]] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            set_to.setdefault(node.targets[0].id, []).append(node.value)
        elif isinstance(node, ast.AnnAssign | ast.AugAssign) and isinstance(node.target, ast.Name) and node.value:
            set_to.setdefault(node.target.id, []).append(node.value)
    for node in ast.walk(function):
        if isinstance(node, ast.Return) and node.value is not None:
            yield from _Value(set_to, known, through).keys(node.value)


class _Value:
    """Reads the keys of one returned value."""

    def __init__(self, set_to: dict[str, list[ast.expr]], known: dict[str, Function], through: tuple[str, ...]) -> None:
        self._set_to = dict(set_to)
        self._known = known
        self._through = through

    def keys(self, node: ast.expr) -> Iterator[str]:
        match node:
            case ast.Await():
                yield from self.keys(node.value)
            case ast.Dict():
                yield from self._literal(node)
            case ast.BinOp():
                yield from self._each(node.left, node.right)
            case ast.IfExp():
                yield from self._each(node.body, node.orelse)
            case ast.BoolOp():
                yield from self._each(*node.values)
            case ast.Name():
                yield from self._each(*self._set_to.pop(node.id, ()))
            case ast.Call():
                yield from self._call(node)
            case _:
                return

    def _each(self, *nodes: ast.expr) -> Iterator[str]:
        for node in nodes:
            yield from self.keys(node)

    def _literal(self, node: ast.Dict) -> Iterator[str]:
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                yield from self.keys(value)
            elif isinstance(key, ast.Constant):
                yield str(key.value)

    def _call(self, node: ast.Call) -> Iterator[str]:
        name = _called(node)
        if name == "Reply" and node.args:
            yield from self.keys(node.args[0])
            return
        if name == "to_thread" and node.args:
            name = _called(node.args[0])
        if not self._ours(node) or name in self._through or name not in self._known or len(self._through) > DEEP:
            return
        yield from _returned(self._known[name], self._known, (*self._through, name))

    @staticmethod
    def _ours(node: ast.Call) -> bool:
        """A function of the module, or of the same object; not one of another."""
        where = node.func
        if isinstance(where, ast.Name):
            return True
        return (
            isinstance(where, ast.Attribute)
            and isinstance(where.value, ast.Name)
            and where.value.id in ("self", "asyncio")
        )
