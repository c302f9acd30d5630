"""Arguments are checked and mended; schemas are cut to what a vendor takes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from garra.core.schema import DEEPEST, check, clean, dialect, faults, referred

GOLDEN = Path(__file__).parent / "schemas.json"
TOOL = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "minLength": 1, "maxLength": 5},
        "count": {"type": "integer", "minimum": 1, "maximum": 9},
        "ratio": {"type": "number"},
        "on": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 2},
        "env": {"type": "object", "additionalProperties": {"type": "string"}},
        "mode": {"enum": ["a", "b"]},
        "kind": {"const": "x"},
        "free": {},
        "maybe": {"type": ["string", "null"]},
        "other": {"type": "nonsense"},
    },
    "required": ["path"],
    "additionalProperties": False,
}


def mended(**given: Any) -> dict[str, Any]:
    value, found = check(TOOL, {"path": "p", **given})
    assert found == []
    return {key: item for key, item in value.items() if key != "path"}


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"count": 3}, {"count": 3}),
        ({"count": "3"}, {"count": 3}),
        ({"count": 3.0}, {"count": 3}),
        ({"ratio": "1.5"}, {"ratio": 1.5}),
        ({"ratio": 2}, {"ratio": 2}),
        ({"on": "True"}, {"on": True}),
        ({"tags": '["a"]'}, {"tags": ["a"]}),
        ({"tags": "a"}, {"tags": ["a"]}),
        ({"tags": [1]}, {"tags": ["1"]}),
        ({"env": '{"A": "b"}'}, {"env": {"A": "b"}}),
        ({"env": {"A": 1}}, {"env": {"A": "1"}}),
        ({"count": None}, {}),
        ({"maybe": None}, {"maybe": None}),
        ({"free": {"x": [1]}}, {"free": {"x": [1]}}),
        ({"other": 1}, {"other": 1}),
    ],
)
def test_slips_are_mended(given: dict[str, Any], wanted: dict[str, Any]) -> None:
    assert mended(**given) == wanted


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ({}, "path: is required"),
        ({"path": None}, "path: must be string, got null null"),
        ({"path": ""}, "path: must be at least 1 characters, got 0"),
        ({"path": "abcdef"}, "path: must be at most 5 characters, got 6"),
        ({"path": True}, "path: must be string, got boolean true"),
        ({"path": "p", "count": "three"}, 'count: must be integer, got string "three"'),
        ({"path": "p", "count": 1.5}, "count: must be integer, got number 1.5"),
        ({"path": "p", "count": "1.5"}, 'count: must be integer, got string "1.5"'),
        ({"path": "p", "count": 0}, "count: must be at least 1, got 0"),
        ({"path": "p", "ratio": "inf"}, 'ratio: must be number, got string "inf"'),
        ({"path": "p", "ratio": [1]}, "ratio: must be number, got array [1]"),
        ({"path": "p", "on": 1}, "on: must be boolean, got integer 1"),
        ({"path": "p", "on": "maybe"}, 'on: must be boolean, got string "maybe"'),
        ({"path": "p", "tags": []}, "tags: must be at least 1 items, got 0"),
        ({"path": "p", "tags": [["a"]]}, 'tags[0]: must be string, got array ["a"]'),
        ({"path": "p", "env": "{"}, 'env: must be object, got string "{"'),
        ({"path": "p", "env": 3}, "env: must be object, got integer 3"),
        ({"path": "p", "mode": "c"}, 'mode: must be one of "a", "b"; got "c"'),
        ({"path": "p", "kind": "y"}, 'kind: must be "x", got "y"'),
        ({"path": "p", "more": 1}, "more: there is no such argument; known: path, count"),
        ({"path": "p", "free": None, "maybe": 3.5, "count": "x" * 99}, 'count: must be integer, got string "xxx'),
    ],
)
def test_faults_name_the_place(given: dict[str, Any], fault: str) -> None:
    found = faults(TOOL, given)
    assert len(found) == 1
    assert found[0].startswith(fault)


def test_a_value_that_is_no_object() -> None:
    assert faults(TOOL, 3) == ["arguments: must be object, got integer 3"]
    assert faults({"type": "object", "additionalProperties": False}, {"a": 1}) == [
        "a: there is no such argument; known: none"
    ]
    assert faults({"type": "array", "items": {"type": "object", "required": ["a"]}}, [{}]) == ["[0].a: is required"]
    assert faults({"type": "array"}, None) == ["arguments: must be array, got null null"]
    assert faults({"type": "null"}, None) == []
    assert faults({"type": "null"}, 1) == ["arguments: must be null, got integer 1"]


def test_choices_take_the_first_that_fits_and_report_the_closest() -> None:
    either = {"anyOf": [{"type": "integer"}, {"type": "object", "required": ["a", "b"]}, {"type": "boolean"}]}
    assert check(either, "4") == (4, [])
    assert faults(either, {"a": 1}) == ['arguments: must be integer, got object {"a": 1}']
    assert faults({"oneOf": [{"type": "object", "required": ["a", "b"]}, {"type": "integer"}]}, {}) == [
        "arguments: must be integer, got object {}"
    ]


def test_all_of_and_references() -> None:
    tree = {
        "$defs": {"a/b": {"type": "integer"}},
        "allOf": [{"properties": {"n": {"$ref": "#/$defs/a~1b"}}}, {"required": ["n"]}],
    }
    assert check(tree, {"n": "1"}) == ({"n": 1}, [])
    assert faults(tree, {}) == ["n: is required"]
    assert referred({}, "#/nowhere/at/all") == {}
    assert referred({"a": 1}, "#/a") == {}
    assert referred({"a": 1}, "#/a/b") == {}


def test_a_schema_that_refers_to_itself_ends() -> None:
    loop: dict[str, Any] = {"$ref": "#"}
    assert faults(loop, 1) == ["arguments: nested too deep"]
    deep: Any = 1
    for _ in range(DEEPEST + 2):
        deep = [deep]
    assert faults({"type": "array", "items": {"$ref": "#"}}, deep)


@pytest.mark.req("TOOL-07")
@pytest.mark.parametrize("vendor", ["openai", "gemini", "anthropic"])
def test_one_schema_for_three_vendors(vendor: str) -> None:
    golden = json.loads(GOLDEN.read_text())
    for case in golden:
        assert clean(case["schema"], vendor) == case[vendor], case["name"]


def test_who_speaks_which_dialect() -> None:
    assert dialect("openai-completions") == "openai"
    assert dialect("openai-completions", "google") == "gemini"
    assert dialect("google-generative-ai") == "gemini"
    assert dialect("anthropic-messages") == "anthropic"


def test_gemini_ends_on_schemas_that_refer_to_themselves() -> None:
    node = {"type": "object", "properties": {"left": {"$ref": "#/$defs/n"}, "right": {"$ref": "#/$defs/n"}}}
    cut = clean({"type": "object", "$defs": {"n": node}, "properties": {"a": {"$ref": "#/$defs/n"}}}, "gemini")
    ends = {"type": "object"}
    assert cut["properties"]["a"] == {"type": "object", "properties": {"left": ends, "right": ends}}


def test_a_check_of_a_schema_with_many_ways_ends() -> None:
    assert faults({"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}, 1)
