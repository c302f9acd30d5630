"""What the terminal's chat needs of a gateway, over a port: a connection, or a gateway that lives in this process."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

from garra.client.quick import Refused, fresh
from garra.client.wire import Event, Link
from garra.core.value import frozen
from garra.faces.tui.items import Facts

Listener = Callable[[Event | Link], None]
Ask = Callable[[str], Awaitable[bool]]
"""Asks the person at the screen a question that is answered with yes or no."""

NOTICE = "garra.notice"
"""An event of the port itself: a line for the person, `{text}`."""


class Port(Protocol):
    """The way to a gateway's methods and events. `where` is what the status line calls it."""

    @property
    def where(self) -> str: ...

    async def open(self, listener: Listener, ask: Ask) -> None:
        """Connect; from here on `listener` hears everything. Raises GarraError when it cannot."""
        ...

    async def call(self, method: str, params: Mapping[str, Any]) -> Any:
        """Raises GarraError: Refused for the gateway's own errors, Unreachable for a broken link."""
        ...

    async def close(self) -> None: ...


@frozen
class Choice:
    """One row of a picker: `value` is what is chosen, `label` and `about` are what a person reads."""

    value: str
    label: str
    about: str = ""


class Backend:
    """A gateway's chat, in the words of a chat."""

    def __init__(self, port: Port) -> None:
        self._port = port

    @property
    def where(self) -> str:
        return self._port.where

    async def open(self, listener: Listener, ask: Ask) -> None:
        await self._port.open(listener, ask)
        await self.subscribe()

    async def subscribe(self) -> None:
        """Ask for the events of all sessions; again after each new connection."""
        await self._port.call("sessions.subscribe", {})

    async def close(self) -> None:
        await self._port.close()

    async def send(self, session_key: str, text: str, run_id: str, thinking: str = "") -> None:
        """Say something; the answer comes as events of run `run_id`."""
        params = {"sessionKey": session_key, "message": text, "idempotencyKey": run_id, "deliver": False}
        await self._port.call("chat.send", {**params, **({"thinking": thinking} if thinking else {})})

    async def abort(self, session_key: str) -> bool:
        """Stop what goes on; whether anything was stopped."""
        answer = await self._port.call("chat.abort", {"sessionKey": session_key})
        return bool(answer.get("aborted"))

    async def history(self, session_key: str, limit: int) -> tuple[str, Sequence[Mapping[str, Any]]]:
        """The session's key as the gateway spells it, and its last messages."""
        answer = await self._port.call("chat.history", {"sessionKey": session_key, "limit": limit})
        return str(answer.get("sessionKey") or session_key), answer.get("messages") or ()

    async def facts(self, session_key: str) -> Facts:
        """What the status line says; empty for a session that has not begun."""
        try:
            row = (await self._port.call("sessions.describe", {"key": session_key})).get("session") or {}
        except Refused:
            row = {}
        provider, model = row.get("modelProvider"), row.get("model")
        return Facts(
            model=f"{provider}/{model}" if provider and model else str(model or ""),
            tokens=int(row.get("totalTokens") or 0),
            window=int(row.get("contextTokens") or 0),
            thinking=str(row.get("thinkingLevel") or ""),
            title=str(row.get("displayName") or row.get("label") or ""),
        )

    async def default_model(self, agent_id: str) -> str:
        """The model an agent answers with when nothing else is chosen; empty when there is none."""
        for row in (await self._port.call("agents.list", {})).get("agents") or ():
            if row.get("id") == agent_id:
                return str((row.get("model") or {}).get("primary") or "")
        return ""

    async def sessions(self, agent_id: str) -> list[Choice]:
        """Newest first."""
        params = {"agentId": agent_id, "limit": 100, "includeDerivedTitles": True, "includeLastMessage": True}
        rows = (await self._port.call("sessions.list", params)).get("sessions") or ()
        return [
            Choice(row["key"], str(row.get("displayName") or row.get("label") or row["key"]), _preview(row))
            for row in rows
        ]

    async def models(self, agent_id: str) -> list[Choice]:
        """The ones that could answer now stand first."""
        rows = (await self._port.call("models.list", {"agentId": agent_id})).get("models") or ()
        ordered = sorted(rows, key=lambda row: row.get("available") is False)
        return [
            Choice(
                f"{row.get('provider')}/{row.get('id')}",
                str(row.get("name") or row.get("id")),
                str(row.get("provider") or "") + ("" if row.get("available", True) else ", no key"),
            )
            for row in ordered
        ]

    async def agents(self) -> list[Choice]:
        rows = (await self._port.call("agents.list", {})).get("agents") or ()
        return [Choice(row["id"], str(row.get("name") or row["id"]), _model(row)) for row in rows]

    async def default_agent(self) -> str:
        return str((await self._port.call("agents.list", {})).get("defaultId") or "main")

    async def set_model(self, session_key: str, ref: str) -> None:
        await self._port.call("sessions.patch", {"key": session_key, "model": ref})

    async def set_thinking(self, session_key: str, level: str) -> None:
        await self._port.call("sessions.patch", {"key": session_key, "thinkingLevel": level})

    async def set_verbose(self, session_key: str, level: str) -> None:
        await self._port.call("sessions.patch", {"key": session_key, "verboseLevel": level})

    async def reset(self, session_key: str) -> None:
        await self._port.call("sessions.reset", {"key": session_key})

    async def status(self) -> Mapping[str, Any]:
        answer: Mapping[str, Any] = await self._port.call("status", {})
        return answer

    @staticmethod
    def new_session(agent_id: str) -> str:
        return f"agent:{agent_id}:tui-{fresh()[:8]}"


def _preview(row: Mapping[str, Any]) -> str:
    return " ".join(str(row.get("lastMessagePreview") or row["key"]).split())[:80]


def _model(row: Mapping[str, Any]) -> str:
    return str((row.get("model") or {}).get("primary") or "")
