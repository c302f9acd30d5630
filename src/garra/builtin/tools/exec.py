"""Run a command."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from garra.core.errors import ToolFailed
from garra.core.taint import META
from garra.sdk.ports import Launch, Ran
from garra.sdk.tool import Call, Effect, Result, ToolInfo, Update

TAIL = 2_000
OF_OLD = {"timeout": "timeoutSeconds", "timeout_seconds": "timeoutSeconds", "cwd": "workdir", "cmd": "command"}


class ExecTool:
    """The tool `exec`."""

    info = ToolInfo(
        "exec",
        "Run",
        "Run a bash command in the workspace. What is not done after yieldMs goes on in the background: "
        "see it with process. For services set background.",
        {
            "type": "object",
            "properties": {
                "command": {"type": "string"},
                "workdir": {"type": "string"},
                "env": {"type": "object", "additionalProperties": {"type": "string"}},
                "yieldMs": {"type": "integer", "description": "default 10000"},
                "background": {"type": "boolean"},
                "timeoutSeconds": {"type": "number", "minimum": 0, "description": "default 1800; 0 none"},
                "pty": {"type": "boolean", "description": "for programs that need a terminal"},
                "elevated": {"type": "boolean"},
                "host": {"type": "string", "enum": ["auto", "sandbox", "gateway", "node"]},
            },
            "required": ["command"],
            "additionalProperties": False,
        },
        groups=("group:runtime",),
        effects=("runs",),
    )

    def prepare(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        return {OF_OLD.get(name, name): value for name, value in arguments.items()}

    async def affects(self, call: Call) -> tuple[Effect, ...]:
        return () if await call.context.exec.settles(launch(call.arguments)) else self.info.effects

    async def execute(self, call: Call, update: Update) -> Result:
        ran = await call.context.exec.run(launch(call.arguments, call.id), update)
        if ran.status == "running":
            return Result.of(
                f"{ran.output}\n\nStill running in the background (session {ran.session}). "
                f"See it with process: poll, log, write, kill.{noted(ran)}".lstrip(),
                details(ran),
                ran.marks,
            )
        if ran.status == "completed":
            note = f"\n\n(Command exited with code {ran.exit_code})" if ran.exit_code else ""
            return Result.of((ran.output.rstrip("\n") or "(no output)") + note + noted(ran), details(ran), ran.marks)
        told = {**details(ran), META: ran.marks}
        raise ToolFailed(f"{ran.output.rstrip()}\n\n{why(ran)}{noted(ran)}".lstrip(), details=told)


def launch(asked: Mapping[str, Any], call_id: str = "") -> Launch:
    return Launch(
        asked["command"],
        workdir=asked.get("workdir", ""),
        env=asked.get("env", {}),
        yield_ms=asked.get("yieldMs"),
        background=asked.get("background", False),
        timeout_s=asked.get("timeoutSeconds"),
        pty=asked.get("pty", False),
        host=asked.get("host", "auto"),
        elevated=asked.get("elevated", False),
        call_id=call_id,
    )


def noted(ran: Ran) -> str:
    """What the model should know besides the output, as lines after it."""
    return "".join(f"\n\n({note})" for note in ran.notes)


def why(ran: Ran) -> str:
    seconds = f"{ran.duration_ms / 1000:.1f} s"
    match ran.status:
        case "timeout":
            return f"(Command timed out after {seconds} and was ended; give a larger timeoutSeconds if it needs more)"
        case "killed":
            return f"(Command was stopped after {seconds})"
        case _:
            return f"(Command ended by signal {ran.signal})"


def details(ran: Ran) -> dict[str, Any]:
    """What programs and people are told, in the original's words."""
    if ran.status == "running":
        return {
            "status": "running",
            "sessionId": ran.session,
            "pid": ran.pid,
            "startedAt": ran.started_at,
            "cwd": ran.workdir,
            "tail": ran.output[-TAIL:],
        }
    reasons = {"timeout": "timeout", "killed": "killed", "failed": "signal"}
    return {
        "status": "completed" if ran.status == "completed" else "failed",
        "exitCode": ran.exit_code,
        "exitSignal": ran.signal,
        "exitReason": reasons.get(ran.status, "exit"),
        "durationMs": ran.duration_ms,
        "aggregated": ran.output.rstrip("\n"),
        "timedOut": ran.status == "timeout",
        "noOutputTimedOut": False,
        "cwd": ran.workdir,
    }
