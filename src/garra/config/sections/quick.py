"""Reading what is written plainly: each value of exactly the kind that its field has. What is not, pydantic judges.

Nothing here converts beyond that and nothing here complains: a doubt is a reason to ask `thorough`.
"""

from __future__ import annotations

import importlib
import types
from collections.abc import Callable
from functools import cache
from math import isfinite
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Union, cast, get_args, get_origin

from garra.config.sections.fields import (
    AfterValidator,
    BeforeValidator,
    Bounds,
    Given,
    SecretText,
    Section,
    bare,
    specs,
)
from garra.core.secret import Secret

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

Reading = Callable[[Any], Any]
"""From a value of the file to that of the attribute. Raises ValueError for a doubt."""

S = TypeVar("S", bound=Section)


def read(section: type[S], tree: Any) -> S:
    """Read a tree. Raises pydantic's ValidationError with every fault of it."""
    try:
        return plainly(section, tree)
    except (ValueError, TypeError):
        found: S = importlib.import_module("garra.config.sections.thorough").read(section, tree)
        return found


def checked(section: type[S], tree: Any) -> tuple[S | None, list[ErrorDetails]]:
    """What is read from a tree, or every fault of it, with pydantic's `loc`, `msg` and `type`."""
    try:
        return plainly(section, tree), []
    except (ValueError, TypeError):
        judged = importlib.import_module("garra.config.sections.thorough").judged
        return cast("tuple[S | None, list[ErrorDetails]]", judged(section, tree))


def plainly(section: type[S], tree: Any) -> S:
    """Read a tree that is written plainly. Raises ValueError or TypeError where pydantic must judge."""
    if isinstance(tree, section):
        return tree
    if type(tree) is not dict:
        raise ValueError
    kind: Any = section
    readings, values, extra = _readings(kind), dict[str, Any](), dict[str, Any]()
    for key, value in tree.items():
        if (known := readings.get(key)) is not None:
            name, reading = known
            values[name] = reading(value)
        else:
            extra[_text(key)] = value
    if not _required(kind).issubset(values):
        raise ValueError
    return section.made(values, extra)


def usual(section: type[Section], name: str, value: Any) -> Any:
    """The default of an attribute as if it stood in the file."""
    kind: Any = section
    return next(reading for named, reading in _readings(kind).values() if named == name)(value)


class _Late:
    """The reading of a field that is made when a file has it: few have many."""

    __slots__ = ("_made", "_make")

    def __init__(self, make: Callable[[], Reading]) -> None:
        self._make = make
        self._made: Reading | None = None

    def __call__(self, value: Any) -> Any:
        if self._made is None:
            self._made = self._make()
        return self._made(value)


@cache
def _readings(section: Any) -> dict[str, tuple[str, Reading]]:
    def late(kind: Any, marks: tuple[Any, ...]) -> Reading:
        return _Late(lambda: _marked(kind, marks))

    return {key: (spec.name, late(spec.kind, (*spec.marks, spec.given))) for key, spec in specs(section).items()}


@cache
def _required(section: Any) -> frozenset[str]:
    return frozenset(spec.name for spec in specs(section).values() if spec.required)


def _marked(kind: Any, marks: tuple[Any, ...]) -> Reading:
    """The reading of a kind with what stands before and after it."""
    reading = _reading(kind)
    for mark in marks:
        bounds = mark.bounds if isinstance(mark, Given) else None
        if isinstance(mark, BeforeValidator):
            reading = _chain(mark.call, reading)
        elif isinstance(mark, AfterValidator):
            reading = _chain(reading, mark.call)
        elif bounds is not None:
            reading = _chain(reading, _bounded(bounds))
    return reading


def _chain(first: Reading, then: Reading) -> Reading:
    return lambda value: then(first(value))


def _bounded(bounds: Bounds) -> Reading:
    ge, gt, le, lt, least = bounds.ge, bounds.gt, bounds.le, bounds.lt, bounds.min_length

    def check(value: Any) -> Any:
        if value is not None:
            low = (ge is not None and value < ge) or (gt is not None and value <= gt)
            high = (le is not None and value > le) or (lt is not None and value >= lt)
            if low or high or (least is not None and len(value) < least):
                raise ValueError
        return value

    return check


def _reading(kind: Any) -> Reading:
    if kind is SecretText:
        return _secret
    inner, marks = bare(kind)
    if marks:
        return _marked(inner, marks)
    if (plain := PLAIN.get(kind)) is not None:
        return plain
    origin, args = get_origin(kind), get_args(kind)
    if origin is Literal:
        return _choice(args)
    if origin in (Union, types.UnionType):
        return _either([_reading(branch) for branch in args])
    if origin is tuple:
        return _listed(_reading(args[0]))
    if origin is dict:
        return _mapped(_reading(args[0]), _reading(args[1]))
    return lambda value: plainly(kind, value)


def _choice(allowed: tuple[Any, ...]) -> Reading:
    def choose(value: Any) -> Any:
        if any(type(value) is type(each) and value == each for each in allowed):
            return value
        raise ValueError

    return choose


def _either(branches: list[Reading]) -> Reading:
    """No value suits two of them, for each takes its own kind alone."""

    def choose(value: Any) -> Any:
        for branch in branches:
            try:
                return branch(value)
            except (ValueError, TypeError):
                continue
        raise ValueError

    return choose


def _listed(inner: Reading) -> Reading:
    def each(value: Any) -> Any:
        if type(value) is not list:
            raise ValueError
        return tuple([inner(item) for item in value])

    return each


def _mapped(named: Reading, inner: Reading) -> Reading:
    def each(value: Any) -> Any:
        if type(value) is not dict:
            raise ValueError
        return {named(key): inner(item) for key, item in value.items()}

    return each


def _secret(value: Any) -> Secret:
    return value if isinstance(value, Secret) else Secret(_text(value))


def _exactly(kind: type) -> Reading:
    def same(value: Any) -> Any:
        if type(value) is not kind:
            raise ValueError
        return value

    return same


def _number(value: Any) -> float:
    if type(value) is int or (type(value) is float and isfinite(value)):
        return float(value)
    raise ValueError


_text = _exactly(str)
PLAIN: dict[Any, Reading] = {
    Any: lambda value: value,
    str: _text,
    bool: _exactly(bool),
    int: _exactly(int),
    float: _number,
    type(None): _exactly(type(None)),
}
