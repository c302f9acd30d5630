"""The HTTP side of the gateway's port: the OpenAI interfaces, tools, history, and the page. `opening` answers probes.

What needs the shared secret says so in `ROUTES`; everything else is public and tells nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from garra.core import exposition
from garra.core.errors import NotFound, ToolFailed, UserError
from garra.gateway import assets, hooked, openai_chat, shared, toolbox
from garra.gateway.foreign import Foreign
from garra.gateway.http_auth import Bearers
from garra.gateway.http_io import SMALL, Rejected, disallowed, fault, json, missing, read
from garra.gateway.reading import ChatHistory
from garra.gateway.reading import read as read_history
from garra.gateway.responses import Responses
from garra.gateway.schema import emit
from garra.gateway.site import Site
from garra.gateway.work import METRICS

Answer = Callable[[Request], Awaitable[Response]]


class Pages:
    """Answers requests."""

    def __init__(self, site: Site) -> None:
        self._site, self._host = site, site.host
        self._bearers = Bearers(site.door, site.host.clock)
        self._responses = Responses(site.host)
        self._schema: bytes | None = None
        self._assets = assets.Assets(site.page, site.host.version)

    async def control(self, request: Request) -> Response:
        """What the web page asks before it connects."""
        agent_id = self._host.agent(None)
        agent = self._host.config.agents.find(agent_id)
        name = (agent.identity.name or agent.name) if agent else ""
        return json(
            {
                "basePath": self._host.config.gateway.control_ui.base_path,
                "assistantName": name or "Assistant",
                "assistantAvatar": (name or "Assistant")[:1].upper(),
                "assistantAvatarSource": "default",
                "assistantAvatarStatus": "none",
                "assistantAvatarReason": None,
                "assistantAgentId": agent_id,
                "serverVersion": self._host.version,
                "serverBuildId": self._host.version,
                "embedSandbox": "scripts",
                "allowExternalEmbedUrls": False,
                "automaticallyFetchFavicons": False,
                "communityInvite": None,
                "terminalEnabled": False,
                "cliAgentsEnabled": False,
                "pluginAssetsRequireAuth": False,
                "pluginFrameGrants": [],
            }
        )

    async def history(self, request: Request) -> Response:
        key = unquote(str(request.path_params["key"]))
        try:
            if await self._host.sessions.get(self._host.key(key)) is None:
                raise NotFound(f"Session not found: {key[:200]}")
            answer = await read_history(self._host, ChatHistory(session_key=key, limit=_limit(request)))
        except UserError as wrong:
            return json({"ok": False, "error": {"type": "not_found", "message": wrong.message}}, 404)
        return json({"sessionKey": answer["sessionKey"], "items": answer["messages"]})

    async def tool(self, request: Request) -> Response:
        """Run one tool as a session, without an agent."""
        data = await read(request, SMALL)
        try:
            body = msgspec.json.decode(data or b"{}")
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as wrong:
            return fault(f"invalid JSON: {wrong}")
        name = body.get("tool") if isinstance(body, dict) else None
        if not isinstance(name, str) or not name.strip():
            return _refused("invalid_request", "tools.invoke requires body.tool", 400)
        args = body.get("args") or {}
        if not isinstance(args, dict):
            return _refused("invalid_request", "args must be an object", 400)
        return await self._invoke(name.strip(), args, body.get("sessionKey"))

    async def _invoke(self, name: str, args: dict[str, Any], session: Any) -> Response:
        try:
            key = self._host.key(session if isinstance(session, str) else "main")
            result = await toolbox.invoke(self._host, name, args, key)
        except ToolFailed as wrong:
            return _refused("tool_error", wrong.message, 400)
        except NotFound as wrong:
            return _refused("not_found", wrong.message, 404)
        except UserError as wrong:
            return _refused("invalid_request", wrong.message, 400)
        return json({"ok": True, "result": result})

    async def models(self, request: Request) -> Response:
        return openai_chat.models(self._host)

    async def model(self, request: Request) -> Response:
        return openai_chat.model(self._host, str(request.path_params["name"]))

    async def completions(self, request: Request) -> Response:
        return await openai_chat.complete(self._host, request)

    async def responses(self, request: Request) -> Response:
        return await self._responses.answer(request)

    async def schema(self, request: Request) -> Response:
        """The protocol, for those who write clients."""
        if self._schema is None:
            self._schema = msgspec.json.encode(emit(self._site.registry))
        return Response(self._schema, media_type="application/schema+json")

    async def metrics(self, request: Request) -> Response:
        """What is measured, for Prometheus."""
        found = self._host.more[METRICS]
        return Response(await found.text(), media_type=exposition.CONTENT_TYPE)

    async def file(self, request: Request) -> Response:
        return await shared.answer(self._host, request)

    async def absent(self, request: Request) -> Response:
        return missing()

    async def hooked(self, request: Request) -> Response | None:
        return await hooked.answer(self._host, request)

    async def page(self, request: Request) -> Response:
        settings = self._host.config.gateway.control_ui
        if not settings.enabled:
            return self._assets.absent(404)
        rest, base = str(request.path_params["rest"]), assets.based(settings.base_path)
        if settings.root:
            return await Foreign(Path(settings.root)).answer(request, rest, base)
        return await self._assets.answer(request, rest, base)

    @property
    def chat_on(self) -> bool:
        return self._host.config.gateway.http.endpoints.chat_completions.enabled

    @property
    def metrics_on(self) -> bool:
        return self._host.more.get(METRICS) is not None

    @property
    def responses_on(self) -> bool:
        return self._host.config.gateway.http.endpoints.responses.enabled

    def guarded(self, answer: Answer, on: Callable[[], bool] = lambda: True) -> Answer:
        """`answer` for those who show the shared secret, while `on`; nobody else learns that it is there."""

        async def check(request: Request) -> Response:
            if not on():
                return missing()
            self._bearers.check(request)
            return await answer(request)

        return check


def _refused(kind: str, message: str, status: int) -> Response:
    return json({"ok": False, "error": {"type": kind, "message": message}}, status)


def _limit(request: Request) -> int:
    asked = request.query_params.get("limit", "")
    return max(1, min(int(asked), 1000)) if asked.isdigit() else 200


def only(answer: Answer, *methods: str) -> Answer:
    """`answer` for these HTTP methods, 405 for others, and the answer of a request that ended early."""

    async def check(request: Request) -> Response:
        if request.method not in methods:
            return disallowed(*methods)
        try:
            return await answer(request)
        except Rejected as rejected:
            return rejected.response

    return check


def routes(site: Site) -> list[Route]:
    """Every path, the most particular first."""
    pages = Pages(site)
    guarded, get = pages.guarded, ("GET", "HEAD")
    either: Callable[[], bool] = lambda: pages.chat_on or pages.responses_on  # noqa: E731 - two words
    table: list[tuple[str, Answer, tuple[str, ...]]] = [
        *((f"{base}/control-ui-config.json", guarded(pages.control), get) for base in CONTROL),
        ("/sessions/{key:path}/history", guarded(pages.history), get),
        ("/tools/invoke", guarded(pages.tool), ("POST",)),
        ("/v1/models", guarded(pages.models, either), get),
        ("/v1/models/{name:path}", guarded(pages.model, either), get),
        ("/v1/chat/completions", guarded(pages.completions, lambda: pages.chat_on), ("POST",)),
        ("/v1/responses", guarded(pages.responses, lambda: pages.responses_on), ("POST",)),
        *((path, guarded(pages.metrics, lambda: pages.metrics_on), get) for path in MEASURED),
        ("/protocol.schema.json", pages.schema, get),
        ("/files/{link}/{name}", pages.file, get),
    ]
    found = [Route(path, only(answer, *methods), methods=ANY) for path, answer, methods in table]
    found += [Route(path, only(guarded(pages.absent), *ANY), methods=ANY) for path in ("/api/channels/{rest:path}",)]
    found += [Route(path, pages.absent, methods=ANY) for path in RESERVED]
    return [*found, Route("/{rest:path}", page_or_nothing(pages), methods=ANY)]


MEASURED = ("/metrics", "/api/diagnostics/prometheus")
CONTROL = ("", "/__openclaw", "/__openclaw__")
ANY = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
RESERVED = (
    "/v1/{rest:path}",
    "/v1",
    "/api/{rest:path}",
    "/hooks/{rest:path}",
    "/files/{rest:path}",
)


def page_or_nothing(pages: Pages) -> Answer:
    """A channel that is called at this path; else the page for whoever looks, nothing for whoever writes."""

    async def answer(request: Request) -> Response:
        if (called := await pages.hooked(request)) is not None:
            return called
        if request.method not in ("GET", "HEAD"):
            return missing()
        return await pages.page(request)

    return answer


def application(site: Site) -> Starlette:
    """The ASGI application."""
    return Starlette(routes=routes(site))
