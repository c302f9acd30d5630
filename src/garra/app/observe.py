"""Metrics and OpenTelemetry, as `diagnostics` says at any time; what does it is loaded only where it is on."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from garra.config.sections import Config
from garra.gateway.work import METRICS, TRACES

if TYPE_CHECKING:
    from garra.app.channels import Channels
    from garra.app.house import House
    from garra.gateway.host import Host

THEIRS: Final = "diagnostics-prometheus"
"""The original's plugin, whose entry switches its metrics on."""
LEAVE_S: Final = 2.0
"""How long the last of it may take to be sent when the gateway stops."""


def served(config: Config) -> bool:
    """Whether Prometheus may ask."""
    entry = config.plugins.entries.get(THEIRS)
    on = config.diagnostics.prometheus.enabled or (entry is not None and entry.enabled is True)
    return config.diagnostics.enabled and on


def sent(config: Config) -> bool:
    """Whether anything goes to a collector."""
    return config.diagnostics.enabled and config.diagnostics.otel.enabled


class _Watch:
    def __init__(self, house: House, host: Host, channels: Channels) -> None:
        self._house, self._host = house, host
        self._parts = (house, host, channels)
        self._metering: Any = None
        self._export: Any = None

    def follow(self, old: Config | None, new: Config) -> None:
        if old is not None and old.diagnostics == new.diagnostics and served(old) == served(new):
            return
        if self._export is not None:
            self._export.close()
            self._export = None
        if served(new) or sent(new):
            if self._metering is None:
                self._metering = importlib.import_module("garra.app.metering").Metering(*self._parts)
                self._metering.start()
        elif self._metering is not None:
            self._metering.close()
            self._metering = None
        self._host.more[METRICS] = self._metering if served(new) else None
        if sent(new):
            self._export = importlib.import_module("garra.app.exporting").begun(self._house, self._metering)

    def close(self) -> None:
        if self._export is not None:
            self._export.close(LEAVE_S)
        if self._metering is not None:
            self._metering.close()


def watch(house: House, host: Host, channels: Channels) -> Callable[[], None]:
    """From now on as configured; the call ends it. Traces of turns are there in any case."""
    host.more[TRACES] = (house.recorder, house.db)
    watching = _Watch(house, host, channels)
    watching.follow(None, house.live.config)
    end = house.live.subscribe(watching.follow)

    def over() -> None:
        end()
        watching.close()

    return over
