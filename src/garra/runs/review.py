"""A model that looks at a command before a person is asked: it may refuse it or pass it on, and no more."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import cache
from importlib import resources
from typing import Final, Protocol

from garra.config.sections import Config
from garra.core import thinking
from garra.core.approvals import Question
from garra.core.errors import GarraError
from garra.core.messages import Text, User
from garra.core.outside import wrap
from garra.core.showing import shown
from garra.core.spending import Payer
from garra.core.taint import Mark
from garra.core.value import frozen
from garra.sdk.model import EventStream, Model, ModelRequest
from garra.sdk.ports import Clock

log = logging.getLogger(__name__)

LONGEST: Final = 20_000
"""Characters of a command that a reviewer is shown; what is longer goes to the person unread by it."""
REFUSAL: Final = "refuse:"
REASON: Final = 300


class Models(Protocol):
    """The models."""

    def resolve(self, ref: str | None = None, agent_id: str = "") -> Model: ...

    def stream(self, request: ModelRequest) -> EventStream: ...


@frozen
class Reviewer:
    """`tools.exec.reviewer`, where `tools.exec.mode` is auto. Whatever goes wrong passes the command on."""

    models: Models
    config: Callable[[], Config]
    clock: Clock

    async def __call__(self, question: Question) -> str:
        """Why it is refused; empty where a person is to be asked."""
        settings = self.config().tools.exec
        if settings.mode != "auto" or question.kind != "exec" or len(question.subject) > LONGEST:
            return ""
        try:
            async with asyncio.timeout(settings.reviewer.timeout_ms / 1000):
                return verdict(await self._ask(question))
        except TimeoutError:
            log.info("the reviewer did not answer in time; a person is asked")
        except GarraError as error:
            log.warning("the reviewer cannot be asked: %s; a person is", error.message)
        return ""

    async def _ask(self, question: Question) -> str:
        reviewer = self.config().tools.exec.reviewer
        model = self.models.resolve(reviewer.model or None, question.agent_id)
        system = await asyncio.to_thread(instructions)
        about = "\n".join((shown(question.subject), "", f"folder: {question.cwd}", *question.why))
        message = User(
            (Text(wrap(about, Mark("agent", f"a command of the agent {question.agent_id}"))),), self.clock.now_ms()
        )
        level = thinking.level(reviewer.thinking) or "off"
        asked = ModelRequest(
            model, system, (message,), max_tokens=200, thinking=level if model.reasoning else "off",
            session=f"review-{question.run_id}",
            payer=Payer(
                question.run_id, question.run_id, question.session_key, question.agent_id, question.requester
            ),
        )  # fmt: skip
        stream = self.models.stream(asked)
        try:
            return (await stream.result()).text
        finally:
            stream.abort()


@cache
def instructions() -> str:
    """What the reviewer is told. Reads a file, once."""
    return (resources.files(__package__) / "prompts" / "review.md").read_text("utf-8").strip()


def verdict(text: str) -> str:
    """Why the reviewer refuses; empty for anything that is no clear refusal."""
    line = next((each.strip() for each in text.splitlines() if each.strip()), "")
    if not line.lower().startswith(REFUSAL):
        return ""
    reason = " ".join(line[len(REFUSAL) :].split())[:REASON]
    return reason or "the reviewer refused it"
