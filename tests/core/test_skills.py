"""Which skills are fit for use, and how the prompt names them."""

from __future__ import annotations

import pytest

from garra.core.skills import Judged, Needs, Skill, World, judge, listed, read, shadow

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
