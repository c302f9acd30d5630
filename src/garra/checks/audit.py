"""What the security audit finds critical, in one line: the doctor is asked more often than it is."""

from __future__ import annotations

from garra.checks.finding import Finding, Ground
from garra.checks.security.audit import audit
from garra.checks.security.gather import gather

HOW = "garra security audit says what, why and how to mend it"


def check(ground: Ground) -> list[Finding]:
    summary = audit(gather(ground)).summary
    critical, warn = summary["critical"], summary["warn"]
    if critical:
        what = f"the security audit finds {critical} critical, {warn} to look at"
        return [Finding("security", "warn", what, "", HOW)]
    if warn:
        return [Finding("security", "note", f"the security audit finds {warn} to look at", "", HOW)]
    return [Finding("security", "ok", "the security audit finds nothing to mend")]
