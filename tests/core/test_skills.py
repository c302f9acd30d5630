"""Which skills are fit for use, and how the prompt names them."""

from __future__ import annotations

import pytest

from garra.core.skills import Hint, Judged, Needs, Skill, World, judge, lacks, listed, read, shadow
from garra.core.value import replace

NOTHING = World(lambda _: False, lambda _: False, lambda _: False)
ALL = World(lambda _: True, lambda _: True, lambda _: True)


def skill(name: str = "s", needs: Needs | None = None, *, always: bool = False, hidden: bool = False) -> Skill:
    return Skill(name, "does it", f"/home/me/{name}/SKILL.md", "managed", needs or Needs(), always, hidden)


@pytest.mark.req("EXT-10", "COF-21")
def test_a_file_is_read() -> None:
    text = """---
name: image-lab
description: >
  Makes
  images
homepage: https://x.y
disable-model-invocation: true
metadata: {"openclaw": {"emoji": "E", "always": true, "os": "linux", "primaryEnv": "KEY",
  "requires": {"bins": ["uv"], "anyBins": ["a", "b"], "env": ["KEY"], "config": ["browser.enabled"]}}}
---
# Body
"""
    assert read(text, "/p", "bundled", "folder") == Skill(
        "image-lab",
        "Makes images",
        "/p",
        "bundled",
        Needs(("uv",), ("a", "b"), ("KEY",), ("browser.enabled",), ("linux",)),
        always=True,
        hidden=True,
        emoji="E",
        homepage="https://x.y",
        primary_env="KEY",
    )


def test_a_file_that_says_little() -> None:
    plain = read("# Title\n\nFirst words.\n", "/p", "workspace", "folder")
    assert (plain.name, plain.description, plain.needs) == ("folder", "First words.", Needs())
    odd = read("---\nmetadata: {openclaw: {requires: 1, os: {a: 1}}, other: {}}\nname: [x]\n---\n", "/p", "extra", "f")
    assert (odd.name, odd.description, odd.needs) == ("f", "", Needs())
    assert read("---\nmetadata: {other: {}}\n---\n", "/p", "extra", "f").needs == Needs()


@pytest.mark.req("EXT-10")
def test_every_reason_is_named() -> None:
    needs = Needs(("gh",), ("a", "b"), ("KEY",), ("x.y",), ("darwin",))
    judged = judge(skill("s", needs), NOTHING, frozenset({"s"}))
    assert judged.reasons == (
        "switched off in skills.entries",
        "for darwin only",
        "missing program: gh",
        "missing one of the programs: a, b",
        "missing variable: KEY",
        "not set: x.y",
    )
    assert not judged.eligible
    assert judge(skill("s", Needs(("gh",), ("a",), ("KEY",), ("x.y",), ("linux",))), ALL).eligible


def test_always_is_stopped_by_the_platform_only() -> None:
    assert judge(skill(needs=Needs(bins=("gh",)), always=True), NOTHING).eligible
    assert not judge(skill(needs=Needs(os=("darwin",)), always=True), NOTHING).eligible


@pytest.mark.req("EXT-10")
def test_the_first_of_a_name_wins() -> None:
    first, second, other = skill("b"), skill("b", always=True), skill("a")
    assert shadow([first, second, other]) == (other, first)


@pytest.mark.req("EXT-10")
def test_the_list() -> None:
    long = Skill("long", "x" * 400, "/elsewhere/SKILL.md", "bundled")
    judged = [Judged(skill("a")), Judged(skill("b"), ("no",)), Judged(skill("c", hidden=True)), Judged(long)]
    lines = listed(judged, "/home/me")
    assert [one.line for one in lines] == [
        "- a: does it (~/a/SKILL.md)",
        f"- long: {'x' * 239}… (/elsewhere/SKILL.md)",
    ]
    assert [one.name for one in listed(judged, "/", limit=100)] == ["a"]


def test_what_its_programs_could_come_from_is_read_and_its_name_in_the_settings() -> None:
    text = """---
name: lab
metadata: {"openclaw": {"skillKey": "image.lab", "install": [
  {"id": "brew", "kind": "brew", "formula": "gemini-cli", "bins": ["gemini"], "label": "Install it"},
  {"kind": "node", "package": "x"}, {"kind": "odd"}, 7]}}
---
"""
    found = read(text, "/p", "managed", "folder")
    assert found.key == "image.lab"
    assert found.hints == (
        Hint("brew", "brew", "Install it", ("gemini",)),
        Hint("node-1", "node", "node x"),
        Hint("odd-2", "odd", "odd"),
    )
    assert skill("s").key == "s"


def test_what_the_settings_have_for_a_skill_is_no_longer_lacking() -> None:
    needs = Needs(env=("KEY", "OTHER"))
    mine = replace(skill("s", needs), primary_env="KEY")
    assert lacks(mine, NOTHING).env == ("KEY", "OTHER")
    assert lacks(mine, replace(NOTHING, given={"s": frozenset({""})})).env == ("OTHER",)
    assert lacks(mine, replace(NOTHING, given={"s": frozenset({"", "OTHER"})})) == Needs()
    assert lacks(mine, replace(NOTHING, given={"t": frozenset({"", "OTHER"})})).env == ("KEY", "OTHER")


def test_an_agent_may_have_a_list_of_its_own() -> None:
    assert judge(skill("s"), replace(ALL, only=frozenset({"s"}))).eligible
    assert judge(skill("s"), replace(ALL, only=frozenset())).reasons == ("not among the skills of this agent",)
    assert judge(replace(skill("s"), settings="k"), ALL, frozenset({"k"})).reasons == (
        "switched off in skills.entries",
    )
