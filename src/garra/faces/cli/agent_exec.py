"""`garra agent exec TASK`: one task in this process, without a gateway, with an exit code for scripts."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from garra.core.errors import GarraError, UserError
from garra.faces.cli import output, parsing, place, turn
from garra.faces.cli.place import Place
from garra.faces.cli.turn import Ask, Outcome, Terminated, thinking

VALUES = {name: name for name in ("--message-file", "--agent", "--model", "--thinking", "--cwd", "--state-dir")}
FAILED, LATE = 1, 2


def run(arguments: Sequence[str]) -> int:
    asked = _parser().parse_args(parsing.joined(arguments, VALUES))
    with output.reserved() as answer:
        try:
            with _place(asked) as here:
                went = turn.embedded(here, _ask(asked), _folder(asked.cwd or ".", "--cwd"))
        except GarraError as fault:
            went = Outcome("error", {"payloads": [], "meta": {}}, fault.message)
        except Terminated:
            return turn.TERMINATED
        if asked.json:
            answer.json(envelope(went))
        elif went.text:
            answer.text(went.text)
        if went.fault:
            output.note(f"garra: {went.fault}")
        return {"ok": 0, "timeout": LATE}.get(went.ending, FAILED)


def _parser() -> argparse.ArgumentParser:
    parser = parsing.with_json(
        parsing.parser(
            "agent exec",
            "Run one task without a gateway: exit code 0 when it went well, 1 for a failure, 2 when time ran out.",
            epilog="The conversation is thrown away afterwards, unless --state-dir keeps it.",
        )
    )
    parser.add_argument("message", nargs="?", default="", help="the task")
    parser.add_argument("--message-file", default="", metavar="FILE", help="read it from a file; - is standard input")
    parser.add_argument("--agent", default="", metavar="ID", help="which agent")
    parser.add_argument("--model", default="", metavar="REF", help="which model, provider/model")
    parser.add_argument("--thinking", type=thinking, default="", metavar="LEVEL", help="off to xhigh")
    parser.add_argument("--timeout", type=float, default=600.0, metavar="S", help="seconds; 0 is no limit (600)")
    parser.add_argument("--cwd", default="", metavar="DIR", help="the folder to work in (this one)")
    parser.add_argument("--state-dir", default="", metavar="DIR", help="keep the conversation here; must exist")
    return parser


def _ask(asked: argparse.Namespace) -> Ask:
    return Ask(
        message=turn.message_of(asked.message, asked.message_file, lambda: sys.stdin.read()),
        agent=asked.agent,
        model=asked.model,
        thinking=asked.thinking,
        timeout_s=asked.timeout,
    )


def _folder(text: str, option: str) -> Path:
    folder = Path(text).absolute()
    if not folder.is_dir():
        raise UserError(f"{option}: there is no folder {folder}")
    return folder


@contextmanager
def _place(asked: argparse.Namespace) -> Iterator[Place]:
    here = place.here()
    if asked.state_dir:
        yield replace(here, paths=replace(here.paths, state=_folder(asked.state_dir, "--state-dir")))
        return
    with TemporaryDirectory(prefix="garra-exec-") as folder:
        yield replace(here, paths=replace(here.paths, state=Path(folder)))


def envelope(went: Outcome) -> dict[str, Any]:
    """What `--json` prints; `usage` is left out when no model was asked."""
    meta: Mapping[str, Any] = went.blob.get("meta") or {}
    agent: Mapping[str, Any] = meta.get("agentMeta") or {}
    usage = agent.get("usage")
    body = {
        "ok": went.ending == "ok",
        "status": went.ending if went.ending in {"ok", "timeout"} else "error",
        "final": went.text,
        "payloads": list(went.blob.get("payloads", ())),
        **({"usage": usage, "costUsd": (usage.get("cost") or {}).get("total")} if usage else {}),
        "codeModeEngaged": False,
        "assistantTurns": agent.get("assistantTurns", 0),
        "bridgeCalls": {"search": 0, "describe": 0, "call": 0},
        "model": agent.get("model") or None,
        "provider": agent.get("provider") or None,
        "sessionId": agent.get("sessionId"),
    }
    return {**body, "error": {"message": went.fault, "kind": body["status"]}} if went.fault else body
