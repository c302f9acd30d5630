"""`garra gateway run`: the resident process, in the foreground."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from garra import app
from garra.core.errors import UserError
from garra.faces.cli import output, parsing, place
from garra.faces.cli.place import Place
from garra.io.process import respawn

DRAIN_S = 330.0
"""A gateway that is told to end lets running work end first, up to 315 seconds."""

BINDS = ("loopback", "lan", "auto", "custom", "tailnet")


def run(arguments: Sequence[str]) -> int:
    parser = parsing.parser("gateway run", "Run the gateway in the foreground, until it is stopped.")
    parser.add_argument("--port", type=int, metavar="N", help="listen here instead of gateway.port (18789)")
    parser.add_argument("--bind", choices=BINDS, help="who can reach it: loopback is this machine alone")
    parser.add_argument("--token", metavar="TEXT", help="the shared token, instead of gateway.auth.token")
    parser.add_argument("--force", action="store_true", help="end another gateway of ours that holds the port")
    parser.add_argument("--verbose", action="store_true", help="log more, and to standard error")
    parser.add_argument(
        "--allow-unconfigured", action="store_true", help="start without a configuration (it always may)"
    )
    parser.add_argument(
        "--restart", action="store_true", help="begin again when it dies; for where no service manager runs"
    )
    asked = parser.parse_args(list(arguments))
    if asked.port is not None and not 0 <= asked.port < 65_536:
        raise UserError(f"--port: {asked.port} is no port; a port is a number from 1 to 65535")
    here = place.here()
    if asked.restart and respawn.wanted(here.env):
        care = respawn.Care(patience_s=DRAIN_S, again=True, tell=lambda line: output.note(f"garra: {line}"))
        return respawn.watch([sys.executable, "-P", "-m", "garra", "gateway", "run", *arguments], here.env, care)
    return app.serve(
        here.paths,
        here.env,
        port=asked.port,
        bind=asked.bind or _bind(here),
        token=asked.token,
        force=asked.force,
        verbose=asked.verbose,
    )


def _bind(here: Place) -> str | None:
    """Who can reach it, as the environment says: an image cannot know what its configuration says. Raises UserError."""
    said = here.paths.variable(here.env, "GATEWAY_BIND")
    if said and said not in BINDS:
        raise UserError(f"{here.paths.prefix}_GATEWAY_BIND is {said[:40]!r}; it can be {', '.join(BINDS)}")
    return said or None
