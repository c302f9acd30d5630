"""Which changes of a broken text help, and what a person may choose."""

from __future__ import annotations

import pytest

from garra.core import json5, repair
from garra.core.repair import Change, Choice, Facts, Trouble

pytestmark = pytest.mark.req("BOOT-07")


def words(changes: tuple[Change, ...]) -> list[str]:
    return [change.words for change in changes]


def always(text: str) -> bool:
    return True


def readable(text: str) -> bool:
    try:
        json5.parse(text)
    except json5.Broken:
        return False
    return True


BROKEN = Trouble((), "cannot be read")


@pytest.mark.parametrize(
    ("text", "first", "mended"),
    [
        ('{\n  "a": 1\n  "b": 2\n}', "put the missing comma at the end of line 2", '{\n  "a": 1,\n  "b": 2\n}'),
        ("{\n  a: 1 // one\n  b: 2\n}", "put the missing comma into line 3", "{\n  a: 1 // one\n  ,b: 2\n}"),
        ("{a = 1}", "write : instead of = in line 1", "{a : 1}"),
        ("{a: 1; b: 2}", "write , instead of ; in line 1", "{a: 1, b: 2}"),
        ("{a 1}", "put the missing colon into line 1", "{a :1}"),
        ("{on: True}", "write true in line 1", "{on: true}"),
        ("{bind: loopback}", "put quotes around the word in line 1", '{bind: "loopback"}'),
        ('{"a": "x,\n "b": 2}', "close the quote in line 1", '{"a": "x",\n "b": 2}'),
        ("{a: {b: 'x", "close the quote in line 1 and what is open at the end of the file", "{a: {b: 'x'\n}}\n"),
        ("{a: {b: [1, 2]", "close what is open at the end of the file: }}", "{a: {b: [1, 2]\n}}\n"),
        ('{"a": 1, "port": }', "take out the key without a value in line 1", '{"a": 1, }'),
        ('{"port": , "a": 1}', "take out the key without a value in line 1", '{ "a": 1}'),
        ("{a: 1,, b: 2}", "take out the , in line 1", "{a: 1, b: 2}"),
        ("{a: 1}\nrest", "take out what follows the end of the configuration", "{a: 1}\n"),
    ],
)
def test_a_text_that_cannot_be_read_is_made_readable_by_a_small_touch(text: str, first: str, mended: str) -> None:
    found = repair.changes(text, BROKEN, always)
    assert first in words(found)
    change = next(change for change in found if change.words == first)
    assert change.text == mended
    assert len(found) <= repair.MOST_TOUCHES


def test_of_several_faults_one_that_moves_the_fault_down_is_offered() -> None:
    text = '{\n  "a": 1\n  "b": 2\n  "c": 3\n}'
    (first, *_) = repair.changes(text, BROKEN, always)
    assert first.text == '{\n  "a": 1,\n  "b": 2\n  "c": 3\n}'
    (second, *_) = repair.changes(first.text, BROKEN, always)
    assert readable(second.text)


def test_where_no_touch_helps_none_is_offered() -> None:
    assert repair.changes("", BROKEN, always) == ()
    assert repair.changes("{]", BROKEN, always) == ()


def test_what_stands_there_is_not_repeated() -> None:
    found = repair.changes("{token: abcdef123456}", BROKEN, always)
    assert found
    assert "abcdef" not in "".join(words(found))


def test_of_the_values_that_would_do_the_likest_comes_first() -> None:
    text = '{\n  // who may come in\n  "gateway": {"bind": "lopback"}\n}'
    at = ("gateway", "bind")
    found = repair.changes(text, Trouble(at, "x", allowed=("auto", "lan", "loopback")), always)
    assert words(found) == [
        'set gateway.bind to "loopback"',
        'set gateway.bind to "auto"',
        'set gateway.bind to "lan"',
        "make a list of it (gateway.bind)",
        "take gateway.bind out",
    ]
    assert found[0].text == text.replace("lopback", "loopback")
    many = Trouble(at, "x", allowed=tuple(f"value{number}" for number in range(20)))
    assert len(repair.changes(text, many, always)) == repair.MOST_CHANGES


