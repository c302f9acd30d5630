"""What the sections are made of: the common model, secrets, closed choices."""

from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, Field, GetPydanticSchema
from pydantic_core import PydanticCustomError, core_schema

from garra.core.secret import Secret
from garra.core.value import frozen


def camel(name: str) -> str:
    """The key of an attribute. As the library's own, without the patterns that it looks for in each of hundreds."""
    first, *more = name.split("_")
    return first + "".join(word.title() for word in more)


class Section(BaseModel):
    """A part of the configuration. Its keys are those of the file (camelCase), its attributes snake_case.

    Unknown keys are kept in `model_extra`; they are warned about unless the section is `open`.
    """

    model_config = ConfigDict(
        extra="allow", frozen=True, alias_generator=camel, defer_build=True, protected_namespaces=()
    )
    open: ClassVar[bool] = False


class OpenSection(Section):
    """A part whose further keys belong to someone else (a channel, a plugin), so that they are no cause for warning."""

    open: ClassVar[bool] = True


_Section = TypeVar("_Section", bound=Section)


def part(_kind: type[_Section]) -> _Section:
    """A field that holds a section: where the file has none, all of it is as usual.

    The default is validated as if it stood in the file. Making it by the section's own class would have each section
    built once more beside the whole.
    """
    field: _Section = Field(default_factory=dict, validate_default=True)
    return field


@frozen
class Closed:
    """Marks a choice on which safety depends: an unknown value is read as `value`, the closed one, with a warning."""

    value: str | bool


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


SecretText = Annotated[Secret, GetPydanticSchema(_secret_schema)]
"""A field that holds a secret; the file has text, `${VARIABLE}`, or a reference `{source, provider, id}`."""
