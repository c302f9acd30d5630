"""Spans, metrics and log lines as OpenTelemetry's own objects, sent by its own exporters over OTLP/HTTP.

Its packages are loaded with the first use (`garra[otel]`). Nothing here waits: batches go to a thread, one at a time;
while a collector does not answer, what comes meanwhile is dropped beyond a bound, and one line says so.
"""

from __future__ import annotations

import hashlib
import importlib
import logging
from collections import deque
from collections.abc import Mapping, Sequence
from threading import Event
from typing import Any, Final

from garra.core.errors import UserError
from garra.core.exposition import Family, Spread, named
from garra.core.value import frozen, record
from garra.core.waterfall import Span
from garra.io.aside import Aside

log = logging.getLogger(__name__)

MOST: Final = 4_096
"""Of each signal at most so many wait to be sent."""
AT_ONCE: Final = 512
TIMEOUT_S: Final = 5.0
SCOPE: Final = "garra"
LIBRARY: Final = "opentelemetry"
MISSING: Final = "diagnostics.otel is on, but its packages are not here: install garra[otel]"
PRIVATE: Final = frozenset({"sessionKey", "messageId", "approvalId", "callId"})
"""What stays in the house: a conversation's key may name a person."""
GENERAL: Final[Mapping[str, str]] = {
    "provider": "gen_ai.provider.name",
    "model": "gen_ai.request.model",
    "inputTokens": "gen_ai.usage.input_tokens",
    "outputTokens": "gen_ai.usage.output_tokens",
    "tool": "gen_ai.tool.name",
}
"""Names that OpenTelemetry has for what we know."""
FAILED: Final = frozenset({"error", "timeout", "dead", "unsure", "refused"})


@frozen
class Settings:
    """Where to, as whom, and what. `endpoint` is empty for the exporters' own (`OTEL_EXPORTER_OTLP_…`, else local)."""

    endpoint: str = ""
    endpoints: Mapping[str, str] = {}
    headers: Mapping[str, str] = {}
    service: str = "garra-gateway"
    version: str = ""
    signals: tuple[str, ...] = ("traces", "metrics")
    sample: float = 1.0


@record
class _Way:
    """One signal on its way out. `down`: its collector did not take the last of it."""

    exporter: Any
    waiting: deque[Any]
    down: bool = False


def endpoint(settings: Settings, signal: str) -> str | None:
    """The whole address for a signal: its own, or the common one with the signal's path."""
    if own := settings.endpoints.get(signal):
        return own
    common, path = settings.endpoint.rstrip("/"), f"/v1/{signal}"
    return None if not common else common if common.endswith(path) else common + path


