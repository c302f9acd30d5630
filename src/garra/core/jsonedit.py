"""Edits of a JSON5 text that leave everything else as a person wrote it: comments, order, quotes, indentation.

A plain JSON file stays plain JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from garra.core import json5
from garra.core.dotted import Path, show
from garra.core.errors import UserError
from garra.core.json5 import Node
from garra.core.patterns import later

_BARE = later(r"[A-Za-z_$][\w$]*", re.A)
_KEY = later(r"""(?s)"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s:]+""")
_EMPTY = "{}\n"


def put(text: str, path: Path, value: Any) -> str:
    """Set `value` (JSON values only) at `path`, making the objects on the way.

    Raises UserError when the path leads through something that is neither object nor list, or beyond a list's end;
    `json5.Broken` when the text cannot be read.
    """
    text = text if text.strip() else _EMPTY
    root = json5.parse(text)
    if not path:
        return text[: root.start] + _render(text, root, value, "") + text[root.end :]
    node = root
    for depth, part in enumerate(path):
        _check(node, path[: depth + 1])
        below = json5.child(node, part)
        if below is None:
            return _add(text, root, node, (part, _wrapped(path[depth + 1 :], value)))
        node = below
    return text[: node.start] + _render(text, root, value, _indent(text, node.start)) + text[node.end :]


def remove(text: str, path: Path) -> str:
    """Take out what stands at `path`; comments around it stay. The text itself when there is no such thing."""
    while (parent := _above(text, path)) is not None:
        spans = [(item.value.start, item.value.end, item.comma) for item in parent.items]
        spans = spans or [(member.start, member.value.end, member.comma) for member in parent.members]
        keys: list[str | int] = [member.key for member in parent.members] or list(range(len(spans)))
        at = len(keys) - 1 - keys[::-1].index(path[-1])
        last = at == len(spans) - 1 and spans[at][2] is None
        text = _cut(text, spans[at], spans[at - 1][2] if at and last else None)
        if len(spans) == 1:
            text = _emptied(text, parent.start)
        if parent.kind == "list":
            break
    return text


def rename(text: str, path: Path, key: str) -> str:
    """Give what stands at `path` another key, quoted as the old one was. The text itself when nothing stands there."""
    parent = _above(text, path)
    found = [member for member in parent.members if member.key == path[-1]] if parent is not None else []
    if not found:
        return text
    start = found[-1].start
    old = _KEY.match(text, start)
    end = old.end() if old is not None else start
    quote = text[start] if text[start] in "\"'" else ""
    bare = not quote and _BARE.fullmatch(key)
    new = key if bare else json.dumps(key, ensure_ascii=False) if quote != "'" else f"'{key}'"
    return text[:start] + new + text[end:]


def _emptied(text: str, start: int) -> str:
    """Close an object or list that holds nothing any more, not even a comment."""
    inner = re.compile(r"\s*").match(text, start + 1)
    end = inner.end() if inner else start + 1
    return text[: start + 1] + text[end:] if text[end] in "}]" else text


def _above(text: str, path: Path) -> Node | None:
    """The object or list that holds what stands at `path`, if there is such a thing."""
    root = json5.parse(text)
    return json5.find(root, path[:-1]) if path and json5.find(root, path) is not None else None


def replace_texts(text: str, spans: Iterable[tuple[Node, str]]) -> str:
    """Put other source text in the place of some values."""
    for node, source in sorted(spans, key=lambda pair: pair[0].start, reverse=True):
        text = text[: node.start] + source + text[node.end :]
    return text


def _check(node: Node, path: Path) -> None:
    """Whether the last part of `path` can stand in `node`."""
    part = path[-1]
    if node.kind == "object" and isinstance(part, str):
        return
    if node.kind == "list" and isinstance(part, int):
        if part > len(node.items):
            raise UserError(f"{show(path)}: the list has only {len(node.items)} entries")
        return
    above = show(path[:-1]) or "the file"
    kind = {"object": "an object", "list": "a list"}.get(node.kind, "a single value")
    raise UserError(f"{show(path)}: {above} holds {kind}, so nothing can be set there")


def _wrapped(path: Path, value: Any) -> Any:
    for part in reversed(path):
        if isinstance(part, int):
            if part:
                raise UserError(f"a new list begins at [0], not at [{part}]")
            value = [value]
        else:
            value = {part: value}
    return value


