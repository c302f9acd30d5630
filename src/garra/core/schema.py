"""JSON Schema, as much as tools use: checking a model's arguments, and cutting a schema to what a vendor takes.

A check mends the slips models make (a number as text, a list as JSON text, one thing where a list of it is due) and
names each fault with its place, in words a model can act on.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

DEEPEST = 32
MOST_STEPS = 200_000
"""Of one check: a schema that refers to itself in many ways would else never be done."""
_MISSING = object()
_UNITS = {"Items": " items", "Length": " characters", "imum": ""}
"""What is counted, by how the names of the two bounds go on after `min` and `max`."""


def faults(schema: Mapping[str, Any], value: Any) -> list[str]:
    """What does not fit, each a line `place: what is wrong`; empty when all fits."""
    return check(schema, value)[1]


def check(schema: Mapping[str, Any], value: Any) -> tuple[Any, list[str]]:
    """`value` with its slips mended, and the faults that are left."""
    found: list[str] = []
    return _Check(schema, found, [MOST_STEPS]).at(schema, value, "", 0), found


class _Check:
    """One walk over a value. `root` is where references point; `left` holds the steps that are left."""

    def __init__(self, root: Mapping[str, Any], found: list[str], left: list[int]) -> None:
        self.root, self.found, self.left = root, found, left

    def fault(self, where: str, what: str) -> None:
        self.found.append(f"{where or 'arguments'}: {what}")

    def at(self, schema: Mapping[str, Any], value: Any, where: str, depth: int) -> Any:
        self.left[0] -= 1
        if depth > DEEPEST or self.left[0] < 0:
            self.fault(where, "nested too deep")
            return value
        if "$ref" in schema:
            return self.at(referred(self.root, schema["$ref"]), value, where, depth + 1)
        for part in schema.get("allOf", ()):
            value = self.at(part, value, where, depth + 1)
        variants = schema.get("anyOf") or schema.get("oneOf")
        if variants:
            value = self._variant(variants, value, where, depth)
        value = self._typed(schema, value, where)
        if isinstance(value, dict):
            return self._object(schema, value, where, depth)
        if isinstance(value, list):
            return self._array(schema, value, where, depth)
        self._bounds(schema, value, where)
        return value

    def _variant(self, variants: Sequence[Mapping[str, Any]], value: Any, where: str, depth: int) -> Any:
        closest: list[str] = []
        for variant in variants:
            found: list[str] = []
            mended = _Check(self.root, found, self.left).at(variant, value, where, depth + 1)
            if not found:
                return mended
            closest = found if not closest or len(found) < len(closest) else closest
        self.found += closest
        return value

    def _typed(self, schema: Mapping[str, Any], value: Any, where: str) -> Any:
        if "const" in schema and value != schema["const"]:
            self.fault(where, f"must be {_show(schema['const'])}, got {_show(value)}")
        if "enum" in schema and value not in schema["enum"]:
            self.fault(where, f"must be one of {', '.join(map(_show, schema['enum']))}; got {_show(value)}")
        wanted = schema.get("type")
        kinds = [wanted] if isinstance(wanted, str) else list(wanted or ())
        if not kinds or any(_is(kind, value) for kind in kinds):
            return value
        for kind in kinds:
            mended = mend(kind, value)
            if mended is not _MISSING:
                return mended
        self.fault(where, f"must be {' or '.join(kinds)}, got {_kind(value)} {_show(value)}")
        return value

    def _object(self, schema: Mapping[str, Any], value: dict[str, Any], where: str, depth: int) -> dict[str, Any]:
        properties: Mapping[str, Any] = schema.get("properties") or {}
        required = schema.get("required") or ()
        extra = schema.get("additionalProperties", True)
        mended: dict[str, Any] = {}
        for name, item in value.items():
            here = f"{where}.{name}" if where else str(name)
            if name in properties:
                if item is None and name not in required and not self._nullable(properties[name]):
                    continue  # null for a thing left out
                mended[name] = self.at(properties[name], item, here, depth + 1)
            elif extra is False:
                known = ", ".join(properties) or "none"
                self.fault(here, f"there is no such argument; known: {known}")
            else:
                mended[name] = self.at(extra, item, here, depth + 1) if isinstance(extra, Mapping) else item
        for name in required:
            if name not in mended:
                self.fault(f"{where}.{name}" if where else name, "is required")
        return mended

    def _nullable(self, schema: Mapping[str, Any]) -> bool:
        kinds = schema.get("type", "null")
        return kinds == "null" or "null" in kinds

    def _array(self, schema: Mapping[str, Any], value: list[Any], where: str, depth: int) -> list[Any]:
        self._between(schema, len(value), where, "Items")
        items = schema.get("items")
        if not isinstance(items, Mapping):
            return value
        return [self.at(items, item, f"{where}[{index}]", depth + 1) for index, item in enumerate(value)]

    def _bounds(self, schema: Mapping[str, Any], value: Any, where: str) -> None:
        if isinstance(value, str):
            self._between(schema, len(value), where, "Length")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            self._between(schema, value, where, "imum")

    def _between(self, schema: Mapping[str, Any], size: float, where: str, of: str) -> None:
        low, high = schema.get(f"min{of}"), schema.get(f"max{of}")
        unit = _UNITS[of]
        if low is not None and size < low:
            self.fault(where, f"must be at least {low}{unit}, got {size}")
        if high is not None and size > high:
            self.fault(where, f"must be at most {high}{unit}, got {size}")


def referred(root: Mapping[str, Any], pointer: str) -> Mapping[str, Any]:
    """What `#/a/b` points to in `root`; a schema that takes anything where it points nowhere."""
    here: Any = root
    for part in filter(None, str(pointer).removeprefix("#").split("/")):
        name = part.replace("~1", "/").replace("~0", "~")
        here = here.get(name, {}) if isinstance(here, Mapping) else {}
    return here if isinstance(here, Mapping) else {}


def _is(kind: str, value: Any) -> bool:
    match kind:
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "object":
            return isinstance(value, dict)
        case "array":
            return isinstance(value, list)
        case "null":
            return value is None
        case _:
            return True


def _kind(value: Any) -> str:
    return next(
        kind for kind in ("null", "boolean", "string", "integer", "number", "object", "array", "") if _is(kind, value)
    )


def _show(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else text[:57] + "…"


def mend(kind: str, value: Any) -> Any:
    """`value` as a `kind`, where it is plain what was meant."""
    mending = _MENDING.get(kind)
    return mending(value) if mending else _MISSING


def _as_string(value: Any) -> Any:
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else _MISSING


def _as_number(value: Any) -> Any:
    try:
        number = float(value) if isinstance(value, str) else None
    except ValueError:
        return _MISSING
    if number is None or number - number != 0:  # not a number, or without end
        return _MISSING
    return int(number) if number.is_integer() else number


def _as_integer(value: Any) -> Any:
    if isinstance(value, float):
        return int(value) if value.is_integer() else _MISSING
    number = _as_number(value)
    return number if isinstance(number, int) else _MISSING


def _as_boolean(value: Any) -> Any:
    words = {"true": True, "false": False}
    return words.get(value.strip().lower(), _MISSING) if isinstance(value, str) else _MISSING


def _parsed(value: Any, kind: type) -> Any:
    if not isinstance(value, str):
        return _MISSING
    try:
        parsed = json.loads(value)
    except (ValueError, RecursionError):
        return _MISSING
    return parsed if isinstance(parsed, kind) else _MISSING


def _as_array(value: Any) -> Any:
    parsed = _parsed(value, list)
    if parsed is not _MISSING or value is None:
        return parsed
    return [value]


_MENDING: Mapping[str, Callable[[Any], Any]] = {
    "string": _as_string,
    "number": _as_number,
    "integer": _as_integer,
    "boolean": _as_boolean,
    "object": lambda value: _parsed(value, dict),
    "array": _as_array,
}

_GEMINI_DROPS = frozenset(
    {"$schema", "$id", "$defs", "definitions", "additionalProperties", "patternProperties", "examples", "default",
     "title", "minLength", "maxLength", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
     "pattern", "format", "minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties"}
)  # fmt: skip
_NOT_SCHEMAS = frozenset({"enum", "const", "required", "default", "examples", "type"})


def clean(schema: Mapping[str, Any], dialect: str) -> dict[str, Any]:
    """`schema` as a vendor takes it. Dialects: `anthropic` keeps it, `gemini` has no constraints, others (OpenAI and
    those who follow it) take no choice at the root.
    """
    if dialect == "anthropic":
        return dict(schema)
    flat = _without_root_choice(schema)
    return _for_gemini(flat, flat, ()) if dialect == "gemini" else flat


def dialect(api: str, provider: str = "") -> str:
    """Whose rules a request's tools follow."""
    if api.startswith("google") or provider.startswith(("google", "gemini")):
        return "gemini"
    return "anthropic" if api.startswith("anthropic") else "openai"


