"""Sizes as people write them."""

from __future__ import annotations

import re
from typing import Final

_UNITS: Final = {"": 0, "b": 0, "k": 10, "kb": 10, "m": 20, "mb": 20, "g": 30, "gb": 30}


def count(value: object) -> object:
    """Bytes of `2mb`, `512 KB`, `1.5g` or a number; what is none is given back as it is, for the schema to refuse."""
    if not isinstance(value, str):
        return value
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", value, re.IGNORECASE)
    if found is None or found[2].lower() not in _UNITS:
        return value
    return int(float(found[1]) * (1 << _UNITS[found[2].lower()]))
