"""What was installed: who trusts it, and what its code does."""

from __future__ import annotations

from collections.abc import Iterator

from garra.checks.security.finding import Finding, Severity, found
from garra.checks.security.ground import Code, Ground, named

SHOWN = 4


def judge(ground: Ground) -> Iterator[Finding]:
    plugins, allow = ground.config.plugins, ground.config.plugins.allow
    there = [one.id for one in ground.plugins if not one.fault and one.id not in plugins.deny]
    if there and not allow and plugins.enabled:
        yield found("plugins.extensions_no_allowlist", f"Installed: {named(there)}; plugins.allow is empty.")
    for one in ground.plugins:
        if one.fault:
            yield found("plugins.manifest_broken", f"{one.folder}: {one.fault}")
    phantoms = [name for name in allow if name not in ground.known_plugins and name != "*"]
    if phantoms:
        yield found("plugins.allow_phantom_entries", f"plugins.allow has {named(phantoms)}.")
    if ground.escapes:
        detail = named([f"{one.path} leads to {one.real}" for one in ground.escapes])
        yield found("skills.workspace.symlink_escape", f"{detail}.")
    if ground.skills_cut:
        yield found("skills.workspace.scan_truncated", f"{ground.skills_cut} has too many folders.")
    for code in ground.deep.code if ground.deep is not None else ():
        yield from _code(code)


def _code(code: Code) -> Iterator[Finding]:
    if code.hits:
        worst: Severity = "critical" if any(hit[0] == "critical" for hit in code.hits) else "warn"
        told = named([f"{place}: {what}" for _, place, what in sorted(code.hits)], SHOWN)
        yield found(f"{code.kind}.code_safety", f"{code.id} ({code.folder}): {told}.", worst)
    if code.escapes and code.kind == "plugins":
        yield found("plugins.code_safety.entry_escape", f"{code.id}: {named(code.escapes)} lies outside {code.folder}.")
    if code.fault:
        yield found(f"{code.kind}.code_safety.scan_failed", f"{code.id} ({code.folder}): {code.fault}")
