"""Names of keys."""

from __future__ import annotations

import pytest

from garra.core.errors import ToolFailed
from garra.core.keystrokes import encode


def test_keys() -> None:
    assert encode(["h", "é", "Enter", "Up", "F5"]) == "hé\r\x1b[A\x1b[15~".encode()
    assert encode(["C-c", "^d", "Ctrl-Z", "C-space", "C-["]) == b"\x03\x04\x1a\x00\x1b"
    assert encode(["M-x", "Alt-Enter", "-"]) == b"\x1bx\x1b\r-"
    assert encode([]) == b""


@pytest.mark.parametrize("key", ["Entre", "C-", "C-up", "M-", "", "hello", "C-1"])
def test_no_keys(key: str) -> None:
    with pytest.raises(ToolFailed, match="is no key"):
        encode([key])
