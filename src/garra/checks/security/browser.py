"""Who can steer the browser, and what it can reach."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from garra.checks.security.finding import Finding, found
from garra.checks.security.ground import Ground
from garra.core.addresses import loopback, public

WIRE = ("http", "https", "ws", "wss")


def judge(ground: Ground) -> Iterator[Finding]:
    browser = ground.config.browser
    if not browser.enabled:
        return
    if ground.gate.mode == "none":
        yield found("browser.control_no_auth", "browser.enabled is true and gateway.auth.mode is none.")
    if browser.no_sandbox:
        yield found("browser.no_sandbox", "browser.noSandbox is true.")
    profiles: Any = (browser.model_extra or {}).get("profiles")
    for name, profile in profiles.items() if isinstance(profiles, Mapping) else ():
        url = profile.get("cdpUrl") if isinstance(profile, Mapping) else None
        if url:
            yield from _remote(f"browser.profiles.{name}.cdpUrl", str(url))
    if url := (browser.model_extra or {}).get("cdpUrl"):
        yield from _remote("browser.cdpUrl", str(url))


def _remote(where: str, url: str) -> Iterator[Finding]:
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").rstrip(".")
    except ValueError:
        parts, host = urlsplit(""), ""
    if parts.scheme not in WIRE or not host:
        yield found("browser.control_invalid_config", f"{where} is no address.")
        return
    if host == "localhost" or loopback(host):
        return
    if parts.scheme in {"http", "ws"}:
        yield found("browser.remote_cdp_http", f"{where} goes to {host} by {parts.scheme}.")
    if _private(host):
        yield found("browser.remote_cdp_private_host", f"{where} goes to {host}.")


def _private(host: str) -> bool:
    number = ":" in host or host.replace(".", "").isdigit()
    return not public(host) if number else "." not in host or host.endswith((".local", ".internal", ".lan", ".home"))
