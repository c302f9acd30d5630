"""Who can reach the gateway, and what it asks them for."""

from __future__ import annotations

from collections.abc import Iterator

from garra.checks.security.finding import Finding, Severity, found
from garra.checks.security.ground import Ground, named, weak
from garra.config.gate import Mode
from garra.core.addresses import loopback
from garra.core.policy import ALIASES, OVER_HTTP_DENIED
from garra.core.secret import Secret

SHORT = 24
"""Characters of a secret that nobody guesses."""
LOOSE = 60
"""Wrong credentials a minute that are no limit any more."""
DANGEROUS_COMMANDS = frozenset(
    {"camera.snap", "camera.clip", "screen.record", "screen.snapshot", "sms.send", "sms.read", "contacts.read",
     "contacts.list", "contacts.add", "calendar.add", "calendar.list", "reminders.add", "location.get",
     "computer.act", "computer.use", "system.run", "desktop.input", "photos.latest", "mic.record"}
)  # fmt: skip


def judge(ground: Ground) -> Iterator[Finding]:
    yield from _open(ground)
    yield from _secret(ground, "token", ground.config.gateway.auth.token, ground.gate.token)
    yield from _secret(ground, "password", ground.config.gateway.auth.password, ground.gate.password)
    yield from _limit(ground)
    yield from _proxies(ground)
    yield from _tailscale(ground)
    yield from _nodes(ground)
    yield from _told(ground)


def _worse(ground: Ground) -> Severity:
    return "critical" if ground.exposed else "warn"


def _open(ground: Ground) -> Iterator[Finding]:
    mode, where = ground.gate.mode, named(ground.hosts) or "no address"
    open_port = not all(loopback(host) for host in ground.hosts)
    vouched = mode == "trusted-proxy" and bool(ground.config.gateway.trusted_proxies)
    auth = ground.config.gateway.auth
    lacking = next((one.missing for one in (auth.token, auth.password) if one is not None and one.missing), "")
    if lacking and not ground.gate.secret:
        yield found("gateway.auth_secret_unavailable", f"{lacking.rstrip('.')}.")
    if open_port and not (vouched or ground.gate.secret or lacking):
        yield found("gateway.bind_no_auth", f"It would listen on {where} with auth.mode {mode} and no secret.")
    elif mode == "none":
        yield found("gateway.loopback_no_auth", f"It listens on {where} with auth.mode none.")
    if mode == "none":
        served = ["/tools/invoke", *_endpoints(ground)]
        yield found("gateway.http.no_auth", f"Open without a credential: {named(served)}.", _worse(ground))


def _endpoints(ground: Ground) -> Iterator[str]:
    endpoints = ground.config.gateway.http.endpoints
    if endpoints.chat_completions.enabled:
        yield "/v1/chat/completions"
    if endpoints.responses.enabled:
        yield "/v1/responses"


def _secret(ground: Ground, name: Mode, configured: Secret | None, used: Secret) -> Iterator[Finding]:
    """`configured` as the file has it, `used` with the variable."""
    secret = configured if configured is not None else used
    if secret.missing or (configured is None and not used):
        return
    where = f"gateway.auth.{name}" if configured is not None else f"The variable for gateway.auth.{name}"
    if weak(secret):
        yield found(f"gateway.{name}_placeholder_value", f"{where} holds no secret.")
    elif len(secret.reveal().strip()) < SHORT and ground.gate.mode == name:
        yield found(f"gateway.{name}_too_short", f"{where} has {len(secret.reveal().strip())} characters.")


def _limit(ground: Ground) -> Iterator[Finding]:
    limit = ground.config.gateway.auth.rate_limit
    minute = limit.max_attempts * 60_000 / max(limit.window_ms, limit.lockout_ms)
    if ground.exposed and minute > LOOSE:
        times = f"in {limit.window_ms} ms shut an address out for {limit.lockout_ms} ms"
        detail = f"{limit.max_attempts} wrong credentials {times}."
        yield found("gateway.auth_no_rate_limit", detail)


def _proxies(ground: Ground) -> Iterator[Finding]:
    section = ground.config.gateway
    local = all(loopback(host) for host in ground.hosts)
    meant = section.public_origin or next((o for o in section.control_ui.allowed_origins if not _near(o)), "")
    if local and section.tailscale.mode == "off" and not section.trusted_proxies and meant:
        yield found("gateway.trusted_proxies_missing", f"{meant} is named, the gateway listens on this machine alone.")
    if section.allow_real_ip_fallback:
        yield found("gateway.real_ip_fallback_enabled", "gateway.allowRealIpFallback is true.", _worse(ground))
    if ground.gate.mode == "trusted-proxy":
        yield from _trusted(ground)


def _near(origin: str) -> bool:
    """Whether an origin is one of this machine, or none at all."""
    host = origin.rpartition("//")[2].split("/")[0]
    name = host if host.endswith("]") else host.rpartition(":")[0] or host
    return origin == "*" or name == "localhost" or loopback(name)


def _trusted(ground: Ground) -> Iterator[Finding]:
    section = ground.config.gateway
    proxy = section.auth.trusted_proxy
    yield found("gateway.trusted_proxy_auth", "gateway.auth.mode is trusted-proxy.")
    if not section.trusted_proxies:
        yield found("gateway.trusted_proxy_no_proxies", "gateway.trustedProxies is empty.")
    if proxy is None or not proxy.user_header.strip():
        yield found("gateway.trusted_proxy_no_user_header", "gateway.auth.trustedProxy.userHeader is not set.")
    if proxy is None or not proxy.allow_users:
        yield found("gateway.trusted_proxy_no_allowlist", "gateway.auth.trustedProxy.allowUsers is empty.")
    if (proxy is not None and proxy.allow_loopback) or any(loopback(p.split("/")[0]) for p in section.trusted_proxies):
        yield found("gateway.trusted_proxy_allow_loopback", "Programs of this machine are among the trusted proxies.")


def _tailscale(ground: Ground) -> Iterator[Finding]:
    match ground.config.gateway.tailscale.mode:
        case "funnel":
            yield found("gateway.tailscale_funnel", "gateway.tailscale.mode is funnel.")
        case "serve":
            yield found("gateway.tailscale_serve", "gateway.tailscale.mode is serve.")
        case "off":
            pass


def _nodes(ground: Ground) -> Iterator[Finding]:
    commands = ground.config.gateway.nodes.commands
    private = [name for name in commands.allow if name in DANGEROUS_COMMANDS and name not in commands.deny]
    if private:
        yield found("gateway.nodes.allow_commands_dangerous", f"Allowed: {named(private)}.", _worse(ground))
    vain = [name for name in commands.deny if any(mark in name for mark in "*? /;|&$:")]
    if vain:
        yield found("gateway.nodes.deny_commands_ineffective", f"Not an exact name: {named(vain)}.")


def _told(ground: Ground) -> Iterator[Finding]:
    allowed = [n for n in ground.config.gateway.tools.allow if n == "*" or ALIASES.get(n, n) in OVER_HTTP_DENIED]
    if allowed:
        detail = f"gateway.tools.allow has {named(allowed)}."
        yield found("gateway.tools_invoke_http.dangerous_allow", detail, _worse(ground))
    if ground.said("discovery.mdns.mode") == "full":
        yield found("discovery.mdns_full_mode", "discovery.mdns.mode is full.", _worse(ground))
