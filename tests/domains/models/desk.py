"""A registry in front of a scripted server, as the tests here share it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from garra.builtin.apis.anthropic_messages.api import AnthropicMessages
from garra.builtin.apis.openai_completions.api import OpenAICompletions
from garra.builtin.apis.openai_responses.api import OpenAIResponses
from garra.config.load import load
from garra.config.sections import Config
from garra.core.errors import NotFound
from garra.core.messages import Message, Text, User
from garra.domains.models import catalog
from garra.domains.models.call import Ports
from garra.domains.models.registry import Models
from garra.io.clock import SystemClock
from garra.io.http import GuardedHttp
from garra.io.tasks import Tasks
from garra.sdk.model import Api, ModelRequest
from garra.testing.model_server import ModelServer

__all__ = ["Desk", "desk", "load", "user"]


def user(text: str = "hi") -> User:
    return User((Text(text),), 1)


class NoCloud:
    """A machine on which no cloud left anything."""

    def setting(self, *names: str) -> str:
        return ""

    async def file(self, path: str) -> bytes | None:
        return None


@dataclass
class Desk:
    """`settings` is the configuration as it stands in the file; change it and call `reload`."""

    server: ModelServer
    http: GuardedHttp
    apis: dict[str, Api]
    env: dict[str, str] = field(default_factory=dict)
    config: Config = field(default_factory=Config)
    models: Models = field(init=False)

    def configure(self, settings: Mapping[str, Any]) -> None:
        self.config = Config.model_validate(settings)

    def provider(self, name: str = "fake", **more: Any) -> dict[str, Any]:
        """The configuration of one provider that the server stands for."""
        told = {"api": "openai-completions", "baseUrl": f"{self.server.url}/v1", "apiKey": "k", **more}
        return {"models": {"providers": {name: told}}}

    def find(self, family: str) -> Api:
        if family not in self.apis:
            raise NotFound(f"no plugin brings the model family {family}")
        return self.apis[family]

    def request(self, ref: str, *messages: Message, **more: Any) -> ModelRequest:
        return ModelRequest(self.models.resolve(ref), "Be short.", messages or (user(),), **more)


@asynccontextmanager
async def desk() -> AsyncIterator[Desk]:
    async with ModelServer() as server, Tasks() as tasks:
        clock, http = SystemClock(), GuardedHttp()
        apis: dict[str, Api] = {
            "openai-completions": OpenAICompletions(http, tasks, clock),
            "anthropic-messages": AnthropicMessages(http, tasks, clock),
            "openai-responses": OpenAIResponses(http, tasks, clock, NoCloud()),
        }
        ready = Desk(server, http, apis)
        ports = Ports(ready.find, lambda: ready.env, tasks, clock)
        ready.models = Models(lambda: ready.config, ports, KNOWN)
        try:
            yield ready
        finally:
            await http.close()


KNOWN = catalog.shipped()