class Collector:
    """Hands what it is given to a collector. `flush` starts a batch; it does nothing while one is on its way."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._sdk = _load()
        self._resource = self._sdk.resources.Resource.create(
            {"service.name": settings.service, "service.version": settings.version}
        )
        self._scope = self._sdk.util.InstrumentationScope(SCOPE, settings.version)
        self._ways = {signal: self._way(signal) for signal in settings.signals}
        self._said = _Said()
        self._aside = Aside("otlp")
        self._free = Event()
        self._free.set()
        self._leaving = False

    def _way(self, signal: str) -> _Way:
        module, name = EXPORTERS[signal]
        made = getattr(importlib.import_module(module), name)
        headers = dict(self._settings.headers)
        where = endpoint(self._settings, signal)
        return _Way(made(endpoint=where, headers=headers, timeout=TIMEOUT_S), deque(maxlen=MOST))

    def turn(self, run_id: str, spans: Sequence[Span]) -> None:
        """The spans of one turn; all of them or none, as sampled by the run's id."""
        way = self._ways.get("traces")
        if way is None or not spans:
            return
        trace = int.from_bytes(hashlib.sha256(run_id.encode()).digest()[:16], "big")
        if (trace & (2**64 - 1)) < self._settings.sample * 2**64:
            way.waiting.extend(self._span(trace, span) for span in spans)

    def measured(self, families: Sequence[Family], prefix: str, began_ms: int, now_ms: int) -> None:
        """Everything that is measured, as it is now; it takes the place of what was not sent yet."""
        way = self._ways.get("metrics")
        if way is not None:
            way.waiting.clear()
            times = (began_ms * 1_000_000, now_ms * 1_000_000)
            way.waiting.append(self._metrics([self._metric(family, prefix, times) for family in families]))

    def said(self, entry: Mapping[str, Any], *, whole: bool) -> None:
        """A line of the log; its words only where `whole`. May be called in any thread."""
        way = self._ways.get("logs")
        if way is not None and not str(entry.get("subsystem", "")).startswith(LIBRARY):
            way.waiting.append(self._line(entry, whole=whole))

    def flush(self) -> None:
        if self._free.is_set():
            self._free.clear()
            self._aside.put(self._send)

    def close(self, wait_s: float = 0.0) -> None:
        """Send what is left, and wait so long for it."""
        self._leaving = True
        self._aside.put(self._send)
        self._aside.put(self._end)
        self._aside.close(wait_s)

    def _end(self) -> None:
        for way in self._ways.values():
            way.exporter.shutdown()
        self._said.end()

    def _send(self) -> None:
        """In the thread."""
        try:
            for signal, way in self._ways.items():
                while way.waiting and self._sent(signal, way):
                    pass
        finally:
            self._free.set()

    def _sent(self, signal: str, way: _Way) -> bool:
        batch = [way.waiting.popleft() for _ in range(min(AT_ONCE, len(way.waiting)))]
        self._said.last = ""
        done = way.exporter.export(batch[0] if signal == "metrics" else batch)
        fine: bool = done.name == "SUCCESS"
        before, way.down = self._down, not fine
        if self._leaving:
            return fine
        if self._down and not before:
            where = endpoint(self._settings, signal) or "the collector"
            why = f": {self._said.last}" if self._said.last else ""
            log.warning("%s are not taken at %s%s; it is tried on, what is too much is dropped", signal, where, why)
        elif before and not self._down:
            log.info("the collector takes everything again")
        return fine

    @property
    def _down(self) -> bool:
        return any(way.down for way in self._ways.values())

    # ---- as theirs

    def _context(self, trace: int, span: str) -> Any:
        api = self._sdk.trace_api
        return api.SpanContext(trace, _span_id(trace, span), is_remote=False, trace_flags=api.TraceFlags(1))

    def _span(self, trace: int, span: Span) -> Any:
        api = self._sdk.trace_api
        failed = span.attributes.get("result") or span.attributes.get("outcome")
        wrong = failed in FAILED or (span.kind == "model" and failed != "success")
        status = api.Status(api.StatusCode.ERROR, str(failed)) if wrong else api.Status(api.StatusCode.UNSET)
        return self._sdk.trace.ReadableSpan(
            name=f"{span.kind} {span.name}" if span.parent else "turn",
            context=self._context(trace, span.id),
            parent=self._context(trace, span.parent) if span.parent else None,
            resource=self._resource,
            attributes=attributes(span),
            kind=api.SpanKind.CLIENT if span.kind in ("model", "send") else api.SpanKind.INTERNAL,
            instrumentation_scope=self._scope,
            status=status,
            start_time=span.start_ms * 1_000_000,
            end_time=(span.end_ms if span.end_ms is not None else span.start_ms) * 1_000_000,
        )

    def _metrics(self, metrics: Sequence[Any]) -> Any:
        export = self._sdk.metrics
        scope = export.ScopeMetrics(self._scope, metrics, "")
        return export.MetricsData([export.ResourceMetrics(self._resource, [scope], "")])

    def _metric(self, family: Family, prefix: str, times: tuple[int, int]) -> Any:
        export = self._sdk.metrics
        points = [
            _point(export, dict(zip(family.labels, values, strict=True)), found, times) for values, found in family.rows
        ]
        kept = export.AggregationTemporality.CUMULATIVE
        match family.kind:
            case "counter":
                data = export.Sum(points, kept, is_monotonic=True)
            case "histogram":
                data = export.Histogram(points, kept)
            case _:
                data = export.Gauge(points)
        unit = "s" if "_seconds" in family.name else "By" if "_bytes" in family.name else ""
        return export.Metric(named(family.name, prefix), family.help, unit, data)

    def _line(self, entry: Mapping[str, Any], *, whole: bool) -> Any:
        logs = self._sdk.logs_api
        level, at = str(entry.get("level", "info")), int(entry.get("at_ns", 0))
        names = ("subsystem", "run_id", "agent_id", "channel")
        about = {f"garra.{name}": entry[name] for name in names if entry.get(name)}
        line = logs.LogRecord(
            timestamp=at,
            observed_timestamp=at,
            severity_text=level.upper(),
            severity_number=logs.SeverityNumber[SEVERITIES.get(level, "INFO")],
            body=entry.get("message") if whole else None,
            attributes=about,
        )
        return self._sdk.logs.ReadableLogRecord(line, self._resource, self._scope)


