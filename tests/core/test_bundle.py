"""What a skill that is to be installed may consist of."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from garra.core import bundle
from garra.core.bundle import Changes, Entry, chosen, compared, place, slug, unseen
from garra.core.errors import UserError


def paths(*names: str, inside: str = "") -> list[str]:
    return sorted(chosen([Entry(name) for name in names], inside).files)


def test_a_skill_is_found_at_the_top_or_in_the_one_folder_that_has_it() -> None:
    assert paths("SKILL.md", "scripts/a.py", ".git/config", "x/node_modules/y.js") == ["SKILL.md", "scripts/a.py"]
    assert paths("./repo-1/SKILL.md", "repo-1//a.txt", "README.md") == ["SKILL.md", "a.txt"]
    assert paths("README.md", "skills/deep/SKILL.md") == ["SKILL.md"]
    assert paths("a/SKILL.md", "a/sub/SKILL.md") == ["SKILL.md", "sub/SKILL.md"]
    assert paths("s/one/SKILL.md", "s/two/SKILL.md", "s/two/b", inside="s/two/") == ["SKILL.md", "b"]
    found = chosen([Entry("SKILL.md", 5), Entry("a", 7), Entry("b/", kind="folder")])
    assert found.size == 12


@pytest.mark.parametrize(
    ("names", "why"),
    [
        (("README.md",), "no SKILL.md"),
        (("s/one/SKILL.md", "s/two/SKILL.md"), "holds 2 skills (s/one, s/two): choose one with --path"),
        ((*(f"s/{number}/SKILL.md" for number in range(9)),), "holds 9 skills"),
        (("SKILL.md", "skill.md"), "cannot both be there"),
        (("SKILL.md", "a", "a/b"), "cannot both be there"),
        (("SKILL.md", "a/b", "A"), "cannot both be there"),
        (("SKILL.md", *(f"f{number}" for number in range(256))), "more than 256 files"),
        (("SKILL.md", "../../etc/cron.d/x"), "leads out"),
        (("SKILL.md", "a/../../x"), "leads out"),
        (("SKILL.md", "/etc/passwd"), "leads out"),
        (("SKILL.md", "C:/x"), "holds a character"),
        (("SKILL.md", "a\\..\\b"), "holds a character"),
        (("SKILL.md", "a\0b"), "holds a character"),
        (("SKILL.md", "a\u202eb"), "holds a character"),
        (("SKILL.md", "."), "leads out"),
        (("SKILL.md", "a /b"), "begins or ends"),
        (("SKILL.md", "a."), "begins or ends"),
        (("SKILL.md", "x" * 201), "201 characters"),
        (("SKILL.md", ""), "0 characters"),
        (("SKILL.md", "/".join("abcdefghi")), "deeper than 8"),
    ],
)
def test_what_is_no_skill_or_leads_elsewhere_is_refused_whole(names: tuple[str, ...], why: str) -> None:
    with pytest.raises(UserError) as refused:
        paths(*names)
    assert why in refused.value.message
    assert "\n" not in refused.value.message


def test_a_folder_that_is_none_of_its_own() -> None:
    with pytest.raises(UserError, match=r"no SKILL\.md in two"):
        paths("one/SKILL.md", inside="two")


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        (Entry("x", kind="link"), "x is a link"),
        (Entry("x", kind="other"), "neither a file nor a folder"),
        (Entry("x", bundle.FILE_BYTES + 1), "larger than 1 MiB"),
    ],
)
def test_what_is_no_plain_small_file_is_refused(entry: Entry, why: str) -> None:
    with pytest.raises(UserError, match=why):
        chosen([Entry("SKILL.md"), entry])
    assert chosen([Entry("r/SKILL.md"), Entry("beside", entry.size, entry.kind)]).files.keys() == {"SKILL.md"}


def test_all_of_it_is_bounded() -> None:
    with pytest.raises(UserError, match="more than 8 MiB"):
        chosen([Entry("SKILL.md"), *(Entry(f"f{number}", bundle.FILE_BYTES) for number in range(9))])
    with pytest.raises(UserError, match="20,000 entries"):
        chosen([Entry("SKILL.md")] * 20_001)


@given(st.text(max_size=30))
def test_whatever_a_name_is_it_stays_in_the_folder_or_is_refused(name: str) -> None:
    try:
        placed = place(name)
    except UserError:
        return
    parts = placed.split("/")
    assert ".." not in parts
    assert "" not in parts
    assert place(placed) == placed


def test_the_name_of_its_folder() -> None:
    assert slug("  Image Lab! ") == "image-lab"
    assert slug("旅行", "trip-kit-main") == "trip-kit-main"
    assert slug("../../x") == "x"
    assert slug("a" * 70) == "a" * 64
    with pytest.raises(UserError, match="--as NAME"):
        slug("旅行", "..")
    with pytest.raises(UserError, match="gives no name"):
        slug("")


def test_what_has_changed() -> None:
    before = bundle.digests({"a": b"1", "b": b"2", "c": b"3"})
    now = bundle.digests({"a": b"1", "b": b"x", "d": b"4"})
    changes = compared(before, now)
    assert changes == Changes(("d",), ("b",), ("c",))
    assert list(changes.lines()) == ["+ d", "~ b", "- c"]
    assert changes.words() == "changed: b, new: d, gone: c"
    assert not compared(now, now)
    assert compared(now, now).words() == ""


def test_what_nobody_sees_is_named() -> None:
    assert unseen("plain\ntext é 漢字 👩‍👩‍👧 ❤️") == ()
    assert unseen("\ufeffstart") == ()
    assert unseen("a\nb\u200bc\u202e\u200b") == (
        "line 2: U+200B ZERO WIDTH SPACE",
        "line 2: U+202E RIGHT-TO-LEFT OVERRIDE",
    )
    assert unseen("ignore\U000e0041") == ("line 1: U+E0041 TAG LATIN CAPITAL LETTER A",)
    assert unseen("é\x9b") == ("line 1: U+009B without a name",)
    assert unseen("漢\u3164\ufe01") == ("line 1: U+3164 HANGUL FILLER", "line 1: U+FE01 VARIATION SELECTOR-2")
    assert unseen("é\u200d") == ("line 1: U+200D ZERO WIDTH JOINER",)
    assert unseen("\u200d") == ("line 1: U+200D ZERO WIDTH JOINER",)
