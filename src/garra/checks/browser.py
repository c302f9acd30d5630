"""Where the browser is switched on: is there one."""

from __future__ import annotations

from importlib import util

from garra.checks.finding import Finding, Ground
from garra.domains.web import browser

WHERE = "browser"


def check(ground: Ground) -> list[Finding]:
    section = ground.snapshot.config.browser
    if not section.enabled or util.find_spec("playwright") is None:  # the check of packages tells the latter
        return []
    executable, lacks = browser.found(section, ground.env)
    if lacks:
        return [Finding("browser", "warn", lacks, WHERE)]
    return [Finding("browser", "ok", f"pages are opened in {executable}", WHERE)]
