"""`garra health`: the gateway's own view of its health."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
        with quick.Gateway(target, timeout_s=asked.timeout / 1000) as gateway:
            health = gateway.call("health", timeout_s=asked.timeout / 1000)
            now = {} if asked.json else gateway.call("status", timeout_s=asked.timeout / 1000)
    except Unreachable as fault:
        if asked.json:
            output.say_json(transport_error(fault, target))
        output.note(f"garra: {fault.message}")
        return 1
    if asked.json:
        output.say_json(health)
    else:
        output.say(words(health, now))
    return 0 if health.get("ok", True) else 1


def words(health: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """What a person wants to know of it; what changes fast is taken from `now`, the answer to `status`."""
    good = health.get("ok", True)
    troubles = (now.get("links") or {}).get("troubles") or []
    given_up = (now.get("messages") or {}).get("dead")
    lines = [_state(good=good, whole=not troubles and not given_up)]
    sessions = (now.get("sessions") or health.get("sessions") or {}).get("count")
    if sessions is not None:
        lines.append(f"sessions  {sessions}")
    lines += [f"agent     {agent.get('agentId')}" for agent in health.get("agents") or []]
    for one in troubles:
        text = output.harmless(f"{one['channel']}/{one['accountId']} is not connected: {one['message']}")
        lines.append(output.painted(f"channel   {text}", "warn"))
    if given_up:
        lines.append(output.painted(f"messages  {given_up} given up (garra messages list)", "warn"))
    for error in (health.get("plugins") or {}).get("errors") or []:
        lines.append(output.painted(f"plugin    {error}", "warn"))
    return "\n".join(lines)


def _state(*, good: bool, whole: bool) -> str:
    if not good:
        return output.painted("not well", "bad")
    return output.painted("well", "accent") if whole else output.painted("it runs, but not all of it", "warn")
