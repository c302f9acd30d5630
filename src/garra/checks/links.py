"""Is every chat account connected, and did every message get there. Only a running gateway can tell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from garra.checks.finding import Finding, Ground
from garra.client import quick, target
from garra.config.peek import peek
from garra.core.errors import GarraError
from garra.io.lock import holder

WAIT_S = 5.0


def check(ground: Ground) -> list[Finding]:
    if holder(ground.paths.lock) is None:
        return []
    try:
        where = target.find(ground.paths, ground.env, peek(ground.paths, ground.env))
        told = quick.call(where, "status", timeout_s=WAIT_S)
    except GarraError as fault:
        how = "its log says more: garra logs"
        return [Finding("channels", "warn", f"the gateway could not be asked: {fault.message}", "", how)]
    return [*_links(told.get("links") or {}), *_messages(told.get("messages") or {})]


def _links(told: Mapping[str, Any]) -> list[Finding]:
    how = "garra channels status shows all of them"
    found = [
        Finding("channels", "bad", f"{one['channel']}/{one['accountId']} is not connected: {one['message']}", "", how)
        for one in told.get("troubles") or ()
    ]
    count = told.get("connected")
    well = Finding("channels", "ok", f"{count} chat account{'' if count == 1 else 's'} connected")
    return found or ([well] if count else [])


def _messages(counted: Mapping[str, int]) -> list[Finding]:
    ways = (("dead", "given up"), ("unsure", "perhaps not delivered"))
    told = [f"{counted[name]} {words}" for name, words in ways if counted.get(name)]
    how = "garra messages list shows which, garra messages show ID why"
    return [Finding("messages", "warn", f"messages: {', '.join(told)}", "", how)] if told else []
