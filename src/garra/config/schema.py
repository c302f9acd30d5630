"""The JSON Schema of the configuration, for editors, forms and agents."""

from __future__ import annotations

import importlib
import re
import tomllib
from collections.abc import Callable, Iterator
from importlib import resources
from typing import Any

from garra.config.sections import Config
from garra.config.sections.lookup import secret_at
from garra.core import dotted
from garra.core.dotted import Path
from garra.core.redact import hidden

COMMON = ("gateway.port", "gateway.bind", "gateway.auth", "agents.defaults.model", "agents.defaults.workspace")
"""What most people set; everything else is for the advanced."""

KEPT = "A key of OpenClaw's: it is kept, and nothing here reads it."

_BRANCHES = ("anyOf", "oneOf", "allOf")


def schema() -> dict[str, Any]:
    """The whole schema (2020-12), without references, so that a form can be drawn from any part of it."""
    model = importlib.import_module("garra.config.sections.thorough").model
    found = model(Config).model_json_schema(by_alias=True)
    shapes = found.pop("$defs", {})
    _tell({**shapes, "Config": found})
    whole: dict[str, Any] = _inlined(found, shapes)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **whole, "title": "Garra configuration"}


def _tell(shapes: dict[str, Any]) -> None:
    """Say what each key means, where the shape that stands there does not say it already."""
    said = words()
    for name, shape in shapes.items():
        for key, below in shape.get("properties", {}).items():
            if line := said(name, key):
                below["description"] = line


def words() -> Callable[[str, str], str]:
    """What a key of a shape means, in a line; empty where nothing is said. For a key of OpenClaw's that is kept and not
    read, that it is so.
    """
    said = tomllib.loads((resources.files("garra.config") / "words.toml").read_text())

    def find(shape: str, key: str) -> str:
        places = (shape, said["same"].get(shape, ""), "any")
        found: str = next((said[place][key] for place in places if key in said.get(place, {})), "")
        return KEPT if found == "~" else found

    return find


def _inlined(node: Any, definitions: dict[str, Any]) -> Any:
    if isinstance(node, list):
        return [_inlined(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        target = definitions[str(node["$ref"]).rsplit("/", 1)[-1]]
        rest = {key: value for key, value in node.items() if key != "$ref"}
        return {**_inlined(target, definitions), **rest}
    found = {key: _inlined(value, definitions) for key, value in node.items()}
    for key, below in found.get("properties", {}).items():
        below["title"] = _title(key)
    return _present(found)


def _title(key: str) -> str:
    """A key as words: `allowedOrigins` is "Allowed origins"."""
    words = re.sub(r"(?<=[a-z0-9])([A-Z])", lambda found: " " + found.group(1).lower(), key)
    return words[:1].upper() + words[1:]


def _present(node: dict[str, Any]) -> dict[str, Any]:
    """A value that may be absent is described by what it is when present: nobody writes null into the file."""
    branches = [branch for branch in node.get("anyOf", ()) if branch != {"type": "null"}]
    rest = {key: value for key, value in node.items() if key != "anyOf" and not (key == "default" and value is None)}
    if len(branches) == 1:
        return {**branches[0], **rest}
    return {**rest, "anyOf": branches} if branches else rest


def hints(node: dict[str, Any], at: Path = ()) -> dict[str, dict[str, Any]]:
    """What a form should know of each path: its label, whether it is advanced, whether it is a secret."""
    found: dict[str, dict[str, Any]] = {}
    for path, below in _children(node, at):
        name = ".".join(map(str, path))
        hint: dict[str, Any] = {"label": below.get("title", str(path[-1])), "advanced": not _common(name)}
        if below.get("description"):
            hint["help"] = below["description"]
        if hidden(path, secret_at):
            hint["sensitive"] = True
        found[name] = hint
        found |= hints(below, path)
    return found


def _common(name: str) -> bool:
    return any(name == common or name.startswith(common + ".") for common in COMMON)


def _children(node: dict[str, Any], at: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    for branch in (node, *(part for key in _BRANCHES for part in node.get(key, ()))):
        for key, below in branch.get("properties", {}).items():
            yield (*at, key), below
        if isinstance(branch.get("additionalProperties"), dict):
            yield (*at, "*"), branch["additionalProperties"]
        if isinstance(branch.get("items"), dict):
            yield (*at, "[]"), branch["items"]


def lookup(path: str) -> dict[str, Any] | None:
    """One place: its own schema without what is below, and its children by name; None when nothing is known of it."""
    node: dict[str, Any] = schema()
    keys = dotted.parse(path.replace(".[]", "[0]").replace("[]", "[0]")) if path.strip(". ") else ()
    for part in keys:
        below = {child[-1]: found for child, found in _children(node, ())}
        listed = "[]" in below and (isinstance(part, int) or part.isdecimal())
        chosen = below.get("[]") if listed else below.get(part, below.get("*"))
        if chosen is None:
            return None
        node = chosen
    return {
        "path": path,
        "schema": {key: value for key, value in node.items() if key not in ("properties", "items", *_BRANCHES)},
        "hint": {"sensitive": True} if keys and hidden(keys, secret_at) else {},
        "children": [_summary(child, below) for child, below in _children(node, keys)],
    }


def _summary(path: Path, node: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {"key": str(path[-1]), "path": ".".join(map(str, path)), "required": False}
    found |= {key: node[key] for key in ("type", "enum", "description") if key in node}
    return found | {"hasChildren": any(True for _ in _children(node, path))}
