"""The log of a process, and what it says first."""

from __future__ import annotations

from garra.config import view
from garra.config.live import Live
from garra.config.paths import Paths
from garra.config.sections import Config
from garra.io import log as logs


def opened(live: Live, *, stderr: bool, verbose: bool = False) -> logs.Log:
    """Write the log from now on, without the secrets that the configuration and the environment hold; as configured at
    any time. `verbose`: standard error is told more.
    """

    def sinks() -> logs.Sinks:
        return sinks_of(live.config, live.paths, verbose=verbose, level=live.paths.variable(live.env, "LOG_LEVEL"))

    kept = logs.setup(live.paths, stderr=stderr, sinks=sinks())

    def follow(*_: Config) -> None:
        kept.hide(view.known_secrets(live.snapshot))
        kept.configure(sinks())

    follow()
    live.subscribe(follow)
    return kept


def sinks_of(config: Config, paths: Paths, *, verbose: bool = False, level: str = "") -> logs.Sinks:
    """Where what goes. `level`, from the environment, wins over the configuration."""
    settings = config.logging
    level = level if level in logs.LEVELS else ""
    console = "debug" if verbose else level or settings.console_level
    bounds = logs.Bounds(settings.max_file_bytes, settings.max_days)
    return logs.Sinks(
        level or settings.level,
        console,
        "json" if settings.console_style == "json" else "pretty",
        paths.expand(settings.file) if settings.file else None,
        bounds,
        settings.redact_patterns,
    )


def complaint(live: Live) -> str:
    """One line on a configuration that is not valid: where, why, and what serves instead. Empty for a good one."""
    found = live.snapshot
    if found.valid:
        return ""
    good = found.source == "last-good"
    serves = "the last good one serves" if good else "there is no last good one: the defaults serve"
    mends = "garra repair mends it" + (", garra config restore brings the last good one back" if good else "")
    return f"{live.paths.config_file} is not valid: {found.issues[0] if found.issues else 'unknown'}; {serves}; {mends}"
