"""Writes the pages that are made from the code: `python -m docs.make.reference`. A test keeps them equal."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from docs.make import commands, drawing, methods, plugins, settings
from docs.make.page import DOCS

PAGES: Mapping[str, Callable[[], str]] = {
    "reference/methods.md": methods.methods,
    "reference/events.md": methods.events,
    "reference/errors.md": methods.errors,
    "reference/settings.md": settings.settings,
    "reference/cli.md": commands.commands,
    "reference/manifest.md": plugins.manifests,
    "reference/plugin-api.md": plugins.contracts,
    "images/layers.svg": drawing.drawing,
}
"""By the file below `docs`: what makes it."""


def mute() -> list[str]:
    """Everything that has no line: methods, events, error codes, settings, options, keys of the manifest, contracts."""
    return [*methods.mute(), *settings.mute(), *commands.mute(), *plugins.mute()]


def main() -> None:
    for name, make in PAGES.items():
        (DOCS / name).write_text(make())


if __name__ == "__main__":
    main()
