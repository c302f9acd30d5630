"""`garra gateway install|status|start|stop|restart|uninstall`, and `garra daemon`, which is the same."""

from __future__ import annotations

import importlib
import os
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from garra.core.errors import Unavailable, UserError
from garra.faces.cli import output, parsing, place
from garra.faces.cli.options import Misused
from garra.faces.cli.place import Place
from garra.io.clock import SystemClock

if TYPE_CHECKING:
    from garra.domains.upkeep.service import Installed

WAIT_S = 60.0
"""How long a restart in place may take, its draining included."""


def install(arguments: Sequence[str]) -> int:
    parser = parsing.parser(
        "gateway install",
        "Make the gateway a service of yours: it starts when you log in, and again when it dies.",
        epilog="Variables that the configuration names, and keys, are kept in gateway.env below the state folder.",
    )
    parsing.with_json(parser).add_argument("--force", action="store_true", help="write it anew where there is one")
    asked, here = parser.parse_args(list(arguments)), place.here()
    found = _service(here)
    state = found.state()
    if state.running and not asked.force:
        return _said(asked.json, found, "installed already, and running")
    holder = here.holder
    if holder is not None and not state.running:
        raise UserError(f"a gateway runs already (process {holder.get('pid')}): stop it, then install the service")
    plan = found.install()
    names = [name for name, _ in found.facts().secrets]
    kept = f"\nKept for it in gateway.env: {', '.join(names)}" if names else ""
    return _said(asked.json, found, f"installed and started{kept}", hint=plan.hint)


def start(arguments: Sequence[str]) -> int:
    found, json = _named("start", "Start the service.", arguments)
    found.start()
    return _said(json, found, "started")


def stop(arguments: Sequence[str]) -> int:
    found, json = _named("stop", "Stop the service; running work is let end.", arguments)
    found.stop()
    return _said(json, found, "stopped")


def uninstall(arguments: Sequence[str]) -> int:
    found, json = _named("uninstall", "Stop the service and remove it; state and configuration stay.", arguments)
    return _said(json, found, "removed" if found.uninstall() else "not installed")


def _named(name: str, about: str, arguments: Sequence[str]) -> tuple[Installed, bool]:
    asked = parsing.with_json(parsing.parser(f"gateway {name}", about)).parse_args(list(arguments))
    return _service(place.here()), asked.json


def restart(arguments: Sequence[str]) -> int:
    parser = parsing.with_json(
        parsing.parser("gateway restart", "Begin anew in place: the port stays open, running work is let end first.")
    )
    parser.add_argument("--safe", action="store_true", help="wait until nothing runs, up to five minutes")
    parser.add_argument("--skip-deferral", action="store_true", help="with --safe: do not wait")
    parser.add_argument("--force", action="store_true", help="through the service manager instead")
    asked, here = parser.parse_args(list(arguments)), place.here()
    found = _service(here)
    holder = here.holder
    if asked.force or holder is None:
        found.restart() if asked.force else found.start()
        return _said(asked.json, found, "restarted" if asked.force else "started: none ran")
    if asked.safe:
        with importlib.import_module("garra.client.quick").Gateway(here.target(), scopes=("operator.admin",)) as wire:
            answer = wire.call("gateway.restart.request", {"safe": True, "skipDeferral": asked.skip_deferral})
        output.say_json(answer) if asked.json else output.say(f"Restart {answer['status']}.")
        return 0
    told = again(here, int(holder["pid"]))
    if asked.json:
        output.say_json({"ok": True, "restart": told})
    else:
        output.say(f"Begun anew: drained in {told['before']['drainMs']} ms, away for {told['awayMs']} ms.")
    return 0


def again(here: Place, pid: int) -> dict[str, Any]:
    """Have the process begin anew; gives what it wrote of it. Raises Unavailable when it is not back in time."""
    handoff = importlib.import_module("garra.domains.upkeep.handoff")
    clock = SystemClock()
    began = clock.now_ms()
    os.kill(pid, signal.SIGUSR1)
    while clock.now_ms() - began < WAIT_S * 1000:
        clock.hold(0.1)
        told: dict[str, Any] = handoff.read(handoff.place(here.paths))
        if told.get("requestedAt", 0) >= began and "after" in told:
            return told
        if here.holder is None and not _alive(pid):
            raise Unavailable("the gateway ended and did not begin anew: see `garra logs`")
    raise Unavailable(f"the gateway did not begin anew within {WAIT_S:.0f} s: see `garra logs`")


def _alive(pid: int) -> bool:
    alive: bool = importlib.import_module("garra.io.files.atomic").alive(pid)
    return alive


def status(arguments: Sequence[str]) -> int:
    probe = importlib.import_module("garra.faces.cli.gateway_probe")
    parser = parsing.parser("gateway status", "Say whether a gateway is there and lets us in, and about its service.")
    asked = parsing.with_target(parsing.with_json(parser)).parse_args(list(arguments))
    here = place.here()
    report, words = probe.told(here, parsing.wanted(asked))
    told = ""
    if not asked.url:
        made = importlib.import_module("garra.domains.upkeep.service")
        found = made.Installed(here.paths, here.env)
        state, plan = found.state(), found.plan()
        report["service"] = made.shown(state, plan)
        running = f"{state.words or 'stopped'}{f', process {state.pid}' if state.pid else ''}"
        told = f"\nService {plan.name}: {running}" if state.installed else ""
    output.say_json(report) if asked.json else output.say(words + told)
    return 0 if report["ok"] else 1


ACTS = {"install": install, "status": status, "start": start, "stop": stop, "restart": restart, "uninstall": uninstall}


def daemon(arguments: Sequence[str]) -> int:
    words = [word for word in arguments if word != "--json"]
    also = ["--json"] * ("--json" in arguments)
    if not words or words[0] in ("-h", "--help"):
        output.say(f"usage: garra daemon {'|'.join(ACTS)}\n\nThe older name of garra gateway {'|'.join(ACTS)}.")
        return 0
    if words[0] not in ACTS:
        raise Misused(parsing.unknown(words[0], "daemon", ACTS))
    return ACTS[words[0]]([*words[1:], *also])


def _service(here: Place) -> Installed:
    """Raises UserError for an agent's own command."""
    if here.agents:
        raise UserError("an agent's commands may not start or stop the gateway: the owner does, in another terminal")
    made: Installed = importlib.import_module("garra.domains.upkeep.service").Installed(
        here.paths, here.env, sys.platform
    )
    return made


def _said(as_json: bool, found: Installed, word: str, hint: str = "") -> int:  # noqa: FBT001 - what was asked
    made = importlib.import_module("garra.domains.upkeep.service")
    plan, state = found.plan(), found.state()
    if as_json:
        output.say_json({"ok": True, "result": word.partition("\n")[0], "service": made.shown(state, plan)})
    else:
        output.say(f"{plan.name}: {word}" + (f"\n{hint}" if hint else ""))
    return 0
