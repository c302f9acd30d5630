"""`garra status`: this installation at a glance, in a tenth of a second."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import garra
from garra.client import quick
from garra.client.socket import own, reason
from garra.client.target import Wanted
from garra.core.errors import GarraError, UserError
from garra.faces.cli import output, parsing, place
from garra.faces.cli.place import Place

TIMEOUT_S = 5.0
TROUBLES = 4
"""So many accounts that are not connected are told of."""
TRUST = "one owner, or a few who trust each other: a gateway is no wall between them (garra security audit)"


def run(arguments: Sequence[str]) -> int:
    parser = parsing.with_target(parsing.with_json(parsing.parser("status", "This installation at a glance.")))
    parser.add_argument("--all", action="store_true", help="also what the gateway says about itself, whole")
    asked = parser.parse_args(list(arguments))
    here = place.here()
    report = gather(here, parsing.wanted(asked), whole=asked.all or asked.json)
    if asked.json:
        output.say_json(report)
    else:
        output.say(words(report, here))
        if asked.all:
            output.say_json({name: report[name] for name in ("health", "status") if name in report})
    return 0


def gather(here: Place, wanted: Wanted | None = None, *, whole: bool = False) -> dict[str, Any]:
    """Everything known without loading the gateway's own code. Raises nothing for a gateway that is not there."""
    state = {
        "path": str(here.paths.state),
        "exists": here.paths.state.is_dir(),
        "config": str(here.paths.config_file),
        "configured": here.paths.config_file.is_file(),
        "fault": here.fault or _invalid(here) or None,
    }
    model = primary_model(here.config)
    report: dict[str, Any] = {"version": garra.__version__, "state": state, "model": model}
    report["keyMissing"] = model is not None and _no_key(here, model)
    try:
        target = here.target(wanted)
    except UserError as fault:
        return {**report, "gateway": {"reachable": False, "error": fault.message}}
    report["gateway"] = {"url": target.url, "urlSource": target.source, "process": here.holder}
    try:
        with quick.Gateway(target, timeout_s=TIMEOUT_S) as gateway:
            report["gateway"] |= {"reachable": True, "version": (gateway.hello.get("server") or {}).get("version")}
            if whole:
                for method in ("health", "status"):
                    with suppress(quick.Refused):
                        report[method] = gateway.call(method, timeout_s=TIMEOUT_S)
            else:
                with suppress(quick.Refused):
                    report["status"] = gateway.call("status", timeout_s=TIMEOUT_S)
    except GarraError as fault:
        report["gateway"] |= {"reachable": False, "error": fault.message, "details": fault.details}
    return report


def primary_model(config: Mapping[str, Any]) -> str | None:
    """The configured model, `provider/model`; None when the first run picks one by itself."""
    value: Any = config
    for key in ("agents", "defaults", "model"):
        value = value.get(key) if isinstance(value, dict) else None
    if isinstance(value, dict):
        value = value.get("primary")
    return value if isinstance(value, str) and value else None


def words(report: Mapping[str, Any], here: Place) -> str:
    gateway, state = report["gateway"], report["state"]
    config = state["config"] if state["configured"] else "none yet (garra onboard writes one)"
    if state["fault"]:
        config += f"\n          {output.painted('not valid', 'bad')}: {output.harmless(state['fault'])}"
        config += f"\n          {_mending(here)}"
    told = report.get("status") or {}
    sessions = (told.get("sessions") or {}).get("count")
    lines = [
        f"Garra     {report['version']}",
        f"Gateway   {_link(gateway)}",
        f"Model     {_model(report)}",
        *([f"Sessions  {sessions}"] if sessions is not None else []),
        *(["Work      paused: nothing begins until `garra resume`"] if told.get("paused") else []),
        *_links(told.get("links") or {}, here),
        *_messages(told.get("messages") or {}),
        f"Trust     {TRUST}",
        f"State     {state['path']}",
        f"Config    {config}",
    ]
    if _absent(gateway):
        lines.append(
            output.painted(
                f"Start the gateway with `{here.command} gateway run`, or just talk: {here.command}", "quiet"
            )
        )
    return "\n".join(lines)


