"""Every family in front of a server (or child) that says what a test wants it to say."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from garra.builtin.apis.anthropic_messages.api import AnthropicMessages
from garra.builtin.apis.local.api import Local
from garra.builtin.apis.openai_completions.api import OpenAICompletions
from garra.core.errors import Unavailable
from garra.core.messages import Message, Text, User
from garra.io.clock import SystemClock
from garra.io.http import GuardedHttp
from garra.io.tasks import Tasks
from garra.sdk.model import Api, Level, Model, ModelRequest, ToolSpec
from garra.testing.model_dialects import Cut, Fail, Reply, Say, Silence, Use
from garra.testing.model_server import ModelServer

NAMES = ("openai-completions", "anthropic-messages", "local")
LS = ToolSpec(
    "ls", "List a folder.", {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
)


def user(text: str, at: int = 1) -> User:
    return User((Text(text),), at)


@dataclass
class Bench:
    """One family, ready to be asked; `script` says what the other side answers, one reply a call."""

    api: Api
    model: Model
    script: Callable[..., object]

    def request(
        self, *messages: Message, tools: tuple[ToolSpec, ...] = (LS,), thinking: Level = "off", first_s: float = 10.0
    ) -> ModelRequest:
        return ModelRequest(
            self.model,
            "Be short.",
            messages or (user("hi"),),
            tools,
            thinking=thinking,
            timeout_first_s=first_s,
            timeout_between_s=first_s,
        )


@asynccontextmanager
async def bench(name: str) -> AsyncIterator[Bench]:
    async with AsyncExitStack() as stack:
        tasks = await stack.enter_async_context(Tasks())
        clock = SystemClock()
        if name == "local":
            scripted = ScriptedChildren()
            local = Local(scripted, NoWeights(), tasks, clock)
            yield Bench(local, Model("here", "m", "local", ""), scripted.then)
            return
        server = await stack.enter_async_context(ModelServer())
        http = GuardedHttp()
        stack.push_async_callback(http.close)
        api: Api
        if name == "openai-completions":
            api = OpenAICompletions(http, tasks, clock)
        else:
            warmed = AnthropicMessages(http, tasks, clock)
            await warmed.warm()
            api = warmed
        yield Bench(api, Model("fake", "m", name, server.url + "/v1", reasoning=True), server.then)


class NoWeights:
    async def path(self, model: str) -> str:
        return f"/models/{model}.gguf"


class ScriptedChildren:
    """A child without a model: it answers as the real one does, in lines."""

    def __init__(self) -> None:
        self.replies: list[Reply] = []
        self.started: list[ScriptedChild] = []

    def then(self, *replies: Reply) -> None:
        self.replies.extend(replies)

    async def start(self, module: str) -> ScriptedChild:
        self.started.append(ScriptedChild(self.replies))
        return self.started[-1]


class ScriptedChild:
    def __init__(self, replies: list[Reply]) -> None:
        self._replies = replies
        self._said: asyncio.Queue[bytes] = asyncio.Queue()
        self.heard: list[dict[str, Any]] = []
        self.dead = False

    async def send(self, line: bytes) -> None:
        if self.dead:
            raise Unavailable("the program no longer takes input", details={"kind": "cut"})
        asked = json.loads(line)
        self.heard.append(asked)
        match asked["op"]:
            case "load":
                self._say({"ready": True})
            case "cancel":
                self._say({"end": True})
            case _:
                self._answer(self._replies.pop(0))

    async def line(self) -> bytes:
        return await self._said.get()

    async def kill(self) -> None:
        self.dead = True

    def _say(self, body: dict[str, Any]) -> None:
        self._said.put_nowait(json.dumps(body).encode())

    def _chunk(self, delta: dict[str, Any], finish: str | None = None) -> None:
        self._say({"chunk": {"choices": [{"delta": delta, "finish_reason": finish}]}})

    def _answer(self, reply: Reply) -> None:
        match reply:
            case Say(text=text) | Cut(text=text):
                whole = json.dumps({"reply": text})
                for at in range(0, len(whole), 7):
                    self._chunk({"content": whole[at : at + 7]})
            case Use(name=name, arguments=arguments):
                self._chunk({"content": json.dumps({"tool": name, "args": arguments})})
            case Fail(message=message):
                self._say({"error": message})
                return
            case Silence():
                return
        if isinstance(reply, Cut):
            self.dead = True
            self._said.put_nowait(b"")
            return
        self._chunk({}, reply.finish if isinstance(reply, Say) else "stop")
        self._say({"chunk": {"choices": [], "usage": {"prompt_tokens": 11, "completion_tokens": 5}}})
        self._say({"end": True})