SEVERITIES: Final = {"trace": "TRACE", "debug": "DEBUG", "warn": "WARN", "error": "ERROR", "fatal": "FATAL"}
EXPORTERS: Final[Mapping[str, tuple[str, str]]] = {
    "traces": ("opentelemetry.exporter.otlp.proto.http.trace_exporter", "OTLPSpanExporter"),
    "metrics": ("opentelemetry.exporter.otlp.proto.http.metric_exporter", "OTLPMetricExporter"),
    "logs": ("opentelemetry.exporter.otlp.proto.http._log_exporter", "OTLPLogExporter"),
}


@frozen
class _Sdk:
    """The modules of OpenTelemetry that are used."""

    resources: Any
    trace: Any
    trace_api: Any
    metrics: Any
    logs: Any
    logs_api: Any
    util: Any


def _load() -> _Sdk:
    """Raises UserError where the packages are not installed."""
    names = ("resources", "trace")
    try:
        resources, trace = (importlib.import_module(f"opentelemetry.sdk.{name}") for name in names)
        importlib.import_module("opentelemetry.exporter.otlp.proto.http")
    except ImportError as error:
        raise UserError(f"{MISSING} ({error.name})") from None
    return _Sdk(
        resources,
        trace,
        importlib.import_module("opentelemetry.trace"),
        importlib.import_module("opentelemetry.sdk.metrics.export"),
        importlib.import_module("opentelemetry.sdk._logs"),
        importlib.import_module("opentelemetry._logs"),
        importlib.import_module("opentelemetry.sdk.util.instrumentation"),
    )


def attributes(span: Span) -> dict[str, Any]:
    """What of a span leaves the house: no key of a conversation, and nothing that names a message."""
    found: dict[str, Any] = {"garra.kind": span.kind}
    if span.kind == "model":
        found["gen_ai.operation.name"] = "chat"
    for name, value in span.attributes.items():
        if name in PRIVATE or isinstance(value, Mapping):
            continue
        found[GENERAL.get(name, f"garra.{name}")] = value
    return found


def _point(export: Any, labels: Mapping[str, str], found: float | Spread, times: tuple[int, int]) -> Any:
    if not isinstance(found, Spread):
        return export.NumberDataPoint(labels, *times, found)
    most = found.bounds[-1] if found.counts[-1] else 0.0
    return export.HistogramDataPoint(labels, *times, found.count, found.sum, found.counts, found.bounds, 0.0, most)


def _span_id(trace: int, span: str) -> int:
    """Never 0, which means none."""
    digest = hashlib.sha256(f"{trace}:{span}".encode()).digest()
    return int.from_bytes(digest[:8], "big") or 1


class _Said(logging.Handler):
    """Keeps the exporters' own words out of the log, where each batch would have some; the last is used for ours."""

    def __init__(self) -> None:
        super().__init__()
        self.last = ""
        logger = logging.getLogger(LIBRARY)
        logger.addHandler(self)
        logger.propagate = False

    def emit(self, record: logging.LogRecord) -> None:
        self.last = record.getMessage()[:200]

    def end(self) -> None:
        logger = logging.getLogger(LIBRARY)
        logger.removeHandler(self)
        logger.propagate = True
