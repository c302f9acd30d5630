from __future__ import annotations

import pytest

from garra.config.load import keep
from tests.config.place import Installation, said


@pytest.mark.req("BOOT-13")
def test_files_merge_in_order_and_the_keys_beside_win(here: Installation) -> None:
    here.write("{ a: { x: 1, y: 1, z: 1 }, l: [1] }", "one.json5")
    here.write('{ a: { y: 2, z: 2 }, l: [2], $include: "sub/three.json5" }', "two.json5")
    here.write("{ a: { y: 9 }, deep: true }", "sub/three.json5")
    found = here.load(
        '{ ui: { $include: ["./one.json5", "two.json5"], a: { z: 3 } }, talk: { $include: "one.json5" } }'
    )
    assert found.valid
    assert found.resolved["ui"] == {"a": {"x": 1, "y": 2, "z": 3}, "l": [2], "deep": True}
    assert found.resolved["talk"]["l"] == [1]
    assert len(found.included) == 3


@pytest.mark.req("BOOT-13")
def test_a_list_may_be_included_but_not_beside_keys(here: Installation) -> None:
    here.write('[{ id: "a" }]', "agents.json5")
    assert here.load('{ agents: { list: { $include: "agents.json5" } } }').config.agents.ids() == ("a",)
    found = here.load('{ agents: { list: { $include: "agents.json5", x: 1 } } }')
    assert "keys stand beside $include" in said(found)["agents.list"]


@pytest.mark.req("BOOT-13")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{ ui: { $include: "../../etc/passwd" } }', "must be inside the configuration's folder"),
        ('{ ui: { $include: "/etc/passwd" } }', "must be inside the configuration's folder"),
        ('{ ui: { $include: "link.json5" } }', "must be inside the configuration's folder"),
        ('{ ui: { $include: "loop.json5" } }', "includes itself"),
        ('{ ui: { $include: "garra.json" } }', "includes itself"),
        ('{ ui: { $include: "absent.json5" } }', "there is no such file"),
        ('{ ui: { $include: "broken.json5" } }', "line 1, column 5"),
        ('{ ui: { $include: "big.json5" } }', "larger than"),
        ("{ ui: { $include: 5 } }", "takes a file's path"),
        ('{ ui: { $include: "a\\u0000b" } }', "takes a file's path"),
        ('{ ui: { $include: "deep0.json5" } }', "nested deeper than 10"),
    ],
)
def test_what_may_not_be_included_is_refused_with_words(here: Installation, text: str, words: str) -> None:
    outside = here.home / "outside.json5"
    outside.write_text("{ secret: 1 }")
    here.write('{ $include: "loop2.json5" }', "loop.json5")
    here.write('{ $include: "loop.json5" }', "loop2.json5")
    here.write("{ x y }", "broken.json5")
    here.write("x" * ((2 << 20) + 1), "big.json5")
    for number in range(12):
        here.write(f'{{ $include: "deep{number + 1}.json5" }}', f"deep{number}.json5")
    (here.file.parent / "link.json5").symlink_to(outside)
    found = here.load(text)
    assert not found.valid
    assert any(words in issue.message for issue in found.issues)
    assert "secret" not in str(found.resolved)


def test_further_roots_are_named_from_outside(here: Installation) -> None:
    other = here.home / "other"
    other.mkdir()
    (other / "x.json5").write_text("{ a: 1 }")
    here.env["GARRA_INCLUDE_ROOTS"] = f"relative:{other}"
    assert here.load(f'{{ ui: {{ $include: "{other}/x.json5" }} }}').resolved["ui"] == {"a": 1}


@pytest.mark.req("BOOT-15")
def test_the_last_good_one_keeps_its_included_files(here: Installation) -> None:
    here.write("{ port: 5 }", "gateway.json5")
    keep(here.paths, here.load('{ gateway: { $include: "gateway.json5" } }'))
    here.write("{ port: ", "gateway.json5")
    assert (here.load().valid, here.load().config.gateway.port) == (False, 5)
    assert here.writer.restore().config.gateway.port == 5
    assert here.load().valid


def test_the_whole_file_may_be_an_include(here: Installation) -> None:
    here.write("{ gateway: { port: 5 } }", "all.json5")
    assert here.load('{ $include: "all.json5" }').config.gateway.port == 5
    here.write("[1]", "all.json5")
    assert not here.load().valid
