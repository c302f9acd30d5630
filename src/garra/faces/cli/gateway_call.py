"""`garra gateway call METHOD`: one call, its answer as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from garra.client import quick
from garra.client.socket import Unreachable
from garra.client.target import Target
from garra.core.errors import UserError
from garra.faces.cli import output, parsing, place

SCOPES = tuple(f"operator.{name}" for name in ("admin", "read", "write", "approvals", "questions", "pairing"))


def run(arguments: Sequence[str]) -> int:
    parser = parsing.with_target(parsing.with_json(parsing.parser("gateway call", "Call one method of the gateway.")))
    parser.add_argument("method", help="such as health, status, sessions.list")
    parser.add_argument("--params", default="{}", metavar="JSON", help="the method's parameters, a JSON object")
    parser.add_argument("--timeout", type=int, default=30_000, metavar="MS", help="how long to wait (30000)")
    parser.add_argument("--expect-final", action="store_true", help="of two answers, wait for the last")
    asked = parser.parse_args(list(arguments))
    target = place.here().target(parsing.wanted(asked))
    params = _object(asked.params)
    try:
        payload = quick.call(
            target, asked.method, params, scopes=SCOPES, timeout_s=asked.timeout / 1000, last=asked.expect_final
        )
    except quick.Refused as fault:
        output.note(f"Gateway call failed: {fault.message}")
        return 1
    except Unreachable as fault:
        if asked.json:
            output.say_json(transport_error(fault, target))
        output.note(f"Gateway call failed: {fault.message}")
        return 1
    if not asked.json:
        output.say(output.painted(f"Gateway call: {asked.method}", "quiet"))
    output.say_json(payload)
    return 0


def transport_error(fault: Unreachable, target: Target) -> dict[str, Any]:
    """The JSON that says that there was no conversation."""
    details = fault.details or {}
    return {
        "ok": False,
        "error": {
            "type": "gateway_transport_error",
            "kind": details.get("kind", "closed"),
            "message": fault.message,
            "reason": details.get("reason") or fault.message,
        },
        "gateway": {"url": target.url, "urlSource": target.source},
    }


def _object(text: str) -> Mapping[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as fault:
        raise UserError(f"--params is no JSON: {fault}") from fault
    if not isinstance(found, dict):
        raise UserError("--params has to be a JSON object, such as '{\"limit\": 5}'")
    return found
