"""Settings that a running gateway reads once, when it starts. Everything else it takes over while it runs."""

from __future__ import annotations

from garra.config.sections import Config


def changed(before: Config, after: Config) -> tuple[str, ...]:
    """The paths of those that differ, as a person writes them."""
    pairs = {
        "gateway.port": (before.gateway.port, after.gateway.port),
        "gateway.bind": (before.gateway.bind, after.gateway.bind),
        "gateway.customBindHost": (before.gateway.custom_bind_host, after.gateway.custom_bind_host),
    }
    return tuple(path for path, (old, new) in pairs.items() if old != new)
