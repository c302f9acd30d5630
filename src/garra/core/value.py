"""Values: frozen, slotted, compared by what they hold; `dataclasses.replace`, `fields` and `asdict` work on them.
Records are the same, but may be changed.

To define a slotted dataclass compiles code and costs half a millisecond of every start; there are hundreds. This
costs some microseconds: the class becomes a `msgspec.Struct`. What a struct cannot do (fields that are not shown, not
compared or not given, a `__post_init__`, slots of its own) is left to `dataclass`. What runs on the way to `--version`
and `status` uses `dataclass` itself, since there msgspec is not loaded at all.
"""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar, cast, dataclass_transform

import msgspec

T = TypeVar("T")
MISSING = dataclasses.MISSING
_KIND = vars(dataclasses)["_FIELD"]


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field,))
def frozen(cls: type[T]) -> type[T]:
    """Make the class a frozen value whose fields are its annotated names."""
    return _made(cls, fixed=True)


@dataclass_transform(field_specifiers=(dataclasses.field,))
def record(cls: type[T]) -> type[T]:
    """Make the class a slotted record whose fields are its annotated names: as `dataclass(slots=True)`."""
    return _made(cls, fixed=False)


def replace(value: T, /, **changes: Any) -> T:
    """`dataclasses.replace`, twenty times as quick for what is a struct. Raises TypeError for a field it has not."""
    if isinstance(value, msgspec.Struct):
        return msgspec.structs.replace(value, **changes)
    return cast("T", dataclasses.replace(cast(Any, value), **changes))


def _made(cls: type[T], *, fixed: bool) -> type[T]:
    if issubclass(cls, msgspec.Struct):
        raise TypeError(f"{cls.__name__} has a value as its base; values have none, put one into the other")
    if _beyond(cls):
        return dataclasses.dataclass(frozen=fixed, slots=True)(cls)
    space: dict[str, Any] = {k: v for k, v in vars(cls).items() if k not in ("__dict__", "__weakref__")}
    given = {name: each for name, each in space.items() if isinstance(each, dataclasses.Field)}
    for name, each in given.items():
        _default(space, name, each)
    bases = (msgspec.Struct, *(base for base in cls.__bases__ if base is not object))
    made: Any = cast(Any, type(msgspec.Struct))(cls.__name__, bases, space, frozen=fixed)
    made.__dataclass_fields__ = _Fields(given)
    return cast("type[T]", made)


def _beyond(cls: type) -> bool:
    """Whether it needs what only `dataclass` has."""
    if "__post_init__" in vars(cls) or any(hasattr(base, "__dataclass_fields__") for base in cls.__bases__):
        return True
    given = (each for each in vars(cls).values() if isinstance(each, dataclasses.Field))
    return any(not (each.repr and each.compare and each.init) or each.kw_only is True for each in given)


def _default(space: dict[str, Any], name: str, given: dataclasses.Field[Any]) -> None:
    """The default goes into `space` as msgspec takes it."""
    if given.default_factory is not MISSING:
        space[name] = msgspec.field(default_factory=given.default_factory)
    elif given.default is not MISSING:
        space[name] = given.default
    else:
        del space[name]


class _Fields:
    """The fields as dataclasses know them, made when somebody asks: few are asked for, and each takes memory."""

    def __init__(self, given: dict[str, Any]) -> None:
        self._given = given

    def __get__(self, _: object, owner: Any) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        for name, kind in owner.__annotations__.items():
            if not str(kind).startswith(("ClassVar", "typing.ClassVar")):
                made = fields[name] = self._given.get(name) or dataclasses.field()
                made.name, made.type, made._field_type = name, kind, _KIND  # noqa: SLF001 - as `dataclass` does
        owner.__dataclass_fields__ = fields
        return fields
