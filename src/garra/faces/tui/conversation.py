"""One conversation as it goes on: gateway events in, changed items out. It waits for nothing and draws nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from garra.faces.tui.items import Item, Notice, Said, Thought, Tool, Words, foot, hint, text_of

PHASES = {
    "preparing_workspace": "preparing the workspace",
    "preparing_context": "preparing the context",
    "starting_model": "waiting for the model",
}


@dataclass(slots=True)
class Running:
    """A run that goes on. `began` is when it was first heard of, milliseconds since 1970; `doing` for the status."""

    run_id: str
    began: int
    doing: str = "waiting for the model"
    words: list[str] = field(default_factory=list)
    last: Mapping[str, Any] = field(default_factory=dict)


class Conversation:
    """The session on the screen. `mine` are the runs this screen started, whose words it has shown already."""

    def __init__(self, session_key: str) -> None:
        self.session_key = session_key
        self.running: dict[str, Running] = {}
        self.mine: set[str] = set()
        self._tools: dict[str, Tool] = {}
        self._calls: dict[str, str] = {}
        self._began: dict[str, int] = {}
        self._ended: set[str] = set()

    @property
    def busy(self) -> Running | None:
        """The oldest run that goes on, None when all is quiet."""
        return next(iter(self.running.values()), None)

    def asked(self, run_id: str, text: str, now_ms: int) -> list[Item]:
        """This screen sent a message."""
        self.mine.add(run_id)
        self.running[run_id] = Running(run_id, now_ms)
        return [Said(f"said:{run_id}", text)]

    def refused(self, run_id: str, why: str) -> list[Item]:
        """What this screen sent was not taken."""
        self.running.pop(run_id, None)
        return [Notice(f"refused:{run_id}", f"Not sent: {why}", "bad")]

    def feed(self, name: str, payload: Mapping[str, Any], now_ms: int) -> list[Item]:
        """Take one event in and give the items that are new or changed. Other sessions' events change nothing."""
        if payload.get("sessionKey") != self.session_key:
            return []
        match name:
            case "chat":
                return self._chat(payload, now_ms)
            case "agent" | "session.tool":
                return self._agent(payload, now_ms)
            case "session.message":
                return self._message(payload)
        return []

    def _run(self, payload: Mapping[str, Any], now_ms: int) -> Running | None:
        run_id = str(payload.get("runId") or "")
        if not run_id or run_id in self._ended:
            return None
        return self.running.setdefault(run_id, Running(run_id, now_ms))

    def _chat(self, payload: Mapping[str, Any], now_ms: int) -> list[Item]:
        run = self._run(payload, now_ms)
        if run is None:
            return []
        state = payload.get("state")
        if state == "status":
            run.doing = PHASES.get(str(payload.get("phase")), run.doing)
            return []
        if state == "delta":
            run.doing = "answering"
            return []
        return self._end(run, payload, now_ms)

    def _end(self, run: Running, payload: Mapping[str, Any], now_ms: int) -> list[Item]:
        self._ended.add(run.run_id)
        self.running.pop(run.run_id, None)
        items: list[Item] = []
        for key, tool in self._tools.items():
            if tool.state == "running" and key.startswith(f"tool:{run.run_id}:"):
                self._tools[key] = stopped = replace(tool, state="failed")
                items.append(stopped)
        match payload.get("state"):
            case "final":
                text = text_of((payload.get("message") or {}).get("content"))
                if text and not run.words:
                    items.append(Words(f"final:{run.run_id}", text))
                items.append(foot(f"foot:{run.run_id}", run.last, now_ms - run.began))
            case "error":
                why = str(payload.get("errorMessage") or "the run failed")
                items.append(Notice(f"end:{run.run_id}", why, "bad"))
            case "aborted":
                items.append(Notice(f"end:{run.run_id}", "stopped", "quiet"))
        return items

    def _agent(self, payload: Mapping[str, Any], now_ms: int) -> list[Item]:
        run = self._run(payload, now_ms)
        data = payload.get("data")
        if run is None or not isinstance(data, Mapping):
            return []
        match payload.get("stream"):
            case "assistant":
                return self._spoke(run, data)
            case "thinking":
                run.doing = "thinking"
                return [Thought(f"thought:{run.run_id}:{data.get('itemId', '')}", str(data.get("text", "")))]
            case "tool" if not data.get("hideFromChannelProgress"):
                return self._tool(run, data, int(payload.get("ts") or now_ms))
            case "lifecycle" if data.get("phase") == "waiting-approval":
                run.doing = "waiting for approval"
        return []

    def _spoke(self, run: Running, data: Mapping[str, Any]) -> list[Item]:
        key = f"words:{run.run_id}:{data.get('itemId', '')}"
        if key not in run.words:
            run.words.append(key)
        run.doing = "answering"
        return [Words(key, str(data.get("text", "")))]

    def _tool(self, run: Running, data: Mapping[str, Any], ts: int) -> list[Item]:
        call = f"{run.run_id}:{data.get('toolCallId')}"
        place = self._calls.get(call)
        if place is None or (data.get("phase") == "start" and self._tools[place].state != "running"):
            place = self._calls[call] = f"tool:{call}:{len(self._tools)}"  # a model may use an id again
        known = self._tools.get(place) or Tool(place, str(data.get("name", "")), hint(data.get("args")))
        began = self._began.setdefault(place, ts)
        match data.get("phase"):
            case "start":
                run.doing = f"using {known.name}"
            case "update":
                known = replace(known, output=_result(data.get("partialResult")) or known.output)
            case "result":
                run.doing = "waiting for the model"
                known = _finished(known, data, ts - began)
        self._tools[place] = known
        return [known]

    def _message(self, payload: Mapping[str, Any]) -> list[Item]:
        message = payload.get("message") or {}
        if message.get("role") == "assistant":
            run = self.running.get(str((message.get("__openclaw") or {}).get("runId") or "")) or self.busy
            if run is not None:
                run.last = message
            return []
        sender = str(message.get("idempotencyKey") or "").removesuffix(":user")
        if message.get("role") != "user" or sender in self.mine:
            return []
        text = text_of(message.get("content"))
        return [Said(f"said:{sender or payload.get('messageId')}", text)] if text else []


def _finished(known: Tool, data: Mapping[str, Any], took: int) -> Tool:
    result = data.get("result")
    details = result.get("details") if isinstance(result, Mapping) else None
    told = details.get("durationMs") if isinstance(details, Mapping) else None
    output = _result(result) or known.output
    ms = told if isinstance(told, int) else took
    return replace(known, state="failed" if data.get("isError") else "done", output=output, ms=ms)


def _result(result: Any) -> str:
    if isinstance(result, Mapping):
        return text_of(result.get("content"))
    return result if isinstance(result, str) else ""
