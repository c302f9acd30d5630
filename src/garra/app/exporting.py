"""Traces, metrics and log lines to an OpenTelemetry collector, as `diagnostics.otel` says; loaded where it is
on.
"""

from __future__ import annotations

import logging
from typing import Any, Final

from garra import __version__
from garra.app.house import House
from garra.config.sections.diagnostics import Otel
from garra.core import waterfall
from garra.core.errors import GarraError
from garra.core.waterfall import Told
from garra.domains.metrics.otlp import Collector, Settings
from garra.gateway.methods.trace import letters
from garra.io.log import current
from garra.runs.recorder import Kept
from garra.sdk.ports import Task

log = logging.getLogger(__name__)

SETTLED_S: Final = 5.0
"""So long after its end a turn is sent: by then its answers are out, and their confirmation is part of it."""
SIGNALS: Final = ("traces", "metrics", "logs")


def settings(otel: Otel) -> Settings:
    on = {"traces": otel.traces, "metrics": otel.metrics, "logs": otel.logs and otel.logs_exporter != "stdout"}
    own = {"traces": otel.traces_endpoint, "metrics": otel.metrics_endpoint, "logs": otel.logs_endpoint}
    headers = {name: value.reveal() for name, value in otel.headers.items()}
    signals = tuple(signal for signal in SIGNALS if on[signal])
    return Settings(otel.endpoint, own, headers, otel.service_name, __version__, signals, otel.sample_rate)


class Exporting:
    """One collector, until `close`."""

    def __init__(self, house: House, metering: Any, otel: Otel) -> None:
        self._house, self._metering, self._otel = house, metering, otel
        self._whole = otel.capture_content is True
        self._collector = Collector(settings(otel))
        house.recorder.tellers.append(self._turned)
        self._log = current()
        if self._log is not None:
            self._log.tellers.append(self._said)
        self._task: Task = house.spawn(self._run(), "OpenTelemetry")

    def close(self, wait_s: float = 0.0) -> None:
        self._house.recorder.tellers.remove(self._turned)
        if self._log is not None:
            self._log.tellers.remove(self._said)
        self._task.cancel()
        self._collector.close(wait_s)

    def _said(self, entry: dict[str, Any]) -> None:
        self._collector.said(entry, whole=self._whole)

    def _turned(self, kept: Kept) -> None:
        self._house.spawn(self._told(kept), "trace of a turn")

    async def _told(self, kept: Kept) -> None:
        await self._house.clock.sleep(min(SETTLED_S, self._otel.flush_interval_ms / 1000))
        try:
            found = await self._house.db.read(lambda c: letters(c, (kept.run,)))
        except GarraError as error:
            log.debug("what became of the messages of %s cannot be read: %s", kept.run, error.message)
            found = ([], [])
        told = Told(kept.run, kept.session, kept.agent, kept.origin, kept.led_by)
        self._collector.turn(kept.run, waterfall.spans(told, kept.marks, *found))

    async def _run(self) -> None:
        house, began = self._house, self._house.clock.now_ms()
        prefix = house.paths.prefix.lower()
        while True:
            await house.clock.sleep(self._otel.flush_interval_ms / 1000)
            if self._otel.metrics:
                try:
                    families = await self._metering.families()
                except GarraError as error:
                    log.debug("nothing is measured: %s", error.message)
                else:
                    self._collector.measured(families, prefix, began, house.clock.now_ms())
            self._collector.flush()


def begun(house: House, metering: Any) -> Exporting | None:
    """None where it cannot be; the log says why."""
    otel = house.live.config.diagnostics.otel
    if otel.protocol != "http/protobuf":
        log.warning("diagnostics.otel.protocol is %r: only http/protobuf is spoken, nothing is sent", otel.protocol)
        return None
    try:
        return Exporting(house, metering, otel)
    except GarraError as error:
        log.warning("%s", error.message)
        return None
