"""Values: what `frozen` promises, beside what `dataclass(frozen=True, slots=True)` does."""

from __future__ import annotations

import dataclasses
import pickle
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytest

from garra.core.value import frozen, record, replace


@frozen
class Base:
    name: str


@frozen
class Made:
    """Words."""

    name: str
    kind: ClassVar[str] = "base"
    count: int = 0
    tags: tuple[str, ...] = ()
    more: dict[str, int] = field(default_factory=dict)

    @property
    def double(self) -> int:
        return 2 * self.count


@dataclass(frozen=True, slots=True)
class Plain:
    name: str
    count: int = 0
    tags: tuple[str, ...] = ()
    more: dict[str, int] = field(default_factory=dict)


def test_it_is_made_and_shown_as_a_dataclass_is() -> None:
    made = Made("a", 2, ("x",))
    assert (made.name, made.count, made.tags, made.more, made.double) == ("a", 2, ("x",), {}, 4)
    assert repr(made) == repr(Plain("a", 2, ("x",))).replace("Plain", "Made")
    assert Made.__doc__ == "Words."
    assert Made.kind == "base"
    assert Made("a").more is not Made("a").more


def test_it_is_compared_by_what_it_holds() -> None:
    assert Made("a", 1) == Made("a", 1) != Made("a", 2)
    other: object = Base("a")
    assert other != Made("a")
    assert len({Base("a"), Base("a"), Base("b")}) == 2


def test_it_cannot_be_changed_or_added_to() -> None:
    made: Any = Made("a")
    with pytest.raises(AttributeError):
        made.count = 3
    with pytest.raises(AttributeError):
        made.other = 3
    with pytest.raises(TypeError):
        Made("a", wrong=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Made()  # type: ignore[call-arg]


def test_the_tools_of_dataclasses_work_on_it() -> None:
    made = Made("a", 1, more={"k": 1})
    assert dataclasses.replace(made, count=5) == Made("a", 5, more={"k": 1})
    assert [each.name for each in dataclasses.fields(made)] == ["name", "count", "tags", "more"]
    assert dataclasses.asdict(made) == {"name": "a", "count": 1, "tags": (), "more": {"k": 1}}
    assert dataclasses.is_dataclass(made)


def test_what_a_struct_cannot_do_is_left_to_dataclass() -> None:
    @frozen
    class Hiding:
        secret: str = field(repr=False)
        seen: int = field(default=0, compare=False)

    assert "seven" not in repr(Hiding("seven"))
    assert Hiding("a", 1) == Hiding("a", 2)

    @frozen
    class Checked:
        count: int

        def __post_init__(self) -> None:
            if self.count < 0:
                raise ValueError("negative")

    with pytest.raises(ValueError, match="negative"):
        Checked(-1)


def test_a_value_has_no_value_as_its_base() -> None:
    with pytest.raises(TypeError, match="as its base"):

        @frozen
        class Under(Base):
            more: int = 0


def test_it_is_matched_by_position_and_travels() -> None:
    made = Made("a", 7)
    match made:
        case Made(name, count):
            assert (name, count) == ("a", 7)
    assert pickle.loads(pickle.dumps(made)) == made


@record
class Kept:
    name: str = field()
    seen: list[int] = field(default_factory=list)
    mood: str = field(default="calm")


def test_a_record_is_changed_and_compared() -> None:
    kept = Kept("a")
    kept.name = "b"
    kept.seen.append(1)
    assert kept == Kept("b", [1]) != Kept("b")
    assert repr(kept).endswith("Kept(name='b', seen=[1], mood='calm')")
    anything: Any = kept
    with pytest.raises(AttributeError):
        anything.other = 3
    with pytest.raises(TypeError):
        hash(kept)


def test_a_record_that_no_struct_can_be_is_a_dataclass() -> None:
    @record
    class Counted:
        name: str
        length: int = field(init=False)

        def __post_init__(self) -> None:
            self.length = len(self.name)

    assert Counted("abc").length == 3


def test_replacing_makes_another_of_either_kind() -> None:
    made = Made("a", 1)
    assert replace(made, count=5) == Made("a", 5)
    assert made.count == 1
    assert replace(Kept("a", [1]), name="b") == Kept("b", [1])
    assert replace(Plain("a"), count=2) == Plain("a", 2)
    with pytest.raises(TypeError):
        replace(made, wrong=1)
    with pytest.raises(TypeError):
        replace(Plain("a"), wrong=1)
