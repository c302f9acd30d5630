"""`garra gateway probe`, and most of `garra gateway status`: is a gateway there, and does it let us in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from garra.client import quick
from garra.client.socket import own, reason
from garra.client.target import Target, Wanted
from garra.core.errors import GarraError
from garra.faces.cli import output, parsing, place
from garra.faces.cli.place import Place
from garra.io.clock import SystemClock


def run(arguments: Sequence[str]) -> int:
    parser = parsing.with_target(
        parsing.with_json(parsing.parser("gateway probe", "Say whether a gateway is there and lets us in."))
    )
    asked = parser.parse_args(list(arguments))
    report, words = told(place.here(), parsing.wanted(asked))
    if asked.json:
        output.say_json(report)
    else:
        output.say(words)
    return 0 if report["ok"] else 1


def told(here: Place, wanted: Wanted) -> tuple[dict[str, Any], str]:
    """What is found of a gateway: as JSON, and in words."""
    target = here.target(wanted)
    found = probe(target)
    report = {"ok": found["reachable"], "gateway": {"url": target.url, "urlSource": target.source}, **found}
    report["process"] = here.holder
    return report, _words(report)


def probe(target: Target, timeout_s: float = 5.0) -> dict[str, Any]:
    """Try to get in: `{reachable, latencyMs, version, scopes}` or `{reachable, error}`. Raises nothing."""
    clock = SystemClock()
    began = clock.monotonic()
    try:
        with quick.Gateway(target, timeout_s=timeout_s) as gateway:
            hello = gateway.hello
    except GarraError as fault:
        return {"reachable": False, "error": {"code": fault.code, "message": fault.message, "details": fault.details}}
    server, auth = hello.get("server") or {}, hello.get("auth") or {}
    return {
        "reachable": True,
        "latencyMs": round((clock.monotonic() - began) * 1000),
        "version": server.get("version"),
        "scopes": auth.get("scopes"),
        "uptimeMs": (hello.get("snapshot") or {}).get("uptimeMs"),
    }


def _words(report: dict[str, Any]) -> str:
    url, process = report["gateway"]["url"], report["process"]
    who = f", process {process['pid']}" if process and "pid" in process else ""
    if report["reachable"]:
        good = output.painted("answers", "accent")
        return f"Gateway at {url} {good} in {report['latencyMs']} ms (version {report['version']}{who})"
    bad = output.painted("does not answer", "bad")
    start = "\nStart one with: garra gateway run" if own(url) and not who else ""
    return f"Gateway at {url} {bad}{who}: {reason(report['error']['message'], url)}{start}"
