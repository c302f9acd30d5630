"""Is there what the configured channels need of other people's packages."""

from __future__ import annotations

from collections.abc import Iterator

from garra.checks.finding import Finding, Ground
from garra.domains.plugins import known, packages


def check(ground: Ground) -> list[Finding]:
    return list(_faults(ground)) or [Finding("packages", "ok", "the packages of every configured channel are there")]


def _faults(ground: Ground) -> Iterator[Finding]:
    config = ground.snapshot.config
    for plugin in known.channels(ground.paths, config):
        for part in plugin.manifest.parts:
            section = config.channels.get(part.name)
            off = section is None or section.model_dump().get("enabled") is False
            if not off and (line := packages.needed(plugin)):
                yield Finding("packages", "bad", line, f"channels.{part.name}")
