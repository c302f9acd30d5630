"""`garra security audit`: where this installation stands open, and why that matters.

Ends with 1 where anything critical was found (after `--fix`: is still found), with 0 otherwise, warnings or not.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Iterator, Sequence
from typing import Any

from garra.faces.cli import output, parsing, place
from garra.faces.cli.output import Tone
from garra.faces.cli.place import Place

TONES: dict[str, Tone] = {"critical": "bad", "warn": "warn", "info": "quiet"}
FIX = "open group policies become lists, folders and files are closed to others; nothing else is changed"
DEEP = "also ask the running gateway, read the code of plugins and skills, and ask the container engine"
AUTH = "judge the gateway as if it were started with this mode, and with --token or --password"
EPILOG = "Ends with 1 where anything is critical, else with 0. Every check: docs/reference/security-checks.md"


def run(arguments: Sequence[str]) -> int:
    asked = _parser().parse_args(list(arguments))
    here = place.here()
    report, done = audited(here, asked)
    if asked.json:
        output.say_json(_told(report, done))
    else:
        output.say("\n".join(lines(report, done)))
    code: int = report.code
    return code


def _parser() -> argparse.ArgumentParser:
    parser = parsing.parser("security", "Where this installation stands open.")
    doing = parser.add_subparsers(dest="doing", metavar="COMMAND", required=True)
    audit = doing.add_parser("audit", help="judge configuration, files, channels, tools, plugins", epilog=EPILOG)
    parsing.with_target(parsing.with_json(audit))
    audit.add_argument("--deep", action="store_true", help=DEEP)
    audit.add_argument("--fix", action="store_true", help=FIX)
    audit.add_argument("--auth", choices=("token", "password", "none"), help=AUTH)
    return parser


def audited(here: Place, asked: argparse.Namespace) -> tuple[Any, tuple[Any, ...]]:
    """The report, and what was done before it. Loads the configuration and the checks."""
    finding = importlib.import_module("garra.checks.finding")
    load = importlib.import_module("garra.config.load")
    gather = importlib.import_module("garra.checks.security.gather")
    audit = importlib.import_module("garra.checks.security.audit")

    def look() -> Any:
        found = finding.Ground(here.paths, here.env, load.load(here.paths, here.env))
        deep = importlib.import_module("garra.checks.security.deep").look(found, asked) if asked.deep else None
        return audit.audit(gather.gather(found, deep, given(asked)))

    report = look()
    if not asked.fix:
        return report, ()
    mend = importlib.import_module("garra.checks.security.mend")
    done: tuple[Any, ...] = mend.mend(here.paths, here.env, mend.fixes(report.findings), _now())
    return look() if done else report, done


def given(asked: argparse.Namespace) -> Any:
    """What the gateway is said to be started with; None where nothing is said."""
    if not asked.auth:
        return None
    gate = importlib.import_module("garra.config.gate")
    secret = importlib.import_module("garra.core.secret").Secret
    return gate.Gate(asked.auth, secret(asked.token), secret(asked.password))


def _now() -> int:
    now: int = importlib.import_module("garra.io.clock").SystemClock().now_ms()
    return now


def _told(report: Any, done: tuple[Any, ...]) -> Any:
    audit = importlib.import_module("garra.checks.security.audit")
    told = audit.told(report, _now())
    return {"fix": importlib.import_module("garra.checks.security.mend").told(done), "report": told} if done else told


def lines(report: Any, done: tuple[Any, ...]) -> Iterator[str]:
    """The report for a person: the worst first, each with what is wrong and how it is mended."""
    if done:
        yield from importlib.import_module("garra.checks.security.mend").lines(done)
        yield ""
    for one in report.findings:
        mark = output.painted(f"{one.severity:<8}", TONES[one.severity])
        yield f"{mark}  {output.harmless(one.title)}  ({one.check_id})"
        yield f"          {output.harmless(one.detail)}"
        if one.remediation and one.severity != "info":
            yield f"          {output.painted(one.remediation, 'quiet')}"
    counts = report.summary
    said = f"{counts['critical']} critical, {counts['warn']} to look at, {counts['info']} to know"
    yield f"\n{said}{f', {len(report.suppressed)} accepted and not shown' if report.suppressed else ''}."
