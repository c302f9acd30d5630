"""The configuration as it may be shown: to clients, in logs, on a terminal. No secret is in it."""

from __future__ import annotations

import re
from typing import Any

from garra.config.issue import Issue
from garra.config.load import Snapshot
from garra.config.paths import Paths
from garra.config.sections.lookup import secret_at
from garra.config.variables import is_reference
from garra.core import json5, jsonedit
from garra.core.dotted import Path
from garra.core.patterns import later
from garra.core.redact import SENTINEL, hidden, masked, sensitive
from garra.core.redact import is_reference as names_only

_ASSIGNED = later(
    r"""(["']?)([\w$-]+)\1(\s*[:=]\s*|[ \t]+)("(?:[^"\\\n]|\\.)*"?|'(?:[^'\\\n]|\\.)*'?|[^\s"'{}\[\],:=][^\s,}\]]*)"""
)
"""A key and its value in a text that cannot be read: the quotes or the colon may be what is missing."""


def tree(value: dict[str, Any]) -> dict[str, Any]:
    """A parsed configuration with the sentinel in the place of each secret; names of variables stay."""
    shown: dict[str, Any] = masked(value, secret_at)
    return shown


def text(raw: str) -> str:
    """A configuration's text with the sentinel in the place of each secret. A broken text is masked by its keys."""
    try:
        root = json5.parse(raw)
    except json5.Broken:
        return _ASSIGNED.sub(_mask, raw)
    spans = [(node, f'"{SENTINEL}"') for at, node in json5.leaves(root) if _hides(raw, at, node)]
    return jsonedit.replace_texts(raw, spans)


def _hides(raw: str, at: Path, node: json5.Node) -> bool:
    source = raw[node.start + 1 : node.end - 1]
    return node.kind == "text" and bool(source) and not names_only(source) and hidden(at, secret_at)


def _mask(found: re.Match[str]) -> str:
    quote, key, colon, _value = found.groups()
    return f'{quote}{key}{quote}{colon}"{SENTINEL}"' if sensitive(key) else str(found.group())


def issues(found: tuple[Issue, ...]) -> list[dict[str, Any]]:
    """Issues as programs read them."""
    return [
        {"path": one.joined, "message": one.message} | ({"allowedValues": list(one.allowed)} if one.allowed else {})
        for one in found
    ]


def snapshot(paths: Paths, found: Snapshot) -> dict[str, Any]:
    """The answer to `config.get`."""
    source = tree(found.merged)
    return {
        "path": str(paths.config_file),
        "includedPaths": list(found.included),
        "exists": found.exists,
        "raw": text(found.raw) if found.exists else None,
        "parsed": tree(found.parsed),
        "sourceConfig": source,
        "resolved": source,
        "runtimeConfig": source,
        "config": source,
        "hash": found.hash,
        "configRevisionHash": found.hash,
        "appliedConfigHash": found.hash if found.valid else None,
        "valid": found.valid,
        "issues": issues(found.issues),
        "warnings": issues(found.warnings),
        "legacyIssues": [],
    }


def known_secrets(found: Snapshot) -> tuple[str, ...]:
    """Every secret that this configuration and its environment hold, to be kept out of logs and answers."""
    secrets = {value for name, value in found.env.items() if sensitive(name)}
    secrets.update(secret.reveal() for secret in found.secrets.values())

    def walk(value: Any, shown: Any) -> None:
        if isinstance(value, dict) and isinstance(shown, dict) and not is_reference(shown):
            for key, below in value.items():
                walk(below, shown.get(key))
        elif isinstance(value, list) and isinstance(shown, list):
            for below, mask in zip(value, shown, strict=False):
                walk(below, mask)
        elif isinstance(value, str) and value != shown:
            secrets.add(value)

    walk(found.resolved, tree(found.resolved))
    return tuple(secret for secret in secrets if secret)
