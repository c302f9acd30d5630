"""The whole in one line, and what only a running gateway shows."""

from __future__ import annotations

from collections.abc import Iterator

from garra.checks.security.finding import Finding, found
from garra.checks.security.ground import Deep, Ground, named
from garra.checks.security.reach import accounts
from garra.checks.security.sandbox import modes


def judge(ground: Ground) -> Iterator[Finding]:
    yield found("summary.attack_surface", "; ".join(_words(ground)) + ".")
    deep = ground.deep
    if deep is not None and deep.running and deep.probe:
        yield found("gateway.probe_failed", f"{deep.url}: {deep.probe}")
    if deep is not None and deep.naked:
        yield found("gateway.probe_unauthenticated", f"{deep.url} let the audit in without a credential.")


def _asked(deep: Deep) -> str:
    if not deep.running:
        return "gateway not asked: none runs"
    return f"gateway asked at {deep.url}: {'it did not answer' if deep.probe else 'it answered'}"


def _words(ground: Ground) -> Iterator[str]:
    every = list(accounts(ground))
    reach = "from other machines too" if ground.exposed else "from this machine alone"
    yield f"gateway: {reach}, auth {ground.gate.mode}"
    closed = sum(not one.open for one in every)
    yield f"chat accounts: {len(every)}, {closed} of them closed to strangers"
    yield f"commands: sandbox {named(dict.fromkeys(modes(ground).values()))}"
    on = "on" if ground.config.tools.elevated.enabled else "off"
    yield f"elevated {on}, browser {'on' if ground.config.browser.enabled else 'off'}"
    if ground.deep is not None:
        yield _asked(ground.deep)
    yield f"webhooks {'on' if ground.config.hooks.enabled else 'off'}, plugins installed: {len(ground.plugins)}"
