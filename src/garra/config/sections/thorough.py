"""The sections as pydantic models: for what is not written plainly, for every fault with its place, and the schema."""

import types
from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from typing import Annotated, Any, ClassVar, TypeVar, Union, get_args, get_origin

import pydantic
from pydantic import BaseModel, ConfigDict, GetPydanticSchema
from pydantic_core import ErrorDetails, PydanticCustomError, core_schema

from garra.config.sections.fields import (
    REQUIRED,
    AfterValidator,
    BeforeValidator,
    Bounds,
    Given,
    SecretText,
    Section,
    Spec,
    bare,
    specs,
)
from garra.core.secret import Secret

S = TypeVar("S", bound=Section)


class Judged(BaseModel):
    """What the models have in common."""

    model_config = ConfigDict(extra="allow", frozen=True, defer_build=True, protected_namespaces=())
    section: ClassVar[type[Section]] = Section


def read(section: type[S], tree: Any) -> S:
    """Read a tree. Raises pydantic's ValidationError with every fault of it."""
    found: S = _taken(model(section).model_validate(tree))
    return found


def judged(section: type[S], tree: Any) -> tuple[S | None, list[ErrorDetails]]:
    """What is read from a tree, or every fault of it."""
    try:
        return read(section, tree), []
    except pydantic.ValidationError as fault:
        return None, fault.errors(include_url=False, include_context=True)


def model(section: type[Section]) -> type[Judged]:
    """The pydantic model of a section."""
    kind: Any = section
    return _model(kind)


@cache
def _model(section: Any) -> type[Judged]:
    fields: dict[str, Any] = {
        spec.name: (_kind(spec.kind, spec.marks), _field(spec)) for spec in specs(section).values()
    }
    made: type[Judged] = pydantic.create_model(section.__name__, __base__=Judged, __doc__=section.__doc__, **fields)
    made.section = section
    return made


def _field(spec: Spec) -> Any:
    given = spec.given
    if isinstance(given.factory, type) and issubclass(given.factory, Section):
        # As if an empty one stood in the file: made by its own model, each would be built once more beside the whole.
        return pydantic.Field(default_factory=dict, validate_default=True, alias=spec.key)
    if given.factory is not None:
        return pydantic.Field(default_factory=given.factory, alias=spec.key, **_bounds(given.bounds))
    default = ... if given.default is REQUIRED else given.default
    return pydantic.Field(default, validate_default=given.checked or None, alias=spec.key, **_bounds(given.bounds))


def _bounds(bounds: Bounds | None) -> dict[str, Any]:
    return {} if bounds is None else {name: value for name, value in asdict(bounds).items() if value is not None}


def _kind(kind: Any, marks: tuple[Any, ...] = ()) -> Any:
    """The kind in pydantic's words, with the models in the place of the sections."""
    found = _inner(kind)
    for mark in marks:
        said = _mark(mark)
        found = found if said is None else Annotated[found, said]
    return found


def _mark(mark: Any) -> Any:
    match mark:
        case BeforeValidator(call=call):
            return pydantic.BeforeValidator(call)
        case AfterValidator(call=call):
            return pydantic.AfterValidator(call)
        case Given(bounds=Bounds() as bounds):
            return pydantic.Field(**_bounds(bounds))
        case _:
            return None


def _inner(kind: Any) -> Any:
    if kind is SecretText:
        return SECRET
    inner, marks = bare(kind)
    if marks:
        return _kind(inner, marks)
    if isinstance(kind, type) and issubclass(kind, Section):
        return model(kind)
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return Union[tuple(_inner(each) for each in args)]  # noqa: UP007 - made of values
    if origin is tuple:
        return types.GenericAlias(tuple, (_inner(args[0]), ...))
    if origin is dict:
        return types.GenericAlias(dict, (args[0], _inner(args[1])))
    return kind


def _taken(value: Any) -> Any:
    """The sections in the place of the models."""
    if isinstance(value, Judged):
        extra: Mapping[str, Any] = value.model_extra or {}
        told = value.model_fields_set.difference(extra)
        return value.section.made({name: _taken(getattr(value, name)) for name in told}, extra)
    if isinstance(value, tuple):
        return tuple(_taken(each) for each in value)
    if isinstance(value, dict):
        return {key: _taken(each) for key, each in value.items()}
    return value


def _secret(value: Any) -> Secret:
    if isinstance(value, Secret):
        return value
    if isinstance(value, str):
        return Secret(value)
    raise PydanticCustomError("secret_type", "Input should be text, or a reference with source, provider and id")


def _secret_schema(_source: Any, _build: Any) -> core_schema.CoreSchema:
    text = core_schema.str_schema()
    return core_schema.json_or_python_schema(
        core_schema.no_info_after_validator_function(_secret, text),
        core_schema.no_info_plain_validator_function(_secret),
        serialization=core_schema.plain_serializer_function_ser_schema(str),
    )


SECRET = Annotated[Secret, GetPydanticSchema(_secret_schema)]
