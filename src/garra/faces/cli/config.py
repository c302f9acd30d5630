"""`garra config`: read and change the configuration."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from garra.config import fixed, include
from garra.config.issue import Issue
from garra.config.load import Snapshot, load
from garra.config.write import Writer
from garra.core import dotted, merge
from garra.core.errors import ConfigInvalid, NotFound, UserError
from garra.core.redact import is_reference, sensitive
from garra.faces.cli.parsing import Parser
from garra.faces.cli.place import Place, here
from garra.io.files import atomic

if TYPE_CHECKING:
    from garra.config.sections.lookup import Place as Spot

Step = Callable[[argparse.Namespace, Place], int]


def run(arguments: Sequence[str]) -> int:
    """Exit code 0 when done, 1 when it could not be done, 2 when the command line is wrong."""
    parser = _parser()
    try:
        options = parser.parse_args(list(arguments))
    except SystemExit as end:
        return int(end.code or 0)
    step: Step | None = getattr(options, "step", None)
    if step is None:
        parser.print_help(sys.stderr)
        return 2
    try:
        return step(options, here())
    except UserError as fault:
        return _failed(fault, as_json=getattr(options, "json", False) and step is not _set)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="garra config", description="Read and change the configuration.")
    steps = parser.add_subparsers(metavar="COMMAND")

    def add(name: str, step: Step, summary: str) -> argparse.ArgumentParser:
        found = steps.add_parser(name, help=summary, description=summary[0].upper() + summary[1:] + ".")
        found.set_defaults(step=step)
        return found

    get = add("get", _get, "print a value (secrets are hidden)")
    get.add_argument("path", help="where, such as gateway.port")
    get.add_argument("--json", action="store_true", help="print JSON")
    get.add_argument("--reveal", action="store_true", help="print secrets too")
    put = add("set", _set, "put a value, read as JSON5 where it is that, else as text")
    put.add_argument("path", help="where, such as gateway.port")
    put.add_argument("value", help="JSON5, or plain text where text is wanted")
    put.add_argument("--strict-json", "--json", action="store_true", dest="json", help="the value must be JSON")
    put.add_argument("--merge", action="store_true", help="merge into what stands there")
    unset = add("unset", _unset, "remove a value")
    unset.add_argument("path", help="where, such as gateway.port")
    patch = add("patch", _patch, "merge a file's object into the configuration; null removes a key")
    patch.add_argument("--file", required=True, help="the file, or - for standard input")
    validate = add("validate", _validate, "say whether the configuration is valid, and if not why")
    validate.add_argument("--json", action="store_true", help="print JSON")
    schema = add("schema", _schema, "print the JSON Schema of the configuration")
    schema.add_argument("--json", action="store_true", help="the same")
    add("restore", _restore, "bring back the last configuration that was valid")
    file = add("file", _file, "print where the configuration file is")
    file.add_argument("--json", action="store_true", help="print JSON")
    return parser


def _failed(fault: UserError, *, as_json: bool) -> int:
    if as_json:
        _print({"ok": False, "error": {"type": "cli_error", "message": fault.message}})
    else:
        sys.stderr.write(f"garra: {fault.message}\n")
    return 1


def _print(value: Any) -> None:
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def _loaded(place: Place) -> Snapshot:
    return load(place.paths, place.env)


def _get(options: argparse.Namespace, place: Place) -> int:
    path = dotted.parse(options.path)
    found = _loaded(place)
    if found.issues and not found.merged:
        raise ConfigInvalid(f"{place.paths.config_file} is not valid: {found.issues[0]}; try `garra config restore`")
    view = importlib.import_module("garra.config.view")
    tree: Any = found.resolved if options.reveal else view.tree(found.merged)
    for part in path:
        try:
            tree = tree[part]
        except (KeyError, IndexError, TypeError):
            raise NotFound(_unset_words(path, options.path)) from None
    if options.json or not isinstance(tree, str | int | float):
        _print(tree)
    else:
        sys.stdout.write((str(tree).lower() if isinstance(tree, bool) else str(tree)) + "\n")
    return 0


def _unset_words(path: dotted.Path, text: str) -> str:
    spot: Spot = importlib.import_module("garra.config.sections.lookup").place(path)
    if spot.known or spot.free:
        return f"{text} is not set; the default applies"
    return f"Unknown config path: {text}. Run garra config schema to see valid paths."


def value_of(path: dotted.Path, text: str, *, strict: bool) -> Any:
    """A value of the command line: JSON5 when it is that, else the text itself; a secret of digits stays text."""
    if strict:
        try:
            return json.loads(text)
        except ValueError as fault:
            raise UserError(f"the value is not JSON: {fault}") from fault
    try:
        value = include.decode(text)
    except include.Unreadable:
        return text
    return text if not isinstance(value, str | dict | None) and _texts(path) else value


def _texts(path: dotted.Path) -> bool:
    """Whether only text may stand there: a secret, or what a channel says is text."""
    spot: Spot = importlib.import_module("garra.config.sections.lookup").place(path)
    own = importlib.import_module("garra.config.channel_keys").declared(path)
    return spot.secret or (own or {}).get("type") == "string"


def _set(options: argparse.Namespace, place: Place) -> int:
    path = dotted.parse(options.path)
    value = value_of(path, options.value, strict=options.json)
    writer = Writer(place.paths, place.env)
    if options.merge:
        found = _loaded(place)
        tree: Any = found.parsed
        for part in path:
            tree = tree.get(part) if isinstance(tree, dict) else None
        value = merge.patched(tree, value)
    before = _loaded(place)
    found = writer.set(path, value)
    words = f"{dotted.show(path)} is set" + ("" if _quiet(path, value) else f" to {json.dumps(value)}")
    _say(place, before, found, words)
    _warn(one for one in _warnings(place, found) if _about(one, path))
    return 0


def _about(found: Issue, path: dotted.Path) -> bool:
    """Whether it speaks of this place, of what is below it or of what holds it."""
    shared = min(len(found.at), len(path))
    return shared > 0 and found.at[:shared] == path[:shared]


def _quiet(path: dotted.Path, value: Any) -> bool:
    """Whether a value is better not repeated: a secret, or a lot of text."""
    named = any(isinstance(part, str) and sensitive(part) for part in path)
    return not isinstance(value, str | int | float) or (named and not is_reference(str(value)))


def _unset(options: argparse.Namespace, place: Place) -> int:
    path, before = dotted.parse(options.path), _loaded(place)
    found = Writer(place.paths, place.env).unset(path)
    _say(place, before, found, f"{dotted.show(path)} is no longer set")
    return 0


def _patch(options: argparse.Namespace, place: Place) -> int:
    try:
        text = sys.stdin.read() if options.file == "-" else atomic.read(Path(options.file))
        value = include.decode(text)
    except (FileNotFoundError, include.Unreadable) as fault:
        raise UserError(f"{options.file}: {fault}") from fault
    if not isinstance(value, dict):
        raise UserError(f"{options.file} must hold one object")
    before = _loaded(place)
    known = {str(one) for one in _warnings(place, before)}
    found = Writer(place.paths, place.env).patch(value)
    _say(place, before, found, "the configuration is changed")
    _warn(one for one in _warnings(place, found) if str(one) not in known)
    return 0


def _say(place: Place, before: Snapshot, found: Snapshot, words: str) -> None:
    blind = before.config.gateway.reload.mode == "off"  # it does not look at the file again
    waits = ("it",) if blind else fixed.changed(before.config, found.config)
    when = f"takes {' and '.join(waits)} over when it is restarted" if waits else "takes it over within a second"
    sys.stdout.write(f"{words}. A running gateway {when}.\n")


def _warn(found: Iterable[Issue]) -> None:
    for warning in found:
        sys.stderr.write(f"  ! {warning}\n")


def _warnings(place: Place, found: Snapshot) -> tuple[Issue, ...]:
    unknown = importlib.import_module("garra.faces.cli.unknown_plugins")  # reads manifests: not for `config get`
    return (*found.warnings, *unknown.complaints(place.paths, found))


def _validate(options: argparse.Namespace, place: Place) -> int:
    found = _loaded(place)
    file, warnings = str(place.paths.config_file), _warnings(place, found)
    if options.json:
        view = importlib.import_module("garra.config.view")
        blob = {"valid": found.valid, "path": file, "warnings": view.issues(warnings)}
        if not found.valid:
            message = f"config is invalid: {file}"
            blob = {"ok": False, "error": {"type": "cli_error", "message": message}, **blob}
            blob["issues"] = view.issues(found.issues)
        _print(blob)
    elif found.valid:
        state = "" if found.exists else " (there is no such file; the defaults hold)"
        sys.stdout.write(f"Config valid: {file}{state}\n")
        _list(sys.stdout.write, warnings)
    else:
        sys.stderr.write(f"Config is invalid: {file}\n")
        for issue in found.issues:
            line = f"line {issue.line}: " if issue.line and issue.at else ""
            sys.stderr.write(f"  x {line}{issue}\n")
        _list(sys.stderr.write, warnings)
        sys.stderr.write("Mend these, or run `garra config restore` for the last valid one.\n")
    return 0 if found.valid else 1


def _list(write: Callable[[str], Any], warnings: Sequence[object]) -> None:
    if warnings:
        write(f"{len(warnings)} warning(s):\n")
    for warning in warnings:
        write(f"  ! {warning}\n")


def _schema(_options: argparse.Namespace, _place: Place) -> int:
    _print(importlib.import_module("garra.config.schema").schema())
    return 0


def _restore(_options: argparse.Namespace, place: Place) -> int:
    found = Writer(place.paths, place.env).restore()
    state = "valid" if found.valid else "not valid"
    sys.stdout.write(f"{place.paths.config_file} is the last good configuration again ({state}).\n")
    return 0 if found.valid else 1


def _file(options: argparse.Namespace, place: Place) -> int:
    if options.json:
        _print({"path": str(place.paths.config_file)})
    else:
        sys.stdout.write(f"{place.paths.config_file}\n")
    return 0