def test_only_what_is_better_is_offered() -> None:
    text = '{"gateway": {"port": "18789"}}'
    found = repair.changes(text, Trouble(("gateway", "port"), "x"), lambda new: "18789}" in new)
    assert [(change.words, change.text) for change in found] == [
        ("write the value without quotes (gateway.port)", '{"gateway": {"port": 18789}}')
    ]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("{a: 'Yes'}", "{a: true}"),
        ("{a: 12}", '{a: "12"}'),
        ("{a: ['x']}", "{a: 'x'}"),
        ("{a: 'x'}", "{a: ['x']}"),
        ("{a: {b: 1}}", "{a: [{b: 1}]}"),
        ("{a: 'x'}", "{}"),
    ],
)
def test_the_same_value_as_another_kind_of_value(text: str, wanted: str) -> None:
    assert wanted in [change.text for change in repair.changes(text, Trouble(("a",), "x"), always)]


def test_a_list_of_several_has_no_one_item() -> None:
    found = repair.changes("{a: [1, 2]}", Trouble(("a",), "x"), always)
    assert words(found) == ["take a out"]


def test_a_misspelt_key_is_written_as_it_was_meant_and_the_rest_stays() -> None:
    text = '{\n  // mine\n  "gateway": {"prot": 1} // here\n}'
    (first, *_) = repair.changes(text, Trouble(("gateway", "prot"), "x", names=("mode", "port")), always)
    assert first == Change("write port instead of prot in gateway", text.replace("prot", "port"))
    assert repair.renames("{Gateway: 1}", Trouble(("Gateway",), "x", names=("gateway",))) == (
        Change("write gateway instead of Gateway", "{gateway: 1}"),
    )


def test_a_missing_key_may_stand_there_under_another_spelling() -> None:
    text = "{models: {mine: {baseURL: 'http://x', other: 1}}}"
    trouble = Trouble(("models", "mine", "baseUrl"), "required", strays=("baseURL", "other"))
    first, last = repair.changes(text, trouble, always)
    assert first.text == text.replace("baseURL", "baseUrl")
    assert last == Change("take models.mine out, with all that is in it", "{models: {}}")


def test_a_name_that_is_taken_or_elsewhere_is_not_given() -> None:
    assert repair.renames("{prot: 1, port: 2}", Trouble(("prot",), "x", names=("port",))) == ()
    assert repair.renames("{}", Trouble(("prot",), "x", names=("port",))) == ()
    assert repair.renames("{}", BROKEN) == ()


def test_a_trouble_without_a_place_in_this_text_has_no_change() -> None:
    assert repair.changes("[]", Trouble((), "must hold one object"), always) == ()
    assert repair.changes("{}", Trouble(("a", "b"), "from an included file"), always) == ()


def kinds(choices: tuple[Choice, ...]) -> list[str]:
    return [choice.kind for choice in choices]


def test_the_menu_holds_what_can_be_done() -> None:
    change = Change("set a", "{}")
    everything = Facts(last_good=True, editor="vi", model=True)
    trouble = Trouble(("a",), "x")
    menu = repair.choices([change], trouble, everything)
    assert kinds(menu) == ["change", "value", "restore", "edit", "ask", "go-on", "quit"]
    assert menu[0] == Choice("change", "set a", change)
    assert "vi" in menu[3].words
    assert kinds(repair.choices([], BROKEN, Facts())) == ["anew", "quit"]
    assert "value" not in kinds(repair.choices([], Trouble(("a",), "x", names=("b",)), Facts()))
    assert "value" not in kinds(repair.choices([], Trouble(("a", 0), "x"), Facts()))


def test_the_spot_is_the_value_the_key_or_where_reading_stopped() -> None:
    text = '{\n  "gateway": {\n    "port": "x"}}'
    assert repair.spot(text, Trouble(("gateway", "port"), "x")) == (3, 13)
    assert repair.spot(text, Trouble(("gateway", "port"), "x", names=("a",))) == (3, 5)
    assert repair.spot(text, Trouble(("gateway", "mode"), "missing")) == (2, 14)
    assert repair.spot(text, Trouble(("models",), "missing")) == (1, 1)
    assert repair.spot("{a: [1, 2]}", Trouble(("a", 1), "x", names=("b",))) == (1, 9)
    assert repair.spot("{}", Trouble((), "x", line=4)) == (4, 0)
    assert repair.spot('{\n  "port": }', BROKEN) == (2, 11)


def test_a_long_line_is_cut_around_the_column() -> None:
    assert repair.excerpt("\tport: }", 8) == (" port: }", "       ^")
    assert repair.excerpt("port: }", 0) == ("port: }",)
    shown, mark = repair.excerpt("x" * 300 + "!" + "y" * 300, 301)
    assert len(shown) == repair.WIDEST
    assert shown[mark.index("^")] == "!"
