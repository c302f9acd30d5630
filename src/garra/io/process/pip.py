"""How pip is run: with this interpreter, and with the person's own pip settings."""

from __future__ import annotations

import sys
from collections.abc import Mapping

QUIET = ("--no-input", "--disable-pip-version-check", "--no-color", "--progress-bar", "off")
_PASSED = ("PATH", "HOME", "TMPDIR", "LANG", "NETRC", "VIRTUAL_ENV", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
_PREFIXES = ("PIP_", "SSL_", "XDG_", "LC_")
_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


def argv(command: str, *words: str) -> tuple[str, ...]:
    """One of pip's commands; what lies in the folder it runs in is not imported."""
    return (sys.executable, "-P", "-m", "pip", command, *QUIET, *words)


def environment(env: Mapping[str, str]) -> dict[str, str]:
    """What pip is to know of `env`: its settings, mirrors, proxies and certificates; nothing else of ours."""
    return {
        name: value
        for name, value in env.items()
        if name in _PASSED or name.startswith(_PREFIXES) or name.lower() in _PROXIES
    }