def _indent(text: str, at: int) -> str:
    """The white space that begins the line on which `at` stands."""
    found = re.compile(r"[ \t]*").match(text, text.rfind("\n", 0, at) + 1)
    return found.group() if found else ""


def _unit(text: str, root: Node) -> str:
    """One step of indentation as this file has it."""
    parts = [member.start for member in root.members] or [item.value.start for item in root.items]
    return (_indent(text, parts[0]) if parts and "\n" in text[root.start : parts[0]] else "") or "  "


def _quotes(text: str, root: Node) -> bool:
    """Whether this file writes its keys in quotes."""
    return all(text[member.start] in "\"'" for member in root.members)


def _key(text: str, root: Node, key: str) -> str:
    if not _quotes(text, root) and _BARE.fullmatch(key):
        return key
    return json.dumps(key, ensure_ascii=False)


def _render(text: str, root: Node, value: Any, indent: str) -> str:
    """A value as source, its further lines indented below `indent`."""
    source = json.dumps(value, ensure_ascii=False, indent=_unit(text, root))
    if not _quotes(text, root):  # bare keys, as everywhere else in this file
        source = re.sub(r'(?m)^(\s*)"([A-Za-z_$][A-Za-z0-9_$]*)":', r"\1\2:", source)
    return source.replace("\n", "\n" + indent)


def _add(text: str, root: Node, node: Node, new: tuple[str | int, Any]) -> str:
    """Add a last member or item to an object or list."""
    part, value = new
    label = f"{_key(text, root, part)}: " if isinstance(part, str) else ""
    parts = [(member.value.end, member.comma) for member in node.members]
    parts = parts or [(item.value.end, item.comma) for item in node.items]
    close = node.end - 1
    line = text.rfind("\n", 0, close) + 1
    if line > node.start and not text[line:close].strip(" \t"):
        return _add_line(text, root, (node, parts), (label, value))
    if not parts and not text[node.start + 1 : close].strip():
        indent = _indent(text, node.start)
        inner = indent + _unit(text, root)
        source = f"\n{inner}{label}{_render(text, root, value, inner)}\n{indent}"
        return text[: node.start + 1] + source + text[close:]
    return _add_inline(text, root, (node, parts), (label, value))


def _add_line(text: str, root: Node, there: tuple[Node, list[tuple[int, int | None]]], new: tuple[str, Any]) -> str:
    """The closing bracket has a line of its own: the new part gets one before it."""
    node, parts = there
    label, value = new
    close = node.end - 1
    line = text.rfind("\n", 0, close) + 1
    first = (node.members[0].start if node.members else node.items[0].value.start) if parts else None
    own = first is not None and "\n" in text[node.start : first]
    indent = _indent(text, first) if own and first is not None else text[line:close] + _unit(text, root)
    tail = "," if parts and parts[-1][1] is not None else ""
    source = f"{indent}{label}{_render(text, root, value, indent)}{tail}\n"
    text = text[:line] + source + text[line:]
    if parts and parts[-1][1] is None:
        text = text[: parts[-1][0]] + "," + text[parts[-1][0] :]
    return text


def _add_inline(text: str, root: Node, there: tuple[Node, list[tuple[int, int | None]]], new: tuple[str, Any]) -> str:
    """Everything stands on the closing bracket's line: the new part follows the last one."""
    node, parts = there
    label, value = new
    source = label + json.dumps(value, ensure_ascii=False)
    if not parts:
        return text[: node.end - 1] + source + text[node.end - 1 :]
    end, comma = parts[-1]
    if comma is not None:
        return text[: comma + 1] + " " + source + "," + text[comma + 1 :]
    return text[:end] + ", " + source + text[end:]


def _cut(text: str, span: tuple[int, int, int | None], comma_before: int | None) -> str:
    """Remove one part with its comma (or the one before it); when its line is then blank, the line too."""
    start, end, comma = span
    if comma is not None:
        text = text[:comma] + text[comma + 1 :]
    before, after = text[:start], text[end:]
    line = before[before.rfind("\n") + 1 :]
    rest = after[: after.find("\n") + 1]
    if "\n" in before and rest and not line.strip() and not rest.strip():
        before, after = before[: len(before) - len(line)], after[len(rest) :]
    elif (comma_before is None or not line.strip()) and before[-1:] in " \t[{" and after[:1] in " \t":
        after = after.lstrip(" \t")
    if comma_before is not None:
        gap = before[comma_before + 1 :]
        before = before[:comma_before] + (gap if gap.strip(" \t") else "")
    return before + after
