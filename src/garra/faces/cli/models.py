"""`garra models`: which models there are, which one answers, who pays for it. Each step is a module of its own."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence

from garra.core.errors import GarraError
from garra.faces.cli import output
from garra.faces.cli.options import Misused
from garra.faces.cli.parsing import parser, unknown
from garra.faces.cli.place import Place, here

STEPS = {
    "status": ("models_status", "which model answers, and how its logins stand (--check, --probe)"),
    "list": ("models_list", "the models that can be used now; --all lists the whole catalog"),
    "set": ("models_choose", "choose the model that answers when nothing else is said"),
    "set-image": ("models_choose", "choose the model that looks at pictures"),
    "aliases": ("models_names", "short names of models: list, add, remove"),
    "fallbacks": ("models_names", "who answers when the first fails: list, add, remove, clear"),
    "image-fallbacks": ("models_names", "the same for pictures"),
    "auth": ("models_auth", "logins of providers: add, login, list, order, logout, …"),
    "probe": ("models_probe", "one tiny live request to each model: does it answer, and how fast"),
    "refresh": ("models_refresh", "ask the servers which models they have, and keep the answer"),
    "scan": ("models_scan", "free models of OpenRouter that could stand in"),
    "install-local": ("models_local", "fetch a model that runs on this machine; without a name, list them"),
}
"""Each step's module, whose `run(step, words, place)` gives the exit code."""


def run(arguments: Sequence[str], place: Place | None = None) -> int:
    """Exit code 0 when done, 1 when it could not be done, 2 when the command line is wrong."""
    words = list(arguments)
    if words[:1] in (["-h"], ["--help"]):
        return _help()
    if words and words[0] not in STEPS and not words[0].startswith("-"):
        raise Misused(unknown(words[0], "models", STEPS))
    step = words.pop(0) if words and words[0] in STEPS else "status"
    doing: Callable[[str, Sequence[str], Place], int] = importlib.import_module(f"garra.faces.cli.{STEPS[step][0]}").run
    try:
        return doing(step, words, place or here())
    except SystemExit as end:
        return int(end.code or 0)
    except GarraError as fault:
        if "--json" in words:
            output.say_json({"ok": False, "error": {"type": "cli_error", "message": fault.message}})
        else:
            output.note(f"garra: {fault.message}")
        return 2 if isinstance(fault, Misused) else 1
    except KeyboardInterrupt:
        output.note("stopped; what was fetched is kept and the next try goes on from there")
        return 130


def _help() -> int:
    width = max(map(len, STEPS)) + 2
    lines = "\n".join(f"  {name:<{width}}{about}" for name, (_, about) in STEPS.items())
    told = parser("models", "Which models there are, which one answers, who pays for it.",
                  epilog=f"commands (garra models COMMAND --help says more):\n{lines}")  # fmt: skip
    told.print_help()
    return 0
