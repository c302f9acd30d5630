"""A port for tests: a small gateway in memory that keeps what was said and answers what it was told to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from garra.client.wire import Event, Link
from garra.core.errors import UserError
from garra.faces.tui.backend import Ask, Listener

MAIN = "agent:main:main"
NOW = 1_800_000_000_000


class Memory:
    """As `faces.tui.backend.Port`."""

    where = "127.0.0.1:18789"

    def __init__(self, messages: list[dict[str, Any]] | None = None) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.messages = {MAIN: messages or []}
        self.row: dict[str, Any] = {
            "model": "fake", "modelProvider": "fake", "totalTokens": 2310, "contextTokens": 200_000,
        }  # fmt: skip
        self.refuse: dict[str, str] = {}
        self.closed = False
        self._listener: Listener = lambda news: None

    async def open(self, listener: Listener, ask: Ask) -> None:
        self._listener = listener
        self.ask = ask

    async def close(self) -> None:
        self.closed = True

    def event(self, name: str, **payload: Any) -> None:
        self._listener(Event(name, {"sessionKey": MAIN, **payload}))

    def link(self, link: Link) -> None:
        self._listener(link)

    async def call(self, method: str, params: Mapping[str, Any]) -> Any:
        self.calls.append((method, dict(params)))
        if method in self.refuse:
            raise UserError(self.refuse[method])
        answers: dict[str, Callable[[], Any]] = {
            "chat.history": lambda: {
                "sessionKey": params["sessionKey"], "messages": self.messages.get(params["sessionKey"], []),
            },
            "sessions.describe": lambda: {"session": {"key": params["key"], **self.row}},
            "sessions.list": lambda: {
                "sessions": [
                    {"key": MAIN, "displayName": "Roof offers", "lastMessagePreview": "Offer 2 leaves out the roof."},
                    {"key": "agent:main:tui-2", "displayName": "Trip to Lisbon", "lastMessagePreview": "Three nights."},
                ]
            },
            "agents.list": lambda: {
                "defaultId": "main",
                "agents": [
                    {"id": "main", "model": {"primary": "fake/fake"}},
                    {"id": "cook", "name": "The cook", "model": {"primary": "fake/small"}},
                ],
            },
            "models.list": lambda: {
                "models": [
                    {"id": "far", "name": "Far", "provider": "cloud", "available": False},
                    {"id": "fake", "name": "Fake", "provider": "fake", "available": True},
                ]
            },
            "chat.abort": lambda: {"ok": True, "aborted": True, "runIds": []},
            "status": lambda: {"runtimeVersion": "0.1.0"},
        }  # fmt: skip
        return answers.get(method, lambda: {"ok": True})()

    def said(self, method: str) -> list[dict[str, Any]]:
        return [params for name, params in self.calls if name == method]


def words(run_id: str, text: str, item: str = "1") -> dict[str, Any]:
    return {"runId": run_id, "stream": "assistant", "data": {"text": text, "delta": text, "itemId": item}}


def tool(run_id: str, phase: str, call: str = "c1", **data: Any) -> dict[str, Any]:
    return {"runId": run_id, "stream": "tool", "data": {"phase": phase, "name": "exec", "toolCallId": call, **data}}


def final(run_id: str, text: str) -> dict[str, Any]:
    message = {"role": "assistant", "content": [{"type": "text", "text": text}]}
    return {"runId": run_id, "state": "final", "stopReason": "stop", "message": message}
