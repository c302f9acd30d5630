"""What the smaller sources share: YAML, skills, values that may be of any type. Blocks."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from garra.core.errors import UserError
from garra.core.migration import File, Item
from garra.domains.migration import files
from garra.domains.migration.packed import REMEDY


def mapping(value: Any) -> Mapping[str, Any]:
    """`value` where it is a mapping, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def yaml(text: str) -> Any:
    """Plain values of a YAML text; None where it cannot be read. Raises UserError without a reader of YAML."""
    try:
        library = importlib.import_module("yaml")
    except ImportError:
        raise UserError(f"config.yaml needs a reader of YAML; install it: {REMEDY}") from None
    try:
        return library.safe_load(text)
    except library.YAMLError:
        return None


def skills(folder: Path) -> Iterator[Item]:
    """Each skill below a folder, to be put into the workspace's own."""
    for name, found in files.skills(folder):
        below = tuple(File(each.source, f"skills/{name}/{each.target}") for each in found)
        yield Item(f"skill:{name}", "skill", f"skill {name} ({len(found)} files)", below)


def profiles(keys: Mapping[str, str]) -> dict[str, Any]:
    """Keys by provider as a document of logins."""
    rows = {f"{name}:default": {"type": "api_key", "provider": name, "key": key} for name, key in keys.items()}
    return {"version": 1, "profiles": rows}
