"""Which web pages may talk to the gateway."""

from __future__ import annotations

from collections.abc import Iterator

from garra.checks.security.finding import Finding, Severity, found
from garra.checks.security.ground import Ground
from garra.core.addresses import loopback


def judge(ground: Ground) -> Iterator[Finding]:
    page = ground.config.gateway.control_ui
    worse: Severity = "critical" if ground.exposed else "warn"
    fallback = page.dangerously_allow_host_header_origin_fallback
    listening = not all(loopback(host) for host in ground.hosts)
    if page.enabled and listening and not (page.allowed_origins or ground.config.gateway.public_origin or fallback):
        detail = "The gateway listens beyond this machine, and gateway.controlUi.allowedOrigins is empty."
        yield found("gateway.control_ui.allowed_origins_required", detail)
    if "*" in page.allowed_origins:
        yield found("gateway.control_ui.allowed_origins_wildcard", "gateway.controlUi.allowedOrigins has *.", worse)
    if fallback:
        detail = "gateway.controlUi.dangerouslyAllowHostHeaderOriginFallback is true."
        yield found("gateway.control_ui.host_header_origin_fallback", detail, worse)
