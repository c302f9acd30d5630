"""Where text from outside came from: the mark that a turn carries which has read it."""

from __future__ import annotations

from typing import Literal

from garra.core.value import frozen

Source = Literal["web", "mail", "file", "group", "network", "agent", "memory", "job"]


@frozen
class Mark:
    """One piece of outside text: what kind of outside, and where exactly (an address, a sender, a file's name)."""

    source: Source
    where: str
