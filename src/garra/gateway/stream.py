"""One run as its watchers see it: run events in, numbered wire events out.

The order is that of the original's clients: lifecycle, words, tools, lifecycle end, and the one `chat` event that ends
the run last. Nothing here waits or sends; `gateway.project` does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, assert_never

from garra.core.events import (
    AgentEnded,
    AgentStarted,
    Compacting,
    EntryStored,
    MessageEnded,
    MessageStarted,
    MessageUpdated,
    ModelChosen,
    Noticed,
    PersonAnswered,
    PersonAsked,
    RunEnded,
    RunEvent,
    RunPhase,
    TextDelta,
    ThinkingDelta,
    ToolEnded,
    ToolStarted,
    ToolUpdated,
    TurnEnded,
    TurnStarted,
)
from garra.core.messages import Assistant, ToolCall, part_json
from garra.core.value import frozen
from garra.gateway.asked import told
from garra.gateway.failure import chat_kind, observation
from garra.gateway.live import INTERVAL_S, LiveText

Audience = Literal["readers", "tool", "watchers", "changed"]
SHOWN = 16 << 10
"""Characters of a running tool's output that one event repeats; the end of it is what is new."""

COMMANDS = frozenset({"exec", "process", "bash", "shell"})


@frozen
class Emit:
    """One event to send.

    `readers`: every operator that may read; `tool`: the starter as `agent`, other watchers as `session.tool`;
    `watchers`: who subscribed to this session's messages; `changed`: a `sessions.changed` whose row is still to add.
    """

    event: str
    payload: dict[str, Any]
    to: Audience = "readers"


@frozen
class Place:
    """Which run, and where it runs."""

    run_id: str
    session_key: str
    session_id: str
    agent_id: str


def title(call: ToolCall) -> str:
    """How a tool call is named to a person."""
    name = call.name.replace("_", " ").capitalize()
    return f"{name} {hint}" if (hint := meta(call)) else name


def meta(call: ToolCall) -> str:
    """What a call is about, one short line."""
    for key in ("command", "path", "file_path", "query", "url", "action"):
        value = call.arguments.get(key)
        if isinstance(value, str) and value:
            line = value.splitlines()[0]
            return line if len(line) <= 80 else line[:79] + "…"
    return ""


HIDDEN = {"hideFromChannelProgress": True}
"""Told of a tool that is kept out of the lines that show progress."""


