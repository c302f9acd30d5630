"""Is the configuration valid, and for nobody else's eyes."""

from __future__ import annotations

from garra.checks.finding import Finding, Ground
from garra.config.write import Writer

SHOWN = 8


def check(ground: Ground) -> list[Finding]:
    snapshot, file = ground.snapshot, str(ground.paths.config_file)
    if not snapshot.exists or (snapshot.valid and not snapshot.parsed):
        state = f"{file} sets nothing" if snapshot.exists else "no configuration"
        return [Finding("config", "ok", f"{state}: the defaults serve", file, "garra onboard writes one")]
    if snapshot.valid:
        warnings = [
            Finding("config", "warn", f"{issue.path}: {issue.message}" if issue.path else issue.message, file)
            for issue in snapshot.warnings[:SHOWN]
        ]
        return [Finding("config", "ok", "the configuration is valid", file), *warnings, *_mode(ground)]

    def restore() -> str:
        Writer(ground.paths, ground.env).restore()
        return f"brought the last good configuration back to {file}"

    good = ground.paths.last_good.is_file()
    how = "garra repair mends it step by step"
    how += "; garra config restore brings the last good one back" if good else ""
    faults = [
        Finding("config", "bad", f"{issue.path}: {issue.message}" if issue.path else issue.message, file, how)
        for issue in snapshot.issues[:SHOWN]
    ]
    first = Finding("config", "bad", "the configuration is not valid", file, how, restore if good else None)
    return [first, *faults]


def _mode(ground: Ground) -> list[Finding]:
    file = ground.paths.config_file
    mode = file.stat().st_mode & 0o777
    if not mode & 0o077:
        return []

    def close() -> str:
        file.chmod(0o600)
        return f"closed {file} to others (mode 600)"

    how = f"chmod 600 {file}"
    return [Finding("config", "warn", f"others can read it (mode {mode:o}); it may hold keys", str(file), how, close)]
