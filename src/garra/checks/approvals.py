"""Can what may run unasked be read, and does anything wait for a person."""

from __future__ import annotations

from garra.checks.finding import Finding, Ground
from garra.core import execrules
from garra.core.errors import GarraError
from garra.domains.exec import approvals_rules
from garra.io.store import look


def check(ground: Ground) -> list[Finding]:
    stored = look.shelf(ground.paths.db, approvals_rules.SPACE).get("document")
    if stored is None:
        return []
    try:
        rules = execrules.parse(stored)
    except GarraError as fault:
        how = "garra approvals get shows it, garra approvals set --file FILE replaces it"
        what = f"no command runs on this machine: the document of approvals cannot be read: {fault.message}"
        return [Finding("approvals", "bad", what, str(ground.paths.db), how)]
    count = sum(len(policy.allowlist) for policy in (rules.defaults, *rules.agents.values()))
    return [Finding("approvals", "ok", f"{count} entr{'y' if count == 1 else 'ies'} of what may run unasked")]
