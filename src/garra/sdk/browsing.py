"""What the tool of the browser is granted: a browser of its own that somebody else starts, watches and ends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from garra.core.ids import SessionKey
from garra.core.value import frozen


@frozen
class Standing:
    """How the browser is: `lacks` says what keeps it from starting, with the remedy."""

    running: bool
    executable: str = ""
    lacks: str = ""


class Browsing(Protocol):
    """One browser for the house; every session has tabs, cookies and storage of its own in it.

    All it asks for goes through the guarded door: what is not public is refused unless the owner listed the host.
    """

    async def standing(self) -> Standing: ...

    async def ask(self, session_key: SessionKey, op: str, more: Mapping[str, Any]) -> Mapping[str, Any]:
        """Have it do `op` for a session; it is started where it does not run. Raises ToolFailed.

        `details["outside"]` of that ToolFailed tells of words that came from a page.
        """
        ...

    async def stop(self) -> None:
        """End it, and every process it has."""
        ...

    async def take(self, name: str) -> bytes:
        """A file that it fetched, which is then gone from there. Raises ToolFailed."""
        ...
