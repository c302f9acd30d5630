"""What tools of pictures and documents are granted: who can see, and files that came out of other tools."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from garra.core.ids import AgentId, SessionKey
from garra.core.messages import Image
from garra.core.value import frozen


@frozen
class Documents:
    """`agents.defaults.pdfMaxMb` and `pdfMaxPages` as they are now; bytes and pages."""

    max_bytes: int = 10 << 20
    max_pages: int = 20


@frozen
class Study:
    """What is asked of a PDF. `model` (`provider/id`) is the one that calls; `text` gives the file's text, for a model
    that takes no PDF itself. `whole`: all of the file is meant, so that it may be given as it is.
    `run_id` is the run that asks, and pays.
    """

    data: bytes
    prompt: str
    agent_id: AgentId
    model: str
    text: Callable[[], Awaitable[str]]
    whole: bool = True
    run_id: str = ""


@frozen
class Studied:
    """An answer, by which model; `native`: it was given the file itself, pictures and layout with it."""

    text: str
    model: str
    native: bool


class Sight(Protocol):
    """Looks at pictures for a model that cannot, and reads PDF files where a model can."""

    def sees(self, model: str) -> bool:
        """Whether `model` (`provider/id`) takes pictures itself."""
        ...

    async def describe(self, pictures: Sequence[Image], prompt: str, agent_id: AgentId, run_id: str = "") -> str:
        """What the configured image model says of them; the run `run_id` pays for it. Raises ToolFailed with a line on
        what to set.
        """
        ...

    def documents(self) -> Documents: ...

    async def study(self, asked: Study) -> Studied | None:
        """What a model says of a PDF; None where none is set for it and the caller's own takes no PDF. Raises
        ToolFailed where none of them answers.
        """
        ...


class Shelf(Protocol):
    """Files that tools of a session took from outside, kept in the media folder under names of ours."""

    async def keep(self, session_key: SessionKey, name: str, data: bytes, mime: str) -> str:
        """Keep `data`; the handle by which tools of the same session find it again. Raises ToolFailed."""
        ...

    async def read(self, session_key: SessionKey, handle: str, limit: int) -> bytes:
        """Raises ToolFailed for a handle that is not one of this session's, and for what is larger."""
        ...
