"""Every key of the configuration says what it means."""

import tomllib
from importlib import resources
from typing import Any

from garra.config import schema
from garra.config.sections import Config
from garra.config.sections.thorough import model


def shapes() -> dict[str, Any]:
    found = model(Config).model_json_schema(by_alias=True)
    return {**found.pop("$defs"), "Config": found}


def test_a_key_without_a_line_fails() -> None:
    said = schema.words()
    mute = [
        f"{name}.{key}"
        for name, shape in shapes().items()
        for key, below in shape.get("properties", {}).items()
        if not said(name, key) and "$ref" not in below and not below.get("description")
    ]
    assert not mute, f"say what they mean in src/garra/config/words.toml: {', '.join(mute)}"


def test_no_line_is_for_a_key_that_is_not_there() -> None:
    said = tomllib.loads((resources.files("garra.config") / "words.toml").read_text())
    known = shapes()
    same: dict[str, list[str]] = {}
    for one, other in said.pop("same").items():
        same.setdefault(other, []).append(one)
    said.pop("any")
    stray = [
        f"{name}.{key}"
        for name, lines in said.items()
        for key in lines
        if not any(key in known.get(shape, {}).get("properties", {}) for shape in (name, *same.get(name, ())))
    ]
    assert not stray


def test_forms_read_it() -> None:
    hints = schema.hints(schema.schema())
    assert hints["gateway.port"]["help"].startswith("The port of everything")
    assert hints["agents.list.[].id"]["help"].startswith("Its id")
