"""A person's tools reach his own conversation; the owner's, what the owner's setting says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from garra.core.sight import Rules, Target, Viewer, Visibility, sees

ME = "agent:main:telegram:direct:7"
MINE = Target("agent:main:subagent:1", "main", (ME, "agent:main:main"))
OTHER = Target("agent:main:telegram:direct:8", "main")
FOREIGN = Target("agent:work:main", "work")
GUEST = Viewer(ME, "main")
OWNER = Viewer(ME, "main", owner=True)
HOME = Viewer("agent:main:main", "main", owner=True, main=True)


@pytest.mark.parametrize(
    ("viewer", "target", "visibility", "seen"),
    [
        (GUEST, Target(ME, "main"), "self", True),
        (GUEST, MINE, "self", False),
        (GUEST, MINE, "tree", True),
        (GUEST, OTHER, "all", False),
        (GUEST, FOREIGN, "all", False),
        (OWNER, OTHER, "tree", False),
        (OWNER, OTHER, "agent", True),
        (OWNER, FOREIGN, "agent", False),
        (OWNER, FOREIGN, "all", True),
        (HOME, OTHER, "tree", True),
        (HOME, OTHER, "self", False),
        (HOME, FOREIGN, "tree", False),
        (Viewer("agent:main:main", "main", owner=True, main=True, fenced=True), OTHER, "all", False),
    ],
)
def test_who_reaches_what(viewer: Viewer, target: Target, visibility: Visibility, seen: bool) -> None:
    assert sees(viewer, target, Rules(visibility)) is seen


@pytest.mark.parametrize(
    ("between", "allow", "seen"),
    [
        (False, (), False),
        (True, ("main", "work"), True),
        (True, ("main",), False),
        (True, ("WORK", "main"), False),
        (True, ("W*", "main"), True),
        (True, ("*",), True),
        (True, ("", " "), False),
    ],
)
def test_which_agents_reach_each_other(between: bool, allow: tuple[str, ...], seen: bool) -> None:
    assert sees(OWNER, FOREIGN, Rules("all", between, allow)) is seen


_keys = st.sampled_from([ME, "agent:main:main", "agent:work:main", "agent:main:subagent:1"])
_agents = st.sampled_from(["main", "work"])
_targets = st.builds(Target, _keys, _agents, st.lists(_keys, max_size=2).map(tuple))


@given(st.builds(Viewer, _keys, _agents), _targets, st.sampled_from(["self", "tree", "agent", "all"]))
def test_somebody_who_is_no_owner_reaches_his_own_alone(viewer: Viewer, target: Target, visibility: Visibility) -> None:
    if sees(viewer, target, Rules(visibility)):
        assert viewer.key in (target.key, *target.above)
