"""What tools of pictures and documents are granted: who can see, and files that came out of other tools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from garra.core.ids import AgentId, SessionKey
from garra.core.messages import Image
from garra.core.value import frozen


@frozen
class Documents:
    """`agents.defaults.pdfMaxMb` and `pdfMaxPages` as they are now; bytes and pages."""

    max_bytes: int = 10 << 20
    max_pages: int = 20


class Sight(Protocol):
    """Looks at pictures for a model that cannot."""

    def sees(self, model: str) -> bool:
        """Whether `model` (`provider/id`) takes pictures itself."""
        ...

    async def describe(self, pictures: Sequence[Image], prompt: str, agent_id: AgentId) -> str:
        """What the configured image model says of them. Raises ToolFailed with a line on what to set."""
        ...

    def documents(self) -> Documents: ...


class Shelf(Protocol):
    """Files that tools of a session took from outside, kept in the media folder under names of ours."""

    async def keep(self, session_key: SessionKey, name: str, data: bytes, mime: str) -> str:
        """Keep `data`; the handle by which tools of the same session find it again. Raises ToolFailed."""
        ...

    async def read(self, session_key: SessionKey, handle: str, limit: int) -> bytes:
        """Raises ToolFailed for a handle that is not one of this session's, and for what is larger."""
        ...
