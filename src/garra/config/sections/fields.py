"""What the sections are made of: the common class, fields, secrets, closed choices.

A section is declared as a pydantic model is, and read without the library: what a class costs there, and what a tree of
them costs to be looked through, is a third of a start. `quick` reads what is written plainly. Where it has a doubt,
`thorough` makes the pydantic models of the same declarations; they convert, and say what is wrong and where.
"""

import importlib
from collections.abc import Callable, Mapping
from functools import cache
from typing import Annotated, Any, ClassVar, Self, TypeVar, get_args, get_origin

from garra.core.secret import Secret
from garra.core.value import frozen

REQUIRED: Any = object()
"""The default of a field that has none."""


@frozen
class Closed:
    """Marks a choice on which safety depends: an unknown value is read as `value`, the closed one, with a warning."""

    value: str | bool


@frozen
class BeforeValidator:
    """Marks a field whose value goes through `call` before it is looked at. It raises ValueError."""

    call: Callable[[Any], Any]


@frozen
class AfterValidator:
    """Marks a field whose value goes through `call` once it is known to be of the kind. It raises ValueError."""

    call: Callable[[Any], Any]


@frozen
class Bounds:
    """What a number, or the length of a text, must keep to; by pydantic's words."""

    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    lt: float | None = None
    min_length: int | None = None


@frozen
class Given:
    """What a field is given beside its kind. `checked`: the default goes the way of a value from the file."""

    default: Any = REQUIRED
    factory: Callable[[], Any] | None = None
    alias: str | None = None
    bounds: Bounds | None = None
    checked: bool = False


def Field(  # noqa: N802 - the name that everybody knows
    default: Any = REQUIRED,
    *,
    default_factory: Callable[[], Any] | None = None,
    alias: str | None = None,
    validate_default: bool = False,
    **bounds: Any,
) -> Any:
    """What a field is given, as pydantic's; `bounds` are those of `Bounds`."""
    return Given(default, default_factory, alias, Bounds(**bounds) if bounds else None, validate_default)


def camel(name: str) -> str:
    """The key of an attribute."""
    first, *more = name.split("_")
    return first + "".join(word.title() for word in more)


class _Usual:
    """The usual value of a field, made for each section when somebody asks for it."""

    __slots__ = ("_given", "_name")

    def __init__(self, name: str, given: Given) -> None:
        self._name, self._given = name, given

    def __get__(self, section: Any, owner: type["Section"]) -> Any:
        if section is None:
            return self
        given = self._given
        made = given.factory() if given.factory else given.default
        if given.checked:
            made = importlib.import_module("garra.config.sections.quick").usual(owner, self._name, made)
        section.__dict__[self._name] = made
        return made


