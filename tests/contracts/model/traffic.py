"""Every family that speaks HTTP in front of a real socket that says what its vendor's documentation shows."""

from __future__ import annotations

import json
import struct
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zlib import crc32

from garra.builtin.apis.anthropic_messages.api import AnthropicMessages
from garra.builtin.apis.bedrock_converse_stream.api import BedrockConverseStream
from garra.builtin.apis.google_generative_ai.api import GoogleGenerativeAI
from garra.builtin.apis.google_generative_ai.vertex import GoogleVertex
from garra.builtin.apis.ollama.api import Ollama
from garra.builtin.apis.openai_completions.api import OpenAICompletions
from garra.builtin.apis.openai_completions.mistral import MistralConversations
from garra.builtin.apis.openai_responses.api import OpenAIResponses
from garra.builtin.apis.openai_responses.azure import AzureOpenAIResponses
from garra.core.messages import Message, Text, Usage, User
from garra.io.clock import SystemClock
from garra.io.http import GuardedHttp
from garra.io.tasks import Tasks
from garra.sdk.model import Api, Model, ModelRequest, ToolSpec
from garra.testing.model_server import ModelServer, Raw

ROOT = Path(__file__).parents[2] / "fixtures" / "models"
READ = ToolSpec("read", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}})
WEATHER = ToolSpec("weather", "Tell the weather.", {"type": "object", "properties": {"city": {"type": "string"}}})
CACHED = Usage(20, 7, 100)
KINDS = {"sse": "text/event-stream", "ndjson": "application/x-ndjson", "json": "application/vnd.amazon.eventstream"}


@dataclass(frozen=True)
class Family:
    """What one family does that not all do. `path` is where it asks, `usage` what its traffic says was used."""

    name: str
    path: str
    usage: Usage = CACHED
    key: tuple[str, str] = ("authorization", "Bearer k")
    base: str = "/v1"
    signs: bool = True
    filters: bool = True
    documents: bool = True
    model: str = "m"
    compat: Mapping[str, Any] = field(default_factory=dict)


FAMILIES = {
    family.name: family
    for family in (
        Family("openai-completions", "/v1/chat/completions", signs=False),
        Family("anthropic-messages", "/v1/messages", Usage(20, 7, 70, 30), ("x-api-key", "k")),
        Family("openai-responses", "/v1/responses"),
        Family("azure-openai-responses", "/openai/v1/responses?api-version=v1", key=("api-key", "k"), base=""),
        Family(
            "google-generative-ai", "/v1beta/models/m:streamGenerateContent?alt=sse", key=("x-goog-api-key", "k"),
            base="/v1beta",
        ),
        Family(
            "google-vertex", "/v1/publishers/google/models/m:streamGenerateContent?alt=sse",
            key=("x-goog-api-key", "k"),
        ),
        Family("mistral-conversations", "/v1/chat/completions", signs=False),
        Family("ollama", "/api/chat", Usage(120, 7), base="", signs=False, filters=False, documents=False),
        Family(
            "bedrock-converse-stream", "/model/anthropic.claude-x%3A0/converse-stream", Usage(20, 7, 70, 30), base="",
            model="anthropic.claude-x:0",
        ),
    )
}  # fmt: skip


class Cloud:
    """What a cloud's tools left on the machine of a test."""

    def __init__(self, settings: Mapping[str, str] | None = None, files: Mapping[str, bytes] | None = None) -> None:
        self.settings = {} if settings is None else settings
        self.files = {} if files is None else files

    def setting(self, *names: str) -> str:
        return next((self.settings[name] for name in names if self.settings.get(name)), "")

    async def file(self, path: str) -> bytes | None:
        return self.files.get(path)


def api_of(name: str, http: GuardedHttp, tasks: Tasks, cloud: Cloud) -> Api:
    clock = SystemClock()
    match name:
        case "openai-completions":
            return OpenAICompletions(http, tasks, clock)
        case "mistral-conversations":
            return MistralConversations(http, tasks, clock)
        case "anthropic-messages":
            return AnthropicMessages(http, tasks, clock)
        case "ollama":
            return Ollama(http, tasks, clock)
    classes = (OpenAIResponses, AzureOpenAIResponses, GoogleGenerativeAI, GoogleVertex, BedrockConverseStream)
    made: Api = next(one for one in classes if one.family == name)(http, tasks, clock, cloud)
    return made


@dataclass
class Stand:
    """One family, ready to be asked."""

    family: Family
    api: Api
    server: ModelServer
    http: GuardedHttp

    @property
    def model(self) -> Model:
        family = self.family
        return Model(
            "v", family.model, family.name, self.server.url + family.base, reasoning=True, input=("text", "image"),
            compat=family.compat,
        )  # fmt: skip

    def request(self, *messages: Message, **more: Any) -> ModelRequest:
        told = {"tools": (READ, WEATHER), "timeout_first_s": 10.0, "timeout_between_s": 10.0, **more}
        model = told.pop("model", self.model)
        return ModelRequest(model, "Be short.", messages or (User((Text("hi"),), 1),), **told)

    def plays(self, case: str, **more: Any) -> None:
        """The next answer is that of the file `case`, in pieces that end anywhere."""
        self.server.then(Raw(pieces(self.bytes(case)), kind=self.kind, **more))

    @property
    def kind(self) -> str:
        return KINDS[self._file("text").suffix[1:]]

    def bytes(self, case: str) -> bytes:
        file = self._file(case)
        if file.suffix == ".json":
            return b"".join(frame(name, body) for name, body in json.loads(file.read_text("utf-8")))
        return file.read_bytes()

    def _file(self, case: str) -> Path:
        found = (ROOT / self.family.name).glob(f"{case}.*")
        return next(file for file in found if file.suffix[1:] in KINDS)

    def refusals(self) -> list[dict[str, Any]]:
        listed: list[dict[str, Any]] = json.loads(self._file("refusals").read_text("utf-8"))
        return listed

    def asked(self) -> Any:
        """The last request's body."""
        return self.server.requests[-1].body


def pieces(data: bytes) -> tuple[bytes, ...]:
    return tuple(data[at : at + 61] for at in range(0, len(data), 61))


def frame(name: str, body: Any) -> bytes:
    """One frame of Amazon's event stream."""
    kind = "exception" if name.startswith("!") else "event"
    named = {f":{kind}-type": name.removeprefix("!"), ":content-type": "application/json", ":message-type": kind}
    head = b"".join(_header(key, value) for key, value in named.items())
    payload = (body if isinstance(body, str) else json.dumps(body)).encode()
    start = struct.pack(">II", 16 + len(head) + len(payload), len(head))
    whole = start + struct.pack(">I", crc32(start)) + head + payload
    return whole + struct.pack(">I", crc32(whole))


def _header(name: str, value: str) -> bytes:
    return bytes([len(name)]) + name.encode() + b"\x07" + struct.pack(">H", len(value)) + value.encode()


@asynccontextmanager
async def stand(name: str, cloud: Cloud | None = None) -> AsyncIterator[Stand]:
    async with AsyncExitStack() as stack:
        tasks = await stack.enter_async_context(Tasks())
        server = await stack.enter_async_context(ModelServer())
        http = GuardedHttp()
        stack.push_async_callback(http.close)
        yield Stand(FAMILIES[name], api_of(name, http, tasks, cloud or Cloud()), server, http)
