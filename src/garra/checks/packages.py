"""Is there what the configured channels and the tools need of other people's packages."""

from __future__ import annotations

from collections.abc import Iterator

from garra.checks.finding import Finding, Ground
from garra.domains.plugins import known, packages
from garra.domains.web import settings


def check(ground: Ground) -> list[Finding]:
    faults = list(_channels(ground))
    well = [] if faults else [Finding("packages", "ok", "the packages of every configured channel are there")]
    return [*well, *faults, *_tools(ground)]


def _channels(ground: Ground) -> Iterator[Finding]:
    config = ground.snapshot.config
    for plugin in known.channels(ground.paths, config):
        for part in plugin.manifest.parts:
            section = config.channels.get(part.name)
            off = section is None or section.model_dump().get("enabled") is False
            if not off and (line := packages.needed(plugin)):
                yield Finding("packages", "bad", line, f"channels.{part.name}")


def _tools(ground: Ground) -> Iterator[Finding]:
    """What a tool lacks that is not switched off: it says so itself when it is called, or does with less."""
    config = ground.snapshot.config
    off = {name for layer in settings.switches(config, ground.env, ()) for name in layer.deny}
    for plugin in known.tools(ground.paths, config):
        if not all(part.name in off for part in plugin.manifest.parts):
            if line := packages.needed(plugin):
                yield Finding("packages", "warn", line)
            elif line := packages.welcome(plugin):
                yield Finding("packages", "note", line)
