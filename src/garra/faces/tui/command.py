"""`garra chat`: the chat at a terminal, on the gateway that runs, else in this process."""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence

from garra.client import called, quick, target
from garra.client.target import Target, Wanted
from garra.config.paths import Paths, resolve
from garra.config.peek import peek
from garra.core.errors import UserError
from garra.io.env import Environment, read

EXAMPLES = """\
Without options it talks to the gateway that runs on this machine, or, when none does,
to an agent inside this process (--local)."""


def run(arguments: Sequence[str]) -> int:
    import argparse  # noqa: PLC0415 - a bare `garra` needs no parser

    parser = argparse.ArgumentParser(
        prog="garra chat", description="Talk to an agent in this terminal.", epilog=EXAMPLES
    )
    parser.add_argument("--session", default="", metavar="KEY", help="which conversation")
    parser.add_argument("--agent", default="", metavar="ID", help="which agent")
    parser.add_argument("--model", default="", metavar="REF", help="another model for this conversation")
    parser.add_argument("--thinking", default="", metavar="LEVEL", help="how much to think")
    parser.add_argument("--message", default="", metavar="TEXT", help="say this first")
    parser.add_argument("--history-limit", type=int, default=100, metavar="N", help="messages to show (100)")
    parser.add_argument("--local", action="store_true", help="an agent in this process, even when a gateway runs")
    parser.add_argument("--url", default="", help="another gateway (ws://…); needs --token")
    parser.add_argument("--token", default="", help="the gateway's token")
    parser.add_argument("--password", default="", help="the gateway's password")
    asked = parser.parse_args(list(arguments))
    env = read()
    if asked.local and (asked.url or asked.token or asked.password):
        raise UserError("--local talks to no gateway: leave --url, --token and --password out")
    if not (os.isatty(0) and os.isatty(1)):
        garra = called.command(env)
        raise UserError(f'the chat needs a terminal. Without one: echo "…" | {garra}, or {garra} agent -m "…"')
    paths = resolve(env)
    chosen = Wanted(asked.url, asked.token, asked.password)
    there = None if asked.local else gateway(paths, env, chosen)
    window = importlib.import_module("garra.faces.tui.window")  # the terminal library takes half a second to load
    code: int = window.show(paths, env, asked, there and chosen)
    return code


def gateway(paths: Paths, env: Environment, wanted: Wanted) -> Target | None:
    """The gateway to talk to, None when the agent has to live in this process.

    Raises GarraError when a gateway was named, or runs here, and does not let us in.
    """
    found = target.find(paths, env, peek(paths, env), wanted)
    if wanted.url or found.source == "running":
        with quick.Gateway(found):
            return found
    return found if quick.alive(found) else None
