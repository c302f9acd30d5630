"""Every check, in the order in which a person would look."""

from __future__ import annotations

from garra.checks import (
    approvals,
    audit,
    browser,
    config,
    hearing,
    links,
    model,
    packages,
    pause,
    place,
    plugins,
    port,
    sandbox,
    service,
    state,
    stored,
)
from garra.checks.finding import Check, Finding, Ground

CHECKS: tuple[Check, ...] = (
    config.check,
    state.check,
    stored.check,
    place.check,
    port.check,
    service.check,
    links.check,
    model.check,
    hearing.check,
    plugins.check,
    packages.check,
    browser.check,
    pause.check,
    sandbox.check,
    approvals.check,
    audit.check,
)


def examine(ground: Ground) -> list[Finding]:
    """All that was found, well or not."""
    return [finding for check in CHECKS for finding in check(ground)]
