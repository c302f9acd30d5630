"""Can what may run unasked be read, and does anything wait for a person."""

from __future__ import annotations

from collections.abc import Iterator

from garra.checks.finding import Finding, Ground
from garra.core import execrules, forwarding
from garra.core.errors import GarraError
from garra.domains.exec import approvals_rules
from garra.io.store import look


def check(ground: Ground) -> list[Finding]:
    return [*_document(ground), *_forwarding(ground)]


def _forwarding(ground: Ground) -> Iterator[Finding]:
    """What of `approvals.exec` and `approvals.plugin` cannot be read carries no question anywhere."""
    for family in ("exec", "plugin"):
        raw = ground.snapshot.config.approvals.get(family)
        for line in forwarding.faults(raw) if raw is not None else ():
            what = f"no question is forwarded: approvals.{family}: {line}"
            yield Finding("approvals", "warn", what, str(ground.paths.config_file), "mend it there")


def _document(ground: Ground) -> list[Finding]:
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
