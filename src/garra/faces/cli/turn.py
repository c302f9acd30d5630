"""One message to an agent and its answer: through a gateway, or in this process."""

from __future__ import annotations

import argparse
import asyncio
import importlib
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from garra import app
from garra.client import quick
from garra.client.socket import Unreachable
from garra.client.target import Target
from garra.core import thinking as words
from garra.core.errors import UserError
from garra.core.value import frozen
from garra.faces.cli.place import Place

ANSWER_GRACE_S = 30.0
TERMINATED = 143


@frozen
class Ask:
    """What a person or a program asks. Empty text means: not said. `timeout_s` 0 is no limit, None the configured."""

    message: str
    agent: str = ""
    session_key: str = ""
    session_id: str = ""
    model: str = ""
    thinking: str = ""
    timeout_s: float | None = None


@frozen
class Outcome:
    """How it went. `blob` is `{payloads, meta}`; `fault` one line, empty when all went well."""

    ending: str
    blob: Mapping[str, Any]
    fault: str = ""
    run_id: str = ""

    @property
    def text(self) -> str:
        """The words of the answer, its parts apart by a blank line."""
        return "\n\n".join(part["text"] for part in self.blob.get("payloads", ()) if part.get("text"))


class Terminated(Exception):
    """The process was asked to end while it waited for the answer."""


def through(target: Target, ask: Ask) -> dict[str, Any]:
    """Ask a gateway and give its whole answer. Raises Refused (with the failed run as payload) and Unreachable."""
    given = {
        "agentId": ask.agent,
        "sessionKey": ask.session_key,
        "sessionId": ask.session_id,
        "model": ask.model,
        "thinking": ask.thinking,
    }
    params: dict[str, Any] = {name: text for name, text in given.items() if text}
    params |= {"message": ask.message, "idempotencyKey": quick.fresh()}
    if ask.timeout_s is not None:
        params["timeout"] = int(ask.timeout_s)
    wait_s = ask.timeout_s + ANSWER_GRACE_S if ask.timeout_s else None
    try:
        answer: dict[str, Any] = quick.call(
            target, "agent", params, scopes=("operator.admin",), timeout_s=wait_s, last=True
        )
    except Unreachable as fault:
        hint = ", or add --local" if (fault.details or {}).get("kind") == "refused" else ""
        raise Unreachable(f"{fault.message}{hint}", details=fault.details) from fault
    return answer


def outcome(answer: Mapping[str, Any]) -> Outcome:
    """A gateway's answer to `agent`."""
    status = str(answer.get("status", "ok"))
    fault = "" if status == "ok" else str(answer.get("summary") or status)
    return Outcome(status, answer.get("result") or {"payloads": [], "meta": {}}, fault, str(answer.get("runId", "")))


def rerouted(blob: Mapping[str, Any]) -> str:
    """Who answered instead of the model that was asked, and why, in one line; empty where it answered itself."""
    meta = blob.get("meta") or {}
    receipt = (meta.get("agentMeta") or {}).get("terminalReceipt") or {}
    if not receipt.get("rerouted"):
        return ""
    wanted, came = (f"{row['provider']}/{row['model']}" for row in (receipt["requested"], receipt["effective"]))
    attempts = (meta.get("executionTrace") or {}).get("attempts") or ()
    failed = [row for row in attempts if f"{row['provider']}/{row['model']}" == wanted and row["result"] != "success"]
    notices = importlib.import_module("garra.runs.notices")
    why = str(failed[-1]["result"]) if failed else notices.RESTS
    return f"{came} answered instead of {wanted}: {notices.WHY.get(why, why)}"


def embedded(place: Place, ask: Ask, workspace: Path | None = None) -> Outcome:
    """Ask an agent that lives in this process for as long as it answers.

    Raises UserError when it cannot start, KeyboardInterrupt and Terminated when the process is asked to end.
    """
    return asyncio.run(_embedded(place, ask, workspace))


async def _embedded(place: Place, ask: Ask, workspace: Path | None) -> Outcome:
    task = asyncio.current_task()
    assert task is not None
    stopped: list[int] = []

    def stop() -> None:
        stopped.append(signal.SIGTERM)
        task.cancel()

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop)
    report = importlib.import_module("garra.runs.report")  # the whole house: only where a turn runs in this process
    try:
        async with app.embedded(place.paths, place.env, workspace=workspace) as house:
            run = await house.runs.submit(_turn(place, ask))
            ended = await run.wait()
            told = await _told(house, run, ask) if ended.ending == "ok" else []
            return Outcome(ended.ending, report.followed(run, told), _fault(ended), run.run_id)
    except asyncio.CancelledError:
        if stopped:
            raise Terminated from None
        raise


async def _told(house: Any, run: Any, ask: Ask) -> Any:
    """What follows from the reports of the turn's sub-agents, which end with this process; as long as it may take."""
    try:
        async with asyncio.timeout(ask.timeout_s or None):
            return await house.subagents.over(run.session_key)
    except TimeoutError:
        return []


def thinking(level: str) -> str:
    """As an argument's type: a level that there is, or none. Raises ArgumentTypeError, which names them."""
    meant = words.level(level) if level else ""
    if meant is None:
        raise argparse.ArgumentTypeError(words.unknown(level))
    return meant


def _turn(place: Place, ask: Ask) -> Any:
    keys = importlib.import_module("garra.core.keys")
    runs = importlib.import_module("garra.runs.run")
    agent = ask.agent or (keys.agent_of(ask.session_key) if ask.session_key.startswith("agent:") else "")
    agent = keys.agent_id(agent or default_agent(place.config))
    session = place.config.get("session")
    main = session.get("mainKey") if isinstance(session, dict) else None
    return runs.Turn(
        run_id=quick.fresh(),
        session_key=keys.canonical(ask.session_key, agent, main if isinstance(main, str) and main else "main"),
        agent_id=agent,
        text=ask.message,
        model=ask.model or None,
        thinking=ask.thinking or None,
        timeout_s=ask.timeout_s,
        session_id=keys.session_id(ask.session_id) if ask.session_id else None,
    )


def default_agent(config: Mapping[str, Any]) -> str:
    """The agent meant when none is named: the one marked so, else the first, else `main`."""
    agents = config.get("agents")
    rows = agents.get("list") if isinstance(agents, dict) else None
    named = [row for row in rows or () if isinstance(row, dict) and isinstance(row.get("id"), str)]
    marked = [row for row in named if row.get("default") is True]
    return str((marked or named or [{"id": "main"}])[0]["id"])


def _fault(ended: Any) -> str:
    if ended.ending == "ok":
        return ""
    if ended.failure is not None:
        return str(ended.failure.message)
    return str(ended.reply or {"aborted": "stopped", "timeout": "no answer in time"}.get(ended.ending, ended.ending))


def message_of(given: str, file: str, read: Any) -> str:
    """The message: given, or a file's text (`-`: standard input, by `read`). Raises UserError when there is none."""
    if file:
        given = read() if file == "-" else _file(file)
    cleaned = given.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    if not cleaned.strip():
        raise UserError("no message: give one with -m TEXT, or --message-file FILE (- is standard input)")
    return cleaned


def _file(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError as fault:
        raise UserError(f"{path}: {fault.strerror}") from fault