class Section:
    """A part of the configuration. Its keys are those of the file (camelCase), its attributes snake_case.

    Made without a file, everything in it is as usual. Nothing in it can be changed. Unknown keys are kept in
    `model_extra`; they are warned about unless the section is `open`. `model_fields_set` names what the file sets:
    attributes, and unknown keys. The names of the methods are pydantic's.
    """

    open: ClassVar[bool] = False
    given: ClassVar[Mapping[str, Given]] = {}
    model_extra: Mapping[str, Any]
    model_fields_set: frozenset[str]

    def __init_subclass__(cls) -> None:
        given = {name: value for name, value in vars(cls).items() if isinstance(value, Given)}
        for name, each in given.items():
            if each.factory or each.checked:
                setattr(cls, name, _Usual(name, each))
            elif each.default is REQUIRED:
                delattr(cls, name)
            else:
                setattr(cls, name, each.default)
        cls.given = {**cls.given, **given}

    def __init__(self, **values: Any) -> None:
        """`values` of attributes are taken as they are."""
        self.__dict__.update(values, model_extra={}, model_fields_set=frozenset(values))

    @classmethod
    def made(cls, values: Mapping[str, Any], extra: Mapping[str, Any]) -> Self:
        """A section with these values of its attributes, which are taken as they are, and these unknown keys."""
        section = cls.__new__(cls)
        section.__dict__.update(values, model_extra=extra, model_fields_set=frozenset((*values, *extra)))
        return section

    @classmethod
    def model_validate(cls, tree: Any) -> Self:
        """Read a tree. Raises pydantic's ValidationError with every fault of it."""
        found: Self = importlib.import_module("garra.config.sections.quick").read(cls, tree)
        return found

    def model_copy(self, *, update: Mapping[str, Any]) -> Self:
        """A copy with other values, which are taken as they are."""
        values = {name: getattr(self, name) for name in self.model_fields_set if name not in self.model_extra}
        return self.made({**values, **update}, self.model_extra)

    def model_dump(
        self,
        *,
        mode: str = "python",
        by_alias: bool = False,
        exclude_unset: bool = False,
        exclude_none: bool = False,
        exclude: frozenset[str] | set[str] = frozenset(),
    ) -> dict[str, Any]:
        """As plain values, unknown keys too; in mode `json` with lists for tuples. Secrets stay hidden."""
        how = {
            "mode": mode, "by_alias": by_alias, "exclude_unset": exclude_unset, "exclude_none": exclude_none
        }  # fmt: skip
        found = {
            key if by_alias else spec.name: _plain(getattr(self, spec.name), how)
            for key, spec in specs(type(self)).items()
            if spec.name not in exclude and (not exclude_unset or spec.name in self.model_fields_set)
        }
        found |= {key: _plain(value, how) for key, value in self.model_extra.items() if key not in exclude}
        return {key: value for key, value in found.items() if not exclude_none or value is not None}

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} is a value; {name} cannot be changed")

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other) or not isinstance(other, Section):
            return NotImplemented
        if self.model_extra != other.model_extra:
            return False
        told = {*self.model_fields_set, *other.model_fields_set}.difference(self.model_extra)
        return all(getattr(self, name) == getattr(other, name) for name in told)

    def __hash__(self) -> int:
        """Raises TypeError for a section that holds a dictionary."""
        return hash((type(self), *(getattr(self, spec.name) for spec in specs(type(self)).values())))

    def __repr__(self) -> str:
        """Without unknown keys: nobody knows which of them are secret."""
        names = sorted(self.model_fields_set.difference(self.model_extra))
        told = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{type(self).__name__}({told})"


class OpenSection(Section):
    """A part whose further keys belong to someone else (a channel, a plugin), so that they are no cause for warning."""

    open: ClassVar[bool] = True


def _plain(value: Any, how: Mapping[str, Any]) -> Any:
    if isinstance(value, Section):
        return value.model_dump(**how)
    if isinstance(value, dict):
        return {key: _plain(each, how) for key, each in value.items()}
    if isinstance(value, tuple | list):
        listed = [_plain(each, how) for each in value]
        return tuple(listed) if isinstance(value, tuple) and how["mode"] == "python" else listed
    return str(value) if isinstance(value, Secret) else value


_Section = TypeVar("_Section", bound=Section)


def part(kind: type[_Section]) -> _Section:
    """A field that holds a section: where the file has none, all of it is as usual."""
    field: _Section = Field(default_factory=kind)
    return field


class _Text:
    """Marks a secret, which the file has as text."""


SecretText = Annotated[Secret, _Text()]
"""A field that holds a secret; the file has text, `${VARIABLE}`, or a reference `{source, provider, id}`."""


@frozen
class Spec:
    """One field of a section: its attribute, its key in the file, its kind, what it is marked with."""

    name: str
    key: str
    kind: Any
    marks: tuple[Any, ...]
    given: Given

    @property
    def required(self) -> bool:
        return self.given.default is REQUIRED and self.given.factory is None


def specs(section: type[Section]) -> Mapping[str, Spec]:
    """The fields of a section by their keys in the file, those of the class it is made from first."""
    kind: Any = section
    return _specs(kind)


@cache
def _specs(section: Any) -> Mapping[str, Spec]:
    kinds: dict[str, Any] = {}
    for base in reversed(section.__mro__):
        if issubclass(base, Section) and base is not Section:
            kinds |= {name: kind for name, kind in base.__annotations__.items() if get_origin(kind) is not ClassVar}
    found = [_spec(section, name, kind) for name, kind in kinds.items()]
    return {spec.key: spec for spec in found}


def _spec(section: type[Section], name: str, kind: Any) -> Spec:
    given = section.given.get(name) or Given(getattr(section, name, REQUIRED))
    kind, marks = bare(kind)
    return Spec(name, given.alias or camel(name), kind, marks, given)


def bare(kind: Any) -> tuple[Any, tuple[Any, ...]]:
    """A kind without its marks, and these. The mark of a secret stays with it."""
    if get_origin(kind) is Annotated and kind is not SecretText:
        found, *marks = get_args(kind)
        return found, tuple(marks)
    return kind, ()
