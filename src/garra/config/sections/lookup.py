"""What the sections say about a place: found by its keys, without values."""

import types
from collections.abc import Iterator
from typing import Annotated, Any, Union, get_args, get_origin

from garra.config import originals
from garra.config.sections.channels import Account
from garra.config.sections.fields import Closed, Section, Spec, specs
from garra.config.sections.root import Config
from garra.core.dotted import Path
from garra.core.secret import Secret
from garra.core.value import frozen


@frozen
class Place:
    """A place in the configuration: `known` when the sections name it, `secret` when it holds one.

    `free` places hold what somebody else defines; `closed` is the value that an unknown choice is read as;
    `required` places have no default.
    """

    known: bool
    secret: bool = False
    free: bool = False
    required: bool = False
    closed: str | bool | None = None


def _unwrapped(annotation: Any) -> tuple[Any, ...]:
    """The plain alternatives of an annotation."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return _unwrapped(get_args(annotation)[0])
    if origin in (Union, types.UnionType):
        return tuple(inner for branch in get_args(annotation) for inner in _unwrapped(branch))
    return (annotation,)


def _section(annotation: Any) -> type[Section] | None:
    found = (kind for kind in _unwrapped(annotation) if isinstance(kind, type) and not get_origin(kind))
    return next((kind for kind in found if issubclass(kind, Section)), None)


def _inner(annotation: Any, part: str | int) -> Any:
    """The annotation below an object or list without fields of its own; None when nothing may stand there."""
    for kind in _unwrapped(annotation):
        origin, inner = get_origin(kind), get_args(kind)
        if kind is Any:
            return Any
        if origin is dict and isinstance(part, str):
            return inner[1]
        if origin is tuple and isinstance(part, int):
            return inner[0]
    return None


def place(path: Path) -> Place:
    """What the sections say about a path."""
    annotation: Any = Config
    field: Spec | None = None
    for part in path:
        section = _section(annotation)
        field = specs(section).get(str(part)) if section is not None else None
        if section is not None and field is None:
            return Place(known=False, free=section.open)
        annotation = field.kind if field is not None else _inner(annotation, part)
        if annotation is Any:
            return Place(known=True, free=True)
        if annotation is None:
            return Place(known=False)
    closed = next((mark.value for mark in field.marks if isinstance(mark, Closed)), None) if field else None
    secret = any(kind is Secret for kind in _unwrapped(annotation))
    return Place(known=True, secret=secret, required=field is not None and field.required, closed=closed)


@frozen
class Odd:
    """A key that nobody names, and the `names` that could stand there.

    Not `sure`: further keys may belong to somebody else there, so that it is a slip only when it is like a name.
    """

    at: Path
    names: tuple[str, ...]
    sure: bool


def keys_of(section: type[Section]) -> frozenset[str]:
    """The keys that a section names."""
    return frozenset(specs(section))


def unknown(tree: Any, annotation: Any = Config, at: Path = ()) -> Iterator[Odd]:
    """The keys of a tree that no section names. Those of channels are not looked at: the channels declare them."""
    section = _section(annotation)
    if section is not None and isinstance(tree, dict):
        fields = specs(section)
        for key, value in tree.items():
            if key in fields:
                yield from unknown(value, fields[key].kind, (*at, key))
            elif not issubclass(section, Account):
                others = originals.of_section(section.__name__)
                if key not in (others or ()):
                    sure = not section.open if others is None else originals.MORE not in others
                    yield Odd((*at, key), (*fields, *(others or ())), sure)
    elif isinstance(tree, dict):
        for key, value in tree.items():
            yield from unknown(value, _inner(annotation, key), (*at, key))
    elif isinstance(tree, list):
        for index, value in enumerate(tree):
            yield from unknown(value, _inner(annotation, index), (*at, index))


def secret_at(path: Path) -> bool:
    """Whether the sections hold a secret at this path."""
    return place(path).secret
