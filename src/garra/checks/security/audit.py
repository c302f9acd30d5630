"""The security audit: every check over one ground, what the owner accepts set apart, and the report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from garra.checks.security import (
    browser,
    channels,
    exposure,
    files,
    gateway,
    hooks,
    page,
    plugins,
    sandbox,
    settings,
    summary,
    tools,
)
from garra.checks.security.finding import Finding
from garra.checks.security.ground import Ground
from garra.core.value import frozen

Judge = Callable[[Ground], Iterator[Finding]]

JUDGES: tuple[Judge, ...] = (
    files.judge,
    gateway.judge,
    page.judge,
    settings.judge,
    channels.judge,
    exposure.judge,
    tools.judge,
    sandbox.judge,
    hooks.judge,
    browser.judge,
    plugins.judge,
    summary.judge,
)
ORDER = ("critical", "warn", "info")
UNSUPPRESSED = "security.audit.suppressions.active"


@frozen
class Report:
    """What was found, the worst first, and what the owner accepts (`security.audit.suppressions`)."""

    findings: tuple[Finding, ...]
    suppressed: tuple[Finding, ...] = ()

    @property
    def summary(self) -> Mapping[str, int]:
        return {severity: sum(one.severity == severity for one in self.findings) for severity in ORDER}

    @property
    def code(self) -> int:
        """How the command ends: 1 where anything is critical, else 0. Warnings fail nothing."""
        return 1 if self.summary["critical"] else 0


def audit(ground: Ground) -> Report:
    """Judge everything."""
    every = sorted((one for judge in JUDGES for one in judge(ground)), key=lambda one: ORDER.index(one.severity))
    rows = ground.said("security.audit.suppressions")
    rules = [row for row in rows if isinstance(row, Mapping)] if isinstance(rows, Sequence) else []
    hidden = [one for one in every if any(accepts(rule, one) for rule in rules)]
    return Report(tuple(one for one in every if one not in hidden), tuple(hidden))


def accepts(rule: Mapping[str, Any], one: Finding) -> bool:
    """Whether one suppression holds for a finding: its very id, and the words it names, whatever their case."""
    if rule.get("checkId") != one.check_id or one.check_id == UNSUPPRESSED:
        return False
    wanted = (("titleIncludes", one.title), ("detailIncludes", one.detail))
    return all(str(rule[key]).casefold() in text.casefold() for key, text in wanted if rule.get(key))


def told(report: Report, at_ms: int) -> dict[str, Any]:
    """The report as JSON."""
    return {
        "ts": at_ms,
        "summary": dict(report.summary),
        "findings": [_told(one) for one in report.findings],
        **({"suppressedFindings": [_told(one) for one in report.suppressed]} if report.suppressed else {}),
    }


def _told(one: Finding) -> dict[str, Any]:
    row = {"checkId": one.check_id, "severity": one.severity, "title": one.title, "detail": one.detail}
    return {**row, "remediation": one.remediation} if one.remediation else row
