"""Two readings of the sections: the quick one gives what pydantic gives, or leaves it to pydantic."""

from __future__ import annotations

import subprocess
import sys
import types
from copy import copy
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from garra.config.sections import Config, quick, thorough
from garra.config.sections.agents import ContextPruning
from garra.config.sections.channels import Channel
from garra.config.sections.fields import Section, specs
from garra.config.sections.memory import ExtraPath
from garra.config.sections.models import CatalogModel
from garra.config.sections.sandbox import Egress
from garra.core.secret import Secret

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 70_000),
    st.sampled_from([0.5, -1.0, 7.0, 1e300]),
    st.sampled_from(["", "5", "true", "2mb", "5m", "on", "allow", "${X}", "off"]),
)
ODD = st.one_of(SCALARS, st.lists(SCALARS, max_size=2), st.dictionaries(st.sampled_from(["a", "enabled"]), SCALARS))


def values(kind: Any) -> st.SearchStrategy[Any]:
    """Mostly what the kind takes."""
    origin, args = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return values(args[0])
    if origin in (Union, types.UnionType):
        return st.one_of([values(each) for each in args])
    if origin is Literal:
        return st.sampled_from(args)
    if origin is tuple:
        return st.lists(values(args[0]), max_size=2)
    if origin is dict:
        return st.dictionaries(st.sampled_from(["main", "b", "gpt"]), values(args[1]), max_size=2)
    if isinstance(kind, type) and issubclass(kind, Section):
        return st.deferred(lambda: trees(kind))
    plain = {str: st.sampled_from(["", "x", "5m", "10"]), int: st.integers(-1, 2_000_000), bool: st.booleans()}
    floats = st.sampled_from([0, 1, 0.25, 30.0, -2.5])
    return {**plain, float: floats, Secret: st.just("sesame"), type(None): st.none()}.get(kind, SCALARS)


def trees(section: type[Section]) -> st.SearchStrategy[dict[str, Any]]:
    fields = {key: spec.kind for key, spec in specs(section).items()}

    @st.composite
    def tree(draw: st.DrawFn) -> dict[str, Any]:
        keys = draw(st.lists(st.sampled_from(sorted(fields)), max_size=4, unique=True))
        found = {key: draw(values(fields[key]) if draw(st.integers(0, 7)) else ODD) for key in keys}
        return found | ({"strange": draw(SCALARS)} if draw(st.integers(0, 5)) == 0 else {})

    return tree()


@settings(max_examples=300, deadline=None)
@given(trees(Config))
def test_what_is_read_quickly_is_what_pydantic_reads(tree: dict[str, Any]) -> None:
    """Where the quick reading has no doubt."""
    try:
        found = quick.plainly(Config, tree)
    except (ValueError, TypeError):
        return
    judged = thorough.read(Config, tree)
    assert found == judged
    assert found.model_fields_set == judged.model_fields_set
    assert repr(found.model_dump()) == repr(judged.model_dump())
    assert repr(found.model_dump(exclude_unset=True)) == repr(judged.model_dump(exclude_unset=True))


@settings(max_examples=60, deadline=None)
@given(st.one_of(trees(Channel), ODD))
def test_either_way_a_reading_ends(tree: Any) -> None:
    """With a section, or with what pydantic says against it; nothing else gets out."""
    try:
        found = Channel.model_validate(tree)
    except ValidationError:
        return
    assert found == Channel.model_validate(found.model_dump(by_alias=True, exclude_unset=True, mode="json"))


def test_defaults_are_those_of_pydantic() -> None:
    usual = thorough.model(Config).model_validate({})
    assert Config().model_dump(by_alias=True) == usual.model_dump(by_alias=True)
    assert Config() == Config.model_validate({}) == thorough.read(Config, {})
    assert ContextPruning().ttl == 300_000  # 5m, read as if it stood in the file


def test_what_is_written_otherwise_is_converted() -> None:
    tree = {"gateway": {"port": "4711"}, "agents": {"defaults": {"timeoutSeconds": "5"}}}
    with pytest.raises(ValueError, match=r"^$"):
        quick.plainly(Config, tree)
    found = Config.model_validate(tree)
    assert (found.gateway.port, found.agents.defaults.timeout_seconds) == (4711, 5.0)


@pytest.mark.parametrize(
    ("section", "tree"),
    [(CatalogModel, {"id": "", "name": "x"}), (ExtraPath, {}), (Egress, {"ask": "maybe"}), (Egress, []),
     (Egress, {"allow": ["a", 1]})],
)  # fmt: skip
def test_what_will_not_do_is_said_by_pydantic(section: type[Section], tree: Any) -> None:
    with pytest.raises(ValidationError):
        section.model_validate(tree)


def test_a_section_is_a_value() -> None:
    one = Egress.model_validate({"allow": ["a.example"], "more": 1})
    other = one.model_copy(update={"ask": "off"})
    assert (one.ask, other.ask, other.allow, other.model_extra) == (None, "off", ("a.example",), {"more": 1})
    assert other.model_fields_set == {"allow", "ask", "more"}
    assert one != other
    assert one != Egress.model_validate({"allow": ["a.example"]})
    assert Egress.model_validate({"ask": None}) == Egress()
    assert Egress() != "Egress()"
    assert hash(one) == hash(copy(one))
    assert repr(other) == "Egress(allow=('a.example',), ask='off')"
    with pytest.raises(AttributeError, match="cannot be changed"):
        one.ask = "off"
    assert other.model_dump(exclude={"ask"}, mode="json") == {"allow": ["a.example"], "more": 1}
    assert Egress().model_dump(exclude_none=True) == {}


def test_a_plain_configuration_needs_no_pydantic() -> None:
    code = (
        "import sys\nfrom garra.config.validate import check\n"
        "found = check({'gateway': {'port': 1, 'auth': {'token': 'x'}}, 'channels': {'t': {'dmPolicy': 'open'}}})\n"
        "assert found.config is not None and not found.issues\nprint('pydantic' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout == "False\n"
