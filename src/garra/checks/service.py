"""Is the service that keeps the gateway running this installation's, and as it would be written today."""

from __future__ import annotations

from pathlib import Path

from garra.checks.finding import Finding, Ground
from garra.core.errors import GarraError
from garra.domains.upkeep.service import Installed


def check(ground: Ground) -> list[Finding]:
    service = Installed(ground.paths, ground.env)
    plan = service.plan()
    unit = Path(plan.files[0].path)
    try:
        text = unit.read_text(errors="replace")
    except OSError:
        return []
    if _lasting(text) == _lasting(plan.files[0].text):
        return [Finding("service", "ok", f"the service {plan.name} is up to date", str(unit))]

    def rewrite() -> str:
        kept = unit.with_name(f"{unit.name}.before")
        kept.write_text(text)
        try:
            service.rewrite()
        except GarraError as fault:
            return f"wrote {unit} anew (before: {kept}), but its manager was not told: {fault.message}"
        return f"wrote {unit} anew; as it was: {kept}. It counts from the next start: garra gateway restart"

    program = service.facts().program[0]
    state = ground.paths.state
    other = program not in text or (str(state) not in text and state != ground.paths.home / ".garra")
    what = "is of another installation" if other else "is not as it would be written today"
    how = "garra gateway install --force writes it for this one"
    return [Finding("service", "warn", f"the service {plan.name} {what}", str(unit), how, None if other else rewrite)]


def _lasting(text: str) -> list[str]:
    """Its lines without the search path, which is each shell's own."""
    kept: list[str] = []
    after = False
    for line in text.splitlines():
        if not after and not line.startswith('Environment="PATH=') and not line.startswith("Environment=PATH="):
            kept.append(line)
        after = "<key>PATH</key>" in line
    return kept
