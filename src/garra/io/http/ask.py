"""One request as the pools see it."""

from __future__ import annotations

from collections.abc import Mapping

from garra.core.value import frozen
from garra.sdk.ports import DIRECT, Via


@frozen
class Ask:
    """`wait` bounds each wait for bytes, `connect` the connection's making, both in seconds; None: no bound.

    Header names are lower case.
    """

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | tuple[bytes, ...] | None = None
    wait: float | None = 60.0
    connect: float | None = 10.0
    via: Via = DIRECT

    @property
    def size(self) -> int:
        """Bytes of the body."""
        return sum(map(len, self.body)) if isinstance(self.body, tuple) else len(self.body or b"")
