"""What a restart needs, whoever asks for it: an agent's errand, or a method."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from garra.core.value import frozen
from garra.io.store.shelf import Shelf

WHERE: Final = "restart"
"""Where it stands in `Host.more`, and under what name the store remembers who asked."""
BACK: Final = "The gateway has begun anew, as you agreed. Version {version}."


@frozen
class Restart:
    """`begin` ends this process and begins the next; it may be told why."""

    shelf: Shelf
    begin: Callable[..., None]
