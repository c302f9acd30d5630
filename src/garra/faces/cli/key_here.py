"""Whether a model's provider has a key, told without loading the configuration's types."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from importlib import resources
from typing import Any

from garra.config import source
from garra.faces.cli.place import Place


def missing(here: Place, ref: str) -> bool:
    """Whether `provider/model` needs a key, and this environment and the configuration have none.

    False where that cannot be told: a provider of a plugin, a model's other name.
    """
    provider, slash, _ = ref.partition("/")
    name = provider.strip().lower()
    if not slash:
        return False
    settings = _settings(here.config, name)
    if "apiKey" in settings:
        key = settings["apiKey"]
        return isinstance(key, str) and (not key.strip() or "${" in key)
    names = _variables(name)
    if not names:
        return False
    env = source.read(here.paths, here.env).env
    return not any(env.get(variable) for variable in names)


def _settings(config: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value: Any = config
    for key in ("models", "providers"):
        value = value.get(key) if isinstance(value, Mapping) else None
    listed = value.items() if isinstance(value, Mapping) else ()
    return next((each for key, each in listed if key.strip().lower() == name and isinstance(each, Mapping)), {})


def _variables(name: str) -> tuple[str, ...]:
    """The variables that may hold the key of a provider in the box; none where it works without."""
    file = resources.files("garra") / "builtin" / "providers" / f"{name}.toml"
    if not re.fullmatch(r"[a-z0-9][a-z0-9.-]*", name) or not file.is_file():
        return ()
    found = tomllib.loads(file.read_text("utf-8"))
    return tuple(found.get("key_env", ())) if found.get("auth", "key") == "key" else ()
