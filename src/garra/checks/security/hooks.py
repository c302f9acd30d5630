"""Who may start work by a request from outside, and where it goes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hmac import compare_digest
from typing import Any

from garra.checks.security.finding import Finding, Severity, found
from garra.checks.security.gateway import SHORT
from garra.checks.security.ground import Ground, listed
from garra.core.secret import Secret


def judge(ground: Ground) -> Iterator[Finding]:
    hooks = ground.config.hooks
    if not hooks.enabled:
        return
    more: Mapping[str, Any] = hooks.model_extra or {}
    if hooks.token is not None and not hooks.token.missing:
        yield from _token(ground, hooks.token)
    if hooks.path.strip("/ ") == "":
        yield found("hooks.path_root", f"hooks.path is {hooks.path!r}.")
    yield from _where(more, "critical" if ground.exposed else "warn")


def _token(ground: Ground, token: Secret) -> Iterator[Finding]:
    shown = token.reveal().strip()
    for name, other in (("token", ground.gate.token), ("password", ground.gate.password)):
        if shown and other and compare_digest(shown.encode(), other.reveal().strip().encode()):
            yield found("hooks.token_reuse_gateway_token", f"hooks.token is the gateway's {name}.")
            break
    if len(shown) < SHORT:
        yield found("hooks.token_too_short", f"hooks.token has {len(shown)} characters.")


def _where(more: Mapping[str, Any], worse: Severity) -> Iterator[Finding]:
    if not str(more.get("defaultSessionKey") or "").strip():
        yield found("hooks.default_session_key_unset", "hooks.defaultSessionKey is not set.")
    agents = more.get("allowedAgentIds")
    if agents is None or "*" in listed(agents):
        yield found("hooks.allowed_agent_ids_unrestricted", "hooks.allowedAgentIds bounds nothing.", worse)
    if more.get("allowRequestSessionKey") is True:
        yield found("hooks.request_session_key_enabled", "hooks.allowRequestSessionKey is true.", worse)
        if not listed(more.get("allowedSessionKeyPrefixes")):
            detail = "hooks.allowedSessionKeyPrefixes is empty."
            yield found("hooks.request_session_key_prefixes_missing", detail, worse)