def _without_root_choice(schema: Mapping[str, Any]) -> dict[str, Any]:
    choices = [referred(schema, c["$ref"]) if "$ref" in c else c for c in _choices(schema)]
    if not choices:
        return {"type": "object", "properties": {}, **schema}
    rest = {key: value for key, value in schema.items() if key not in {"anyOf", "oneOf", "allOf"}}
    properties: dict[str, Any] = {**(schema.get("properties") or {})}
    for choice in choices:
        for name, part in (choice.get("properties") or {}).items():
            properties[name] = _either(properties[name], part) if name in properties else part
    needed = [set(choice.get("required") or ()) for choice in choices]
    common = set.union(*needed) if "allOf" in schema else set.intersection(*needed)
    required = [*(schema.get("required") or ()), *sorted(common)]
    return {**rest, "type": "object", "properties": properties, **({"required": required} if required else {})}


def _choices(schema: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf") or ()


def _either(one: Mapping[str, Any], other: Mapping[str, Any]) -> Mapping[str, Any]:
    """What takes what either takes: values listed in both are put together, else the first stands."""
    values = [*_values(one), *(value for value in _values(other) if value not in _values(one))]
    if not _values(one) or not _values(other):
        return one
    rest = {key: value for key, value in one.items() if key not in {"const", "enum"}}
    return {**rest, "enum": values}


def _values(schema: Mapping[str, Any]) -> list[Any]:
    return [schema["const"]] if "const" in schema else list(schema.get("enum") or ())


def _for_gemini(root: Mapping[str, Any], schema: Any, within: tuple[str, ...]) -> Any:
    """`schema` without what Gemini refuses; references are written out, those into themselves once."""
    if isinstance(schema, list):
        return [_for_gemini(root, item, within) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    if "$ref" in schema:
        pointer = str(schema["$ref"])
        if pointer in within or len(within) > DEEPEST:
            return {"type": "object"}
        return _for_gemini(root, referred(root, pointer), (*within, pointer))
    cut = {key: value for key, value in schema.items() if key not in _GEMINI_DROPS}
    if "const" in cut:
        cut["enum"] = [cut.pop("const")]
    kinds = cut.get("type")
    if isinstance(kinds, list):
        cut["type"] = next((kind for kind in kinds if kind != "null"), "string")
    return {key: value if key in _NOT_SCHEMAS else _inside(root, key, value, within) for key, value in cut.items()}


def _inside(root: Mapping[str, Any], key: str, value: Any, within: tuple[str, ...]) -> Any:
    if key == "properties":
        return {name: _for_gemini(root, part, within) for name, part in value.items()}
    return _for_gemini(root, value, within)
