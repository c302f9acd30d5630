"""The containers and images of this gateway that an engine has now, found by their labels."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Mapping
from datetime import datetime
from typing import Any, Protocol

from garra.core.value import frozen
from garra.sdk.sandbox import Probed

MARK = "garra"
"""How the labels of containers and images begin."""


@frozen
class Standing:
    """One container. `created_at` in milliseconds since 1970; `process` is the gateway's that made it, 0: unknown."""

    id: str
    name: str
    scope: str
    session: str
    image: str
    config: str
    created_at: int
    running: bool
    process: int


class Asked(Protocol):
    """Asks the engine."""

    def __call__(self, *words: str) -> Awaitable[Probed]: ...


async def standing(asked: Asked, installation: str) -> list[Standing]:
    """The containers of an installation, the oldest first; none where the engine does not say."""
    mark = f"label={MARK}.installation={installation}"
    listed = await asked("ps", "--all", "--quiet", "--no-trunc", "--filter", mark)
    ids = [word for word in listed.output.split() if word.isalnum()] if listed.code == 0 else []
    if not ids:
        return []
    told = await asked("inspect", "--type", "container", *ids)
    try:  # one that has just ended makes the engine say so, behind what it knows of the others
        found = json.loads(told.output[: told.output.rindex("]") + 1])
    except ValueError:
        return []
    rows = [row for each in found if isinstance(each, Mapping) and (row := _read(each)) is not None]
    return sorted(rows, key=lambda row: (row.created_at, row.id))


async def images(asked: Asked, installation: str) -> list[tuple[str, str]]:
    """The images that setups of an installation made: each with its scope."""
    mark = f"label={MARK}.installation={installation}"
    listed = await asked("image", "ls", "--quiet", "--no-trunc", "--filter", mark)
    ids = list(dict.fromkeys(listed.output.split())) if listed.code == 0 else []
    found: list[tuple[str, str]] = []
    for name in ids:
        told = await asked("image", "inspect", "--format", f'{{{{index .Config.Labels "{MARK}.scope"}}}}', name)
        if told.code == 0:
            found.append((name, told.output.strip()))
    return found


def _read(raw: Mapping[str, Any]) -> Standing | None:
    config, state = raw.get("Config"), raw.get("State")
    labels = config.get("Labels") if isinstance(config, Mapping) else None
    if not isinstance(labels, Mapping) or not isinstance(state, Mapping) or not isinstance(raw.get("Id"), str):
        return None
    told = {
        name: str(labels.get(f"{MARK}.{name}") or "") for name in ("scope", "session", "image", "config", "process")
    }
    return Standing(
        raw["Id"],
        str(raw.get("Name") or "").removeprefix("/"),
        told["scope"],
        told["session"],
        told["image"],
        told["config"],
        _time(raw.get("Created")),
        state.get("Running") is True,
        int(told["process"]) if told["process"].isdecimal() else 0,
    )


def _time(text: Any) -> int:
    """When it was, of RFC 3339 with nanoseconds; 0 where that cannot be read."""
    head, _, rest = str(text).partition(".")
    zone = rest.lstrip("0123456789") or ("Z" if rest else "")
    try:
        return int(datetime.fromisoformat(head + zone).timestamp() * 1000)
    except (ValueError, OverflowError):
        return 0
