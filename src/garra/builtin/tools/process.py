"""Commands in the background: see them, talk to them, end them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from garra.core import keystrokes
from garra.core.errors import ToolFailed
from garra.core.taint import Mark
from garra.sdk.ports import Exec, Ran
from garra.sdk.tool import Call, Effect, Result, ToolInfo, Update

LONGEST_POLL_MS = 120_000
LINES = 200
TYPED = ("write", "send-keys", "submit", "paste")


class Process:
    """The tool `process`."""

    info = ToolInfo(
        "process",
        "Background",
        "Background commands of exec: list; poll (new output, waits timeout ms); log (lines offset, limit); "
        "write data to its input; send-keys keys (Enter, C-c, Up …); submit (Enter); paste data; kill.",
        {
            "type": "object",
            "properties": {
                "action": {
                    "type": "string",
                    "enum": ["list", "poll", "log", "write", "send-keys", "submit", "paste", "kill"],
                },
                "sessionId": {"type": "string"},
                "data": {"type": "string"},
                "keys": {"type": "array", "items": {"type": "string"}},
                "timeout": {"type": "integer", "minimum": 0},
                "offset": {"type": "integer"},
                "limit": {"type": "integer", "minimum": 1},
            },
            "required": ["action"],
            "additionalProperties": False,
        },
        groups=("group:runtime",),
        effects=("runs",),
    )

    async def affects(self, call: Call) -> tuple[Effect, ...]:
        """What is typed into a program may be as good as a command; to look at it, or end it, is not."""
        asked = call.arguments
        if asked["action"] not in TYPED or await call.context.exec.settles(str(asked.get("sessionId", ""))):
            return ()
        return self.info.effects

    def prepare(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """What is typed may be said as `text` too, and for send-keys as `literal` text, `hex` bytes, then `keys`."""
        asked = dict(arguments)
        if "text" in asked:
            asked.setdefault("data", asked.pop("text"))
        if asked.get("action") == "send-keys" and ("literal" in asked or "hex" in asked):
            try:
                codes = bytes.fromhex("".join(asked.get("hex") or ())) + keystrokes.encode(asked.get("keys") or ())
                data = f"{asked.get('literal') or ''}{codes.decode()}"
            except (TypeError, ValueError, ToolFailed):
                return arguments
            return {**_without(asked, "literal", "hex", "keys"), "action": "write", "data": data}
        return asked

    async def execute(self, call: Call, _: Update) -> Result:
        asked, programs = call.arguments, call.context.exec
        if asked["action"] == "list":
            return listed(programs)
        session = asked.get("sessionId")
        if not session:
            raise ToolFailed(f"sessionId is needed for {asked['action']}; list shows them")
        if asked["action"] == "log":
            text = programs.log(session, asked.get("offset", -LINES), asked.get("limit", LINES))
            body = {"status": "completed", "sessionId": session, "output": text}
            return Result.of(text or "(no output)", body, brought_by(programs, session))
        return told(session, await ACTIONS[asked["action"]](programs, session, asked))


def _without(asked: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in asked.items() if name not in names}


async def poll(programs: Exec, session: str, asked: Mapping[str, Any]) -> Ran:
    return await programs.poll(session, min(asked.get("timeout", 0), LONGEST_POLL_MS))


async def write(programs: Exec, session: str, asked: Mapping[str, Any]) -> Ran:
    return await programs.send(session, asked.get("data", "").encode(errors="replace"))


async def send_keys(programs: Exec, session: str, asked: Mapping[str, Any]) -> Ran:
    return await programs.send(session, keystrokes.encode(asked.get("keys", ())))


async def submit(programs: Exec, session: str, asked: Mapping[str, Any]) -> Ran:
    return await programs.send(session, asked.get("data", "").encode(errors="replace") + b"\r")


async def paste(programs: Exec, session: str, asked: Mapping[str, Any]) -> Ran:
    return await programs.send(session, b"\x1b[200~" + asked.get("data", "").encode(errors="replace") + b"\x1b[201~")


async def kill(programs: Exec, session: str, _: Mapping[str, Any]) -> Ran:
    return await programs.kill(session)


ACTIONS: Mapping[str, Callable[[Exec, str, Mapping[str, Any]], Awaitable[Ran]]] = {
    "poll": poll,
    "write": write,
    "send-keys": send_keys,
    "submit": submit,
    "paste": paste,
    "kill": kill,
}


def listed(programs: Exec) -> Result:
    rows = [row(ran) for ran in programs.running()]
    lines = [f"{r['sessionId']} {r['status']} {r['runtimeMs'] // 1000}s {r['command'][:80]}{r['note']}" for r in rows]
    marks = tuple(mark for ran in programs.running() for mark in ran.marks)
    body = {"status": "completed", "sessions": rows}
    return Result.of("\n".join(lines) or "Nothing runs in the background.", body, marks)


def brought_by(programs: Exec, session: str) -> tuple[Mark, ...]:
    return tuple(mark for ran in programs.running() if ran.session == session for mark in ran.marks)


def row(ran: Ran) -> dict[str, Any]:
    return {
        "sessionId": ran.session,
        "status": ran.status,
        "command": ran.command,
        "pid": ran.pid,
        "startedAt": ran.started_at,
        "runtimeMs": ran.duration_ms,
        "cwd": ran.workdir,
        "tail": ran.output,
        "exitCode": ran.exit_code,
        "note": "".join(f" ({note})" for note in ran.notes),
    }


def told(session: str, ran: Ran) -> Result:
    state = "Still running." if ran.status == "running" else ended(ran)
    body = {"sessionId": session, "aggregated": ran.output, "exitCode": ran.exit_code, "exitSignal": ran.signal}
    text = ran.output.rstrip() or "(no new output)"
    notes = "".join(f"\n({note})" for note in ran.notes)
    return Result.of(f"{text}\n\n{state}{notes}", {"status": ran.status, **body}, ran.marks)


def ended(ran: Ran) -> str:
    how = f"with code {ran.exit_code}" if ran.exit_code is not None else f"by signal {ran.signal}"
    return "Ended: " + {"killed": "killed.", "timeout": "out of time."}.get(ran.status, f"{how}.")
