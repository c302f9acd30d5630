"""JSON for the wire."""

from __future__ import annotations

import json
from typing import Any

import msgspec


def encoded(value: Any) -> bytes:
    """`value` as compact JSON. Half a surrogate pair, which no server takes, becomes a question mark."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
