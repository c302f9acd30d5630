"""`garra health`: the gateway's own view of its health."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from garra.client import quick
from garra.client.socket import Unreachable
from garra.faces.cli import output, parsing, place
from garra.faces.cli.gateway_call import transport_error


def run(arguments: Sequence[str]) -> int:
    parser = parsing.with_target(parsing.with_json(parsing.parser("health", "The gateway's own view of its health.")))
    parser.add_argument("--timeout", type=int, default=10_000, metavar="MS", help="how long to wait (10000)")
    asked = parser.parse_args(list(arguments))
    target = place.here().target(parsing.wanted(asked))
    try:
        health = quick.call(target, "health", timeout_s=asked.timeout / 1000)
    except Unreachable as fault:
        if asked.json:
            output.say_json(transport_error(fault, target))
        output.note(f"garra: {fault.message}")
        return 1
    if asked.json:
        output.say_json(health)
    else:
        output.say(words(health))
    return 0 if health.get("ok", True) else 1


def words(health: dict[str, Any]) -> str:
    """What a person wants to know of it."""
    good = health.get("ok", True)
    lines = [output.painted("well", "accent") if good else output.painted("not well", "bad")]
    sessions = (health.get("sessions") or {}).get("count")
    if sessions is not None:
        lines.append(f"sessions  {sessions}")
    lines += [f"agent     {agent.get('agentId')}" for agent in health.get("agents") or []]
    for error in (health.get("plugins") or {}).get("errors") or []:
        lines.append(output.painted(f"plugin    {error}", "warn"))
    return "\n".join(lines)
