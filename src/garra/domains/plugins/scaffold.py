"""Writes the beginning of a plugin: a folder that works as it is, with its test."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

from garra.core.errors import Conflict, UserError
from garra.domains.plugins.known import box_providers, builtin_tools

KINDS = ("tool", "provider")
_NAME = re.compile(r"^[a-z][a-z0-9-]{0,39}$")


def write(kind: str, name: str, folder: Path) -> list[Path]:
    """Write a plugin of `kind` into `folder`, which must not exist; gives the files. Raises UserError and Conflict."""
    if kind not in KINDS:
        raise UserError(f"there is no beginning for a {kind!r}; there is one for {', '.join(KINDS)}")
    if not _NAME.match(name):
        raise UserError(f"{name!r} is no name: lower-case letters, digits and dashes, beginning with a letter")
    if kind == "tool" and name.replace("-", "_") in builtin_tools():
        raise Conflict(
            f"there is a built-in tool {name.replace('-', '_')}, which would hide yours; choose another name"
        )
    if kind == "provider" and name in box_providers():
        raise Conflict(
            f"there is a built-in provider {name}, which yours would change; choose another name, or set what differs "
            f"under models.providers.{name}"
        )
    if folder.exists():
        raise Conflict(f"{folder} is there already; choose another name, or remove it")
    folder.mkdir(parents=True)
    return [_file(template, text, name, folder) for template, text in _templates(kind)]


def _templates(kind: str) -> list[tuple[str, str]]:
    root = resources.files(__package__) / "templates" / kind
    return sorted((file.name, file.read_text("utf-8")) for file in root.iterdir() if file.name.endswith(".txt"))


def _file(template: str, text: str, name: str, folder: Path) -> Path:
    words = name.split("-")
    values = {
        "name": name,
        "tool": name.replace("-", "_"),
        "title": " ".join(words).capitalize(),
        "class": "".join(word.capitalize() for word in words),
        "variable": name.replace("-", "_").upper(),
    }
    for key, value in values.items():
        text = text.replace(f"{{{key}}}", value)
    path = folder / template.removesuffix(".txt")
    path.write_text(text, "utf-8")
    return path
