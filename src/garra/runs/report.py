"""What programs are told of a run: the `agent --json` contract, key for key as the original's callers read it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from garra.core.messages import Usage
from garra.runs.run import Run

FINISH = {"stop": "stop", "length": "length", "toolUse": "tool_calls", "error": "error", "aborted": "aborted"}


def usage_json(usage: Usage) -> dict[str, Any]:
    return {
        "input": usage.input,
        "output": usage.output,
        "cacheRead": usage.cache_read,
        "cacheWrite": usage.cache_write,
        "total": usage.total,
        "cost": {"total": usage.cost},
    }


def blob(run: Run, runner: str = "embedded") -> dict[str, Any]:
    """`{payloads, meta}` of a run that has ended. One payload a reply; none when it was silent or stopped."""
    ended, trace = run.ended, run.trace
    assert ended is not None, "a run is reported when it has ended"
    stop = ended.message.stop if ended.message else ("aborted" if ended.ending == "aborted" else "error")
    shown = bool(ended.reply) and not ended.silent
    return {
        "payloads": [{"text": ended.reply, "mediaUrl": None}] if shown else [],
        "meta": {
            "durationMs": ended.ended_at - ended.started_at,
            "agentMeta": _agent(run),
            "aborted": ended.ending == "aborted",
            "systemPromptReport": {
                "source": "run",
                "generatedAt": ended.started_at,
                "sessionId": run.session_id,
                "sessionKey": run.session_key,
                "provider": trace.provider,
                "model": trace.model,
                "workspaceDir": trace.workdir,
                **trace.prompt(),
            },
            "finalPromptText": run.turn.text,
            "finalAssistantVisibleText": ended.reply if shown else "",
            "finalAssistantRawText": ended.message.text if ended.message else "",
            "replayInvalid": False,
            "livenessState": "working",
            "stopReason": stop,
            "executionTrace": _trace(run, runner),
            "requestShaping": {"thinking": run.turn.thinking or "off"},
            "completion": {"stopReason": stop, "finishReason": FINISH[stop]},
        },
    }


def followed(run: Run, told: Sequence[Run]) -> dict[str, Any]:
    """As `blob`, with what was said in the runs that sub-agents' reports began."""
    whole = blob(run)
    replies = [each.ended.reply for each in told if each.ended is not None and not each.ended.silent]
    more = [{"text": reply, "mediaUrl": None} for reply in replies if reply]
    return {**whole, "payloads": [*whole["payloads"], *more]} if more else whole


def _agent(run: Run) -> dict[str, Any]:
    trace = run.trace
    last = trace.last_usage
    return {
        "sessionId": run.session_id,
        "sessionFile": run.session_key,
        "provider": trace.provider,
        "model": trace.model,
        "contextTokens": trace.context_window,
        "usage": usage_json(trace.usage),
        "lastCallUsage": usage_json(last),
        "promptTokens": last.input + last.cache_read + last.cache_write,
        "assistantTurns": len(trace.answers),
        "terminalReceipt": receipt(run),
    }


def receipt(run: Run) -> dict[str, Any]:
    """Who was asked, and who answered."""
    trace = run.trace
    provider, _, model = trace.requested.partition("/")
    return {
        "runId": run.run_id,
        "sessionId": run.session_id,
        "turnId": run.run_id,
        "requested": {"provider": provider, "model": model},
        "effective": {"provider": trace.provider, "model": trace.model, "responseModel": trace.model},
        "successfulToolNames": sorted(set(trace.tools)),
        "rerouted": bool(trace.requested) and trace.requested != f"{trace.provider}/{trace.model}",
    }


def attempts(run: Run) -> list[dict[str, Any]]:
    """Each call to a model: by which login, what led to it, how it ended."""
    return [
        {
            "provider": attempt.provider,
            "model": attempt.model,
            "result": attempt.result,
            "stage": "assistant",
            "profile": attempt.profile or None,
            "level": attempt.level,
            **({"reason": attempt.reason, "status": attempt.status} if attempt.reason else {}),
            **({"waitMs": attempt.wait_ms} if attempt.wait_ms else {}),
        }
        for attempt in run.trace.attempts
    ]


def _trace(run: Run, runner: str) -> dict[str, Any]:
    return {
        "winnerProvider": run.trace.provider,
        "winnerModel": run.trace.model,
        "attempts": attempts(run),
        "fallbackUsed": receipt(run)["rerouted"],
        "runner": runner,
    }
