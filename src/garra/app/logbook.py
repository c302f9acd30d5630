"""The log of a process, and what it says first."""

from __future__ import annotations

from garra.config import view
from garra.config.live import Live
from garra.io import log as logs


def opened(live: Live, level: str, *, stderr: bool) -> logs.Log:
    """Write the log from now on, without the secrets that the configuration and the environment hold."""
    kept = logs.setup(live.paths, level, stderr=stderr)
    kept.hide(view.known_secrets(live.snapshot))
    live.subscribe(lambda _old, _new: kept.hide(view.known_secrets(live.snapshot)))
    return kept


def complaint(live: Live) -> str:
    """One line on a configuration that is not valid: where, why, and what serves instead. Empty for a good one."""
    found = live.snapshot
    if found.valid:
        return ""
    good = found.source == "last-good"
    serves = "the last good one serves" if good else "there is no last good one: the defaults serve"
    mends = "garra repair mends it" + (", garra config restore brings the last good one back" if good else "")
    return f"{live.paths.config_file} is not valid: {found.issues[0] if found.issues else 'unknown'}; {serves}; {mends}"
