"""Settings that take a protection away, secrets that stand in the file, and a file that cannot be used."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from garra.checks.security.finding import Finding, found
from garra.checks.security.ground import Ground, at

INSECURE = ("gateway.controlUi.allowInsecureAuth", "hooks.gmail.allowUnsafeExternalContent", "commands.bash")
JUDGED_ELSEWHERE = frozenset({"dangerouslyAllowNameMatching", "dangerouslyAllowHostHeaderOriginFallback"})
"""Flags with a finding of their own."""
_WHOLE = re.compile(r"\$\{\w+\}")


def judge(ground: Ground) -> Iterator[Finding]:
    if ground.fault:
        yield found("config.invalid", ground.fault)
    for path in (*_dangerous(ground.tree), *(path for path in INSECURE if ground.said(path) is True)):
        yield found("config.insecure_or_dangerous_flags", f"{path} is true.")
    if _plain(ground.written, "gateway.auth.password"):
        yield found("config.secrets.gateway_password_in_config", "gateway.auth.password is written out.")
    if ground.config.hooks.enabled and _plain(ground.written, "hooks.token"):
        yield found("config.secrets.hooks_token_in_config", "hooks.token is written out.")
    if rows := ground.said("security.audit.suppressions"):
        count = len(rows) if isinstance(rows, Sequence) and not isinstance(rows, str) else 0
        yield found("security.audit.suppressions.active", f"{count} in security.audit.suppressions.")


def _plain(written: Mapping[str, Any], path: str) -> bool:
    """Whether a secret stands there as text, not as a variable or a reference."""
    value = at(written, path)
    return isinstance(value, str) and bool(value.strip()) and not _WHOLE.fullmatch(value.strip())


def _dangerous(tree: Any, path: str = "") -> Iterator[str]:
    if isinstance(tree, Mapping):
        for key, value in tree.items():
            where = f"{path}.{key}" if path else str(key)
            if value is True and str(key).startswith("dangerously") and key not in JUDGED_ELSEWHERE:
                yield where
            yield from _dangerous(value, where)
    elif isinstance(tree, list):
        for index, value in enumerate(tree):
            yield from _dangerous(value, f"{path}.{index}")
