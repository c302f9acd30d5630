"""What a stranger may put where words, names and ids stand."""

from __future__ import annotations

from typing import Final

ODD: Final = "\ud800\0x"
"""Half a surrogate pair, and a NUL."""