class RunView:
    """The wire side of one run. `phases`: whether its starter is shown what happens before the model speaks."""

    def __init__(self, place: Place, ts: int, *, phases: bool = True) -> None:
        self.run_id, self.session_key = place.run_id, place.session_key
        self.session_id, self.agent_id = place.session_id, place.agent_id
        self.phases = phases
        self.words, self.thoughts = LiveText(), LiveText()
        self.started_at = ts
        self.stop = ""
        self.settled = False
        self.provider = self.model = ""
        self._seq = 0
        self._messages = 0
        self._calls: dict[str, tuple[int, float]] = {}
        self._used: list[str] = []

    def chat(self, state: str, **more: Any) -> Emit:
        """A `chat` event with the number of the agent event before it."""
        head = {"runId": self.run_id, "sessionKey": self.session_key, "agentId": self.agent_id}
        return Emit("chat", {**head, "seq": self._seq, "state": state, **more})

    def agent(self, stream: str, data: Mapping[str, Any], ts: int, to: Audience = "readers") -> Emit:
        self._seq += 1
        head: dict[str, Any] = {"runId": self.run_id, "stream": stream, "data": data, "sessionKey": self.session_key}
        if stream == "lifecycle":
            head["sessionId"] = self.session_id
        return Emit("agent", {**head, "agentId": self.agent_id, "seq": self._seq, "ts": ts, "isHeartbeat": False}, to)

    def changed(self, ts: int, **more: Any) -> Emit:
        payload = {"sessionKey": self.session_key, "agentId": self.agent_id, **more, "ts": ts}
        return Emit("sessions.changed", payload, "changed")

    def on(self, event: RunEvent, now: float) -> list[Emit]:  # noqa: C901 - one arm for each kind of event
        """What `event` makes the watchers see; words wait until `flush`. `now` is monotonic seconds."""
        body, ts = event.body, event.ts
        match body:
            case MessageUpdated():
                self._grow(body)
                return []
            case RunPhase():
                return self._phase(body, ts)
            case AgentStarted():
                return self._start(ts)
            case ModelChosen():
                return self._chosen(body, ts)
            case MessageStarted():
                self._begin(body)
                return []
            case MessageEnded():
                return self._whole(body, ts, now)
            case EntryStored():
                return [self._stored(body.entry)]
            case ToolStarted():
                return [*self.flush(ts, now), *self._tool_start(body, ts)]
            case ToolUpdated():
                return self._tool_update(body, ts, now)
            case ToolEnded():
                return self._tool_end(body, ts)
            case PersonAsked() | PersonAnswered() | Compacting() | Noticed():
                return [*self.flush(ts, now), *(self.agent(stream, data, ts) for stream, data in told(body))]
            case RunEnded():
                return [*self.flush(ts, now), *self._end(body, ts)]
            case TurnStarted() | TurnEnded() | AgentEnded():
                return []
            case _:
                assert_never(body)

    def due(self, now: float) -> float | None:
        """Seconds until waiting words may go out; None when none wait."""
        waits = [live.due(now) for live in (self.words, self.thoughts) if live]
        return min(waits) if waits else None

    def flush(self, ts: int, now: float) -> list[Emit]:
        """The words that wait, all of them."""
        sent: list[Emit] = []
        if self.thoughts:
            _, _, delta, text = self.thoughts.take(now)
            sent.append(self.agent("thinking", {"text": text, "delta": delta, "itemId": self._item}, ts))
        if self.words:
            fresh, whole, delta, text = self.words.take(now)
            sent.append(self.agent("assistant", {"text": text, "delta": delta, "itemId": self._item}, ts))
            message = {"role": "assistant", "content": [{"type": "text", "text": whole}], "timestamp": ts}
            sent.append(self.chat("delta", deltaText=fresh, message=message))
        return sent

    def said(self, text: str, ts: int) -> Emit:
        """A whole answer that no model gave."""
        self._seq += 1
        return self.chat("final", stopReason="stop", message=_message(text, ts))

    def aborted(self, reason: str, ts: int, now: float) -> list[Emit]:
        """The `chat` event of an abort, once; it goes out before the one who asked is answered."""
        if self.settled:
            return []
        sent = self.flush(ts, now)
        self.settled = True
        text = self.words.text.strip()
        message = {"message": _message(text, ts)} if text else {}
        return [*sent, self.chat("aborted", stopReason=reason, **message)]

    @property
    def _item(self) -> str:
        return f"{self.run_id}:{max(1, self._messages)}"

    def _grow(self, body: MessageUpdated) -> None:
        if isinstance(body.delta, TextDelta):
            self.words.add(body.delta.delta)
        elif isinstance(body.delta, ThinkingDelta):
            self.thoughts.add(body.delta.delta)

    def _begin(self, body: MessageStarted) -> None:
        if isinstance(body.message, Assistant):
            self._messages += 1
            self.words.begin()
            self.thoughts.begin()

    def _phase(self, body: RunPhase, ts: int) -> list[Emit]:
        if not self.phases:
            return []
        status = self.agent("run_status", {"phase": body.phase}, ts)
        return [self.chat("status", phase=body.phase), status]

    def _start(self, ts: int) -> list[Emit]:
        self.started_at = ts
        return [
            self.agent("lifecycle", {"phase": "start", "startedAt": ts}, ts),
            self.changed(ts, reason="agent.run.started", phase="start", runId=self.run_id),
        ]

    def _chosen(self, body: ModelChosen, ts: int) -> list[Emit]:
        again = (self.provider, self.model) == (body.provider, body.model)
        self.provider, self.model = body.provider, body.model
        if again:
            return []
        return [self.agent("lifecycle", {"phase": "model", "provider": body.provider, "model": body.model}, ts)]

    def _whole(self, body: MessageEnded, ts: int, now: float) -> list[Emit]:
        if not isinstance(body.message, Assistant):
            return []
        self.stop = body.message.stop
        return [*self.flush(ts, now), self.agent("usage", {"outputTokens": body.message.usage.output}, ts)]

    def _stored(self, entry: Mapping[str, Any]) -> Emit:
        payload = {"sessionKey": self.session_key, "agentId": self.agent_id, "entry": entry}
        return Emit("session.message", payload, "watchers")

    def _tool_start(self, body: ToolStarted, ts: int) -> list[Emit]:
        """Progress lines (`item`) and the call itself (`tool`); a hidden tool has no lines."""
        call = body.call
        self._calls[call.id] = (ts, 0.0)
        start = {"phase": "start", "name": call.name, "toolCallId": call.id, "args": dict(call.arguments)}
        if body.hidden:
            return [self.agent("tool", {**start, **HIDDEN}, ts, "tool")]
        return [
            self.agent("item", {**_item(call), "phase": "start", "status": "running", "startedAt": ts}, ts),
            self.agent("tool", start, ts, "tool"),
        ]

    def _tool_update(self, body: ToolUpdated, ts: int, now: float) -> list[Emit]:
        call = body.call
        began, last = self._calls.get(call.id, (ts, 0.0))
        if last and now - last < INTERVAL_S:
            return []
        self._calls[call.id] = (began, now)
        text = body.partial[-SHOWN:]
        partial = {"content": [{"type": "text", "text": text}], "details": {"status": "running", "tail": text}}
        update = {"phase": "update", "name": call.name, "toolCallId": call.id, "partialResult": partial}
        if body.hidden:
            return [self.agent("tool", {**update, **HIDDEN}, ts, "tool")]
        sent = [
            self.agent("tool", update, ts, "tool"),
            self.agent("item", {**_item(call), "phase": "update", "status": "running"}, ts),
        ]
        if call.name in COMMANDS:
            sent.append(
                self.agent("command_output", {**_output(call, text), "phase": "delta", "status": "running"}, ts)
            )
        return sent

    def _tool_end(self, body: ToolEnded, ts: int) -> list[Emit]:
        call, result = body.call, body.result
        began, _ = self._calls.pop(call.id, (ts, 0.0))
        status = "failed" if result.is_error else "completed"
        if not result.is_error:
            self._used.append(call.name)
        answer: dict[str, Any] = {"content": [part_json(part) for part in result.content]}
        if result.details is not None:
            answer["details"] = result.details
        shown = {"phase": "result", "name": call.name, "toolCallId": call.id, "meta": meta(call)}
        ended = {**shown, "isError": result.is_error, "commandBearing": call.name in COMMANDS, "result": answer}
        if body.hidden:
            return [self.agent("tool", {**ended, **HIDDEN}, ts, "tool")]
        sent = [
            self.agent("tool", ended, ts, "tool"),
            self.agent(
                "item", {**_item(call), "phase": "end", "status": status, "startedAt": began, "endedAt": ts}, ts
            ),
        ]
        if call.name in COMMANDS:
            sent.append(self._command_end(body, status, ts))
        return sent

    def _command_end(self, body: ToolEnded, status: str, ts: int) -> Emit:
        details = body.result.details if isinstance(body.result.details, dict) else {}
        about = {key: details[key] for key in ("exitCode", "cwd") if key in details}
        output = {**_output(body.call, body.result.text[-SHOWN:]), "phase": "end", "status": status}
        return self.agent("command_output", {**output, "durationMs": body.duration_ms, **about}, ts)

    def _end(self, body: RunEnded, ts: int) -> list[Emit]:
        match body.ending:
            case "ok":
                sent = self._well(body, ts)
            case "aborted":
                sent = self._stopped(body, ts)
            case "error" | "timeout":
                sent = self._badly(body, ts)
            case _:
                assert_never(body.ending)
        self.settled = True
        phase = "end" if body.ending == "ok" else "error"
        return [*sent, self.changed(ts, reason="agent.input.settled", phase=phase, runId=self.run_id)]

    def _well(self, body: RunEnded, ts: int) -> list[Emit]:
        stop = self.stop or "stop"
        said = {"disposition": "silent" if body.silent else "visible", "text": body.reply}
        common = {"stopReason": stop, "aborted": False, "livenessState": "working"}
        end = {
            **self._times(body),
            **common,
            "phase": "end",
            "executionSettled": True,
            "terminalReply": said,
            "terminalReceipt": self.receipt(body),
        }
        sent = [
            self.agent("lifecycle", {**common, "phase": "finishing", "endedAt": body.ended_at}, ts),
            self.agent("lifecycle", end, ts),
        ]
        if self.settled:
            return sent
        shown = {} if body.silent else {"message": _message(self.reply(body), ts)}
        return [*sent, self.chat("final", stopReason=stop, **shown)]

    def reply(self, body: RunEnded) -> str:
        """All words of the run where they end in the reply, else the reply."""
        said, reply = self.words.text.strip(), body.reply.strip()
        return said if reply and said.endswith(reply) else reply or said

    def _stopped(self, body: RunEnded, ts: int) -> list[Emit]:
        chat = self.aborted("rpc", ts, 0.0)
        data = {**self._times(body), "phase": "error", "error": "aborted", "aborted": True, "executionSettled": True}
        return [*chat, self.agent("lifecycle", data, ts)]

    def _badly(self, body: RunEnded, ts: int) -> list[Emit]:
        line = body.failure.message if body.failure else body.reply
        detail = observation(body.failure, self.provider, self.model)
        data = {**self._times(body), "phase": "error", "error": line, "errorObservation": detail}
        lifecycle = self.agent("lifecycle", {**data, "executionSettled": True}, ts)
        if self.settled:
            return [lifecycle]
        kind = chat_kind(body.failure, timed_out=body.ending == "timeout")
        more = {"errorKind": kind} if kind else {}
        return [lifecycle, self.chat("error", errorMessage=body.reply or line, errorDetail=detail, **more)]

    def _times(self, body: RunEnded) -> dict[str, Any]:
        return {"startedAt": body.started_at, "endedAt": body.ended_at}

    def receipt(self, body: RunEnded) -> dict[str, Any]:
        asked = {"provider": self.provider, "model": self.model}
        return {
            "runId": self.run_id,
            "sessionId": self.session_id,
            "turnId": self.run_id,
            "requested": asked,
            "effective": {**asked, "responseModel": self.model},
            "successfulToolNames": sorted(set(self._used)),
            "rerouted": False,
            "terminalDisposition": "silent" if body.silent else "visible",
        }


def _message(text: str, ts: int) -> dict[str, Any]:
    return {"role": "assistant", "content": [{"type": "text", "text": text}], "timestamp": ts}


def _item(call: ToolCall) -> dict[str, Any]:
    return {
        "itemId": f"tool:{call.id}",
        "toolCallId": call.id,
        "name": call.name,
        "kind": "tool",
        "title": title(call),
        "meta": meta(call),
        "commandBearing": call.name in COMMANDS,
    }


def _output(call: ToolCall, text: str) -> dict[str, Any]:
    name = f"command {meta(call)}".strip()
    about = {"itemId": f"command:{call.id}", "toolCallId": call.id, "name": call.name}
    return {**about, "title": name, "output": text.rstrip("\n")}
