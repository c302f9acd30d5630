"""The page on tools says of each what the code says, and names what is not built yet."""

from __future__ import annotations

import re

from garra.core import policy
from tests.architecture.caps import ROOT
from tests.contracts.tool.every import tools

PAGE = (ROOT / "docs" / "concepts" / "tools.md").read_text()
BUILT = {tool.info.name: tool.info for tool in tools()}
PROFILES = {name: items for name, items in policy.PROFILES.items() if items is not None}


def listed(cell: str) -> list[str]:
    return [each for each in cell.split(", ") if each]


def test_each_tool_has_its_row() -> None:
    rows = re.findall(r"^\| `(\w+)` \| ([^|]*) \| ([^|]*) \| ?([^|]*) ?\|$", PAGE, re.M)
    assert {name for name, *_ in rows} == set(BUILT)
    for name, groups, profiles, effects in rows:
        own = [group for group, members in policy.GROUPS.items() if name in members] or list(BUILT[name].groups)
        assert listed(groups.strip()) == own, name
        assert listed(profiles.strip()) == [at for at, items in PROFILES.items() if {name, *own} & set(items)], name
        assert listed(effects.strip()) == list(BUILT[name].effects), name


def test_what_is_not_built_is_named() -> None:
    named = {name for members in policy.GROUPS.values() for name in members}
    named |= {name for items in PROFILES.values() for name in items if not name.startswith("group:")}
    told = re.search(r"Named in them and not built yet:\n(.*?)\.\n", PAGE, re.S)
    assert told is not None
    assert set(re.findall(r"`([\w-]+)`", told[1])) == named - set(BUILT)


def test_the_steps_are_the_ones_there_are() -> None:
    steps = re.findall(r"^\| (\d+) ([\w -]+?) \|", PAGE, re.M)
    assert [int(number) for number, _ in steps] == list(range(1, len(policy.ORDER)))
    assert [name for _, name in steps] == list(policy.ORDER[:-1]), "the last is the surface: HTTP"
