"""Can commands be shut in."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from garra.checks.finding import Finding, Ground

KERNEL = Path("/sys/kernel/security/lsm")


def check(ground: Ground) -> list[Finding]:
    host = getattr(ground.snapshot.config.tools.exec, "host", "")
    if host == "gateway":
        what = "commands run on this machine without a sandbox (tools.exec.host is gateway)"
        return [Finding("sandbox", "warn", what, "tools.exec.host", "garra config unset tools.exec.host")]
    if shutil.which("bwrap"):
        return [Finding("sandbox", "ok", "bubblewrap shuts commands in")]
    if sys.platform == "linux" and _landlock():
        how = "install bubblewrap for the stricter one (Debian, Ubuntu: apt install bubblewrap)"
        return [Finding("sandbox", "ok", "the kernel's landlock shuts commands in", "", how)]
    how = "install bubblewrap (Debian, Ubuntu: apt install bubblewrap)"
    return [Finding("sandbox", "warn", "no sandbox: commands are refused, or asked about at a terminal", "", how)]


def _landlock() -> bool:
    try:
        return "landlock" in KERNEL.read_text()
    except OSError:
        return False