def _invalid(here: Place) -> str:
    """What is wrong with a file that can be read; empty for a good one.

    The text that was good last time is good still. Only another one is looked at with all the types, which takes time.
    """
    if not here.paths.config_file.is_file() or _same(here.paths.config_file, here.paths.last_good):
        return ""
    load = importlib.import_module("garra.config.load")
    found = load.load(here.paths, here.env)
    if found.valid:
        with suppress(OSError):  # a state folder that cannot be written keeps no copy
            load.keep(here.paths, found)
    return str(found.issues[0]) if found.issues else ""


def _same(one: Path, other: Path) -> bool:
    try:
        return one.read_bytes() == other.read_bytes()
    except OSError:
        return False


def _mending(here: Place) -> str:
    mends = f"{here.command} repair mends it"
    if not here.paths.last_good.is_file():
        return f"there is no last good one: the defaults serve; {mends}"
    return f"the last good one serves; {mends}, {here.command} config restore brings that one back"


def _links(told: Mapping[str, Any], here: Place) -> list[str]:
    """The chat accounts: how many are connected, and the first that are not, with why."""
    if not told.get("accounts"):
        return []
    troubles = told.get("troubles") or []
    lines = [f"Channels  {told['connected']} of {told['accounts']} connected"]
    for one in troubles[:TROUBLES]:
        text = output.harmless(f"{one['channel']}/{one['accountId']}: {one['message']}")
        lines.append(f"          {output.painted(text, 'bad')}")
    if len(troubles) > TROUBLES:
        lines.append(f"          {len(troubles) - TROUBLES} more: {here.command} channels status")
    return lines


def _messages(counted: Mapping[str, int]) -> list[str]:
    """What is on its way, and what did not get there; nothing where all is well."""
    ways = (
        ("waiting", "waiting"),
        ("working", "being answered"),
        ("sending", "to be sent"),
        ("unsure", "perhaps not delivered"),
        ("dead", "given up"),
    )
    told = [f"{counted[name]} {words}" for name, words in ways if counted.get(name)]
    bad = any(counted.get(name) for name in ("unsure", "dead"))
    return [f"Messages  {', '.join(told)}{' (garra messages list)' if bad else ''}"] if told else []


def _no_key(here: Place, model: str) -> bool:
    from garra.faces.cli.key_here import missing  # noqa: PLC0415 - only where a model is set

    return missing(here, model)


def _model(report: Mapping[str, Any]) -> str:
    if not report["model"]:
        return "not set: the first turn picks one and says which"
    note = output.painted(" (no key here: garra doctor says what to set)", "bad") if report["keyMissing"] else ""
    return f"{report['model']}{note}"


def _link(gateway: Mapping[str, Any]) -> str:
    """Whether the gateway is there, and if not, why that is thought."""
    if gateway["reachable"]:
        return f"{output.painted('running', 'accent')} at {gateway['url']} (version {gateway['version']})"
    if "url" not in gateway:
        return f"not asked: {gateway['error']}"
    why = reason(gateway["error"], gateway["url"])
    if process := gateway.get("process"):
        return output.painted(f"process {process.get('pid')} does not answer", "bad") + f": {why}"
    if not _nobody(gateway):
        return f"not to be used: {why}"
    return f"not running at {gateway['url']} ({why})"


def _nobody(gateway: Mapping[str, Any]) -> bool:
    return (gateway.get("details") or {}).get("kind") == "refused"


def _absent(gateway: Mapping[str, Any]) -> bool:
    """Whether it could be started here."""
    there = gateway["reachable"] or gateway.get("process") or "url" not in gateway
    return not there and own(gateway["url"]) and _nobody(gateway)
