"""`diagnostics`: measurements for Prometheus, and traces, metrics and logs for OpenTelemetry."""

from typing import Any

from garra.config.sections.fields import Field, SecretText, Section, part


class Prometheus(Section):
    """`GET /metrics`, for those who show the gateway's secret. (Ours; the original's switch is the plugin entry.)"""

    enabled: bool = False


class Otel(Section):
    """What is sent to an OTLP collector (needs `garra[otel]`). An endpoint of one signal wins over `endpoint`."""

    enabled: bool = False
    endpoint: str = ""
    traces_endpoint: str = ""
    metrics_endpoint: str = ""
    logs_endpoint: str = ""
    protocol: str = "http/protobuf"
    headers: dict[str, SecretText] = Field(default_factory=dict)
    service_name: str = "garra-gateway"
    traces: bool = True
    metrics: bool = True
    logs: bool = False
    logs_exporter: str = "otlp"
    sample_rate: float = Field(1.0, ge=0, le=1)
    flush_interval_ms: int = Field(5_000, ge=1_000)
    capture_content: bool | dict[str, Any] = False


class Diagnostics(Section):
    """`enabled` false switches all of it off. `flags` and `cacheTrace` are the original's; nothing here reads them."""

    enabled: bool = True
    flags: tuple[str, ...] = ()
    prometheus: Prometheus = part(Prometheus)
    otel: Otel = part(Otel)
    cache_trace: dict[str, Any] = Field(default_factory=dict)
