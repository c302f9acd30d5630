"""`garra agent -m TEXT`: one message, one answer; with --json exactly one JSON object on standard output."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from typing import Any

from garra.client import quick
from garra.core.errors import GarraError, UserError
from garra.faces.cli import output, parsing, place, turn
from garra.faces.cli.output import Answer
from garra.faces.cli.place import Place
from garra.faces.cli.turn import Ask, Terminated, thinking

VALUES = {"-m": "--message", "-t": "--to"} | {
    name: name
    for name in (
        "--message",
        "--message-file",
        "--agent",
        "--session-key",
        "--session-id",
        "--model",
        "--thinking",
        "--to",
    )
}
TIMEOUT_S = 600
_VARIABLE = re.compile(r"\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b")


def run(arguments: Sequence[str]) -> int:
    asked = _parser().parse_args(parsing.joined(arguments, VALUES))
    with output.reserved() as answer:
        try:
            return _answered(place.here(), asked, answer)
        except GarraError as fault:
            return failed(fault, answer if asked.json else None)
        except Terminated:
            output.note("garra: stopped before the answer came; the conversation is kept")
            return turn.TERMINATED


def _parser() -> argparse.ArgumentParser:
    parser = parsing.with_json(
        parsing.parser(
            "agent",
            "Say one message to an agent and print its answer.",
            epilog="Without --local the running gateway answers. With it the answer is made in this process;\n"
            "when a gateway runs on the same folder, it is asked instead, and the output is the same.",
        )
    )
    parser.add_argument("-m", "--message", default="", metavar="TEXT", help="what to say; may begin with -")
    parser.add_argument("--message-file", default="", metavar="FILE", help="read it from a file; - is standard input")
    parser.add_argument("--agent", metavar="ID", help="which agent (main)")
    parser.add_argument("--session-key", metavar="KEY", help="which conversation; the same key goes on where it was")
    parser.add_argument("--session-id", metavar="ID", help="a conversation by the id of its transcript")
    parser.add_argument("-t", "--to", metavar="WHO", help="the conversation with this person")
    parser.add_argument("--model", default="", metavar="REF", help="another model for this turn, provider/model")
    parser.add_argument("--thinking", type=thinking, default="", metavar="LEVEL", help="off to xhigh")
    parser.add_argument("--timeout", type=seconds, default=TIMEOUT_S, metavar="S", help="seconds; 0 is no limit (600)")
    parser.add_argument("--local", action="store_true", help="answer in this process, without a gateway")
    parser.add_argument("--deliver", action="store_true", help="also send the answer to the conversation's channel")
    return parsing.with_target(parser)


def seconds(text: str) -> float:
    seconds = float(text)
    if seconds < 0:
        raise ValueError
    return seconds


def _answered(here: Place, asked: argparse.Namespace, answer: Answer) -> int:
    ask = _ask(asked)
    owner = here.holder if asked.local else None
    if asked.local and owner is None:
        went = turn.embedded(here, ask)
        whole: Any = went.blob
    else:
        whole = _through(here, asked, ask)
        went = turn.outcome(whole)
        whole = went.blob if asked.local else whole
    if went.ending != "ok":
        raise UserError(went.fault)
    if asked.json:
        answer.json(whole)
    else:
        answer.text(went.text)
        if line := turn.rerouted(went.blob):
            output.note(f"garra: {line}")
    return 0


def _through(here: Place, asked: argparse.Namespace, ask: Ask) -> dict[str, Any]:
    """The gateway's answer; what it lacks and this shell has is told apart."""
    try:
        return turn.through(here.target(parsing.wanted(asked)), ask)
    except quick.Refused as fault:
        lacks = [name for name in _VARIABLE.findall(fault.message) if here.env.get(name)]
        if here.holder is not None and lacks:
            where = f"the gateway that runs here was asked, and has no {lacks[0]} in its environment: start it with it"
            note = {
                "code": fault.code,
                "message": f"{fault.message} ({where})",
                "details": fault.details,
                "retryable": fault.retryable,
            }
            raise quick.Refused(note, fault.payload) from fault
        raise


def _ask(asked: argparse.Namespace) -> Ask:
    for name in ("agent", "session_key", "session_id", "to"):
        value = getattr(asked, name)
        if value is not None and not value.strip():
            raise UserError(f"--{name.replace('_', '-')} is empty: leave it out, or name one")
    if asked.deliver:
        raise UserError("--deliver: no channel is set up to deliver to; leave it out")
    return Ask(
        message=turn.message_of(asked.message, asked.message_file, lambda: sys.stdin.read()),
        agent=asked.agent or "",
        session_key=asked.session_key or asked.to or "",
        session_id=asked.session_id or "",
        model=asked.model,
        thinking=asked.thinking,
        timeout_s=asked.timeout,
    )


def failed(fault: GarraError, answer: Answer | None) -> int:
    """Say why on standard error, and as JSON where JSON was asked for. Gives the exit code."""
    if answer is not None:
        body: dict[str, Any] = {"ok": False}
        if isinstance(fault, quick.Refused) and isinstance(fault.payload, dict) and "runId" in fault.payload:
            body |= {"runId": fault.payload["runId"], "origin": "gateway"}
        details = {"details": fault.details} if fault.details and "attempts" in fault.details else {}
        answer.json({**body, "error": {"type": "cli_error", "message": fault.message, **details}})
    output.note(f"garra: {fault.message}")
    return 1
