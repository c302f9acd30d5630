"""`garra stop --all`: everything the gateway does ends at once; with --pause nothing begins until `garra resume`."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Sequence
from typing import Any

from garra.client import quick
from garra.client.socket import Unreachable
from garra.core.errors import Forbidden, UserError
from garra.faces.cli import output, parsing, place

SCOPES = ("operator.admin",)


def run(arguments: Sequence[str]) -> int:
    about = "Stop all runs, what waits for them, sub-agents, commands and the browser, at once."
    parser = parsing.with_target(parsing.with_json(parsing.parser("stop", about)))
    parser.add_argument("--all", action="store_true", help="yes, everything")
    parser.add_argument("--pause", action="store_true", help="and begin nothing until `garra resume`; messages wait")
    asked = parser.parse_args(list(arguments))
    if not asked.all:
        raise UserError("say --all: everything stops. One conversation is stopped by /stop in its chat")
    found = called(asked, "work.stop", {"pause": True} if asked.pause else {})
    if asked.json:
        output.say_json(found)
    else:
        output.say(output.harmless(found["text"]))
    return 0


def called(asked: Any, method: str, params: dict[str, Any]) -> dict[str, Any]:
    """The gateway's answer; a pause is ended where none runs, too. Raises UserError for `work.stop` there."""
    here = place.here()
    if method == "work.resume" and here.agents:
        raise Forbidden("an agent may not let work go on: a person does, in another terminal")
    try:
        found: dict[str, Any] = quick.call(here.target(parsing.wanted(asked)), method, params, scopes=SCOPES)
    except Unreachable as fault:
        if here.holder or asked.url:
            raise
        if method == "work.resume":
            offline = importlib.import_module("garra.app.pause_offline")  # the store; only where no gateway runs
            return {"resumed": asyncio.run(offline.resume(here.paths))}
        raise UserError(f"No gateway runs here, so nothing is at work ({fault.message}).") from None
    return found
