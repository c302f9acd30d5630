"""`garra secrets`: the store of secrets, what stands in files as it is, and moving that to the store."""

from __future__ import annotations

import argparse
import getpass
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from garra.core.errors import Forbidden, NotFound, UserError
from garra.faces.cli import output, parsing, place
from garra.faces.cli.place import Place
from garra.io.clock import SystemClock
from garra.io.files import atomic
from garra.io.secrets import LARGEST, Entry, Store, check, exact, kind_of

MISSING, FOUND, UNRESOLVED = 3, 1, 2
"""Exit codes: no such name; the audit found something; a reference cannot be had."""


def run(arguments: Sequence[str]) -> int:
    words = list(arguments)
    if words[:1] == ["store"]:  # as the original has it
        words = words[1:]
    asked, here = _parser().parse_args(words), place.here()
    doing = asked.doing or "list"
    if here.agents:
        raise Forbidden("an agent's commands may not use the store of secrets: its owner does, in another terminal")
    steps = {
        "list": _list, "get": _get, "set": _set, "rm": _remove, "import": _import, "audit": _audit,
        "migrate": _migrate, "reload": _reload,
    }  # fmt: skip
    return steps[doing](here, asked)


def _parser() -> argparse.ArgumentParser:
    parser = parsing.parser(
        "secrets", "Keys and passwords in a store of their own, and where they still stand in files."
    )
    common = parsing.with_json(argparse.ArgumentParser(add_help=False))
    doing = parser.add_subparsers(dest="doing", metavar="COMMAND")

    def step(name: str, about: str) -> argparse.ArgumentParser:
        words = f"{about[0].upper()}{about[1:]}."
        made: argparse.ArgumentParser = doing.add_parser(name, parents=[common], help=about, description=words)
        return made

    step("list", "the names in the store, without the secrets").add_argument(
        "--plain", action="store_true", help="only the names"
    )
    getting = step("get", "what is known of one; itself only with --reveal at a terminal")
    getting.add_argument("name", metavar="NAME", help="which secret")
    getting.add_argument("--reveal", action="store_true", help="show the secret, at a terminal only")
    _setting(step)
    removing = step("rm", "remove from the store")
    removing.add_argument("names", nargs="+", metavar="NAME", help="which secrets")
    removing.add_argument("--yes", action="store_true", help="without asking")
    removing.add_argument("--dry-run", action="store_true", help="say what would be done")
    importing = step("import", "put the NAME=value lines of a .env file into the store")
    importing.add_argument("path", nargs="?", default="", metavar="FILE", help="the file (default: standard input)")
    importing.add_argument("--from", dest="file", default="-", metavar="F", help="the same")
    importing.add_argument("--dry-run", action="store_true", help="say what would be done")
    importing.add_argument("--yes", action="store_true", help=argparse.SUPPRESS)
    auditing = step("audit", "what stands in files as it is, and which references lead nowhere")
    auditing.add_argument("--check", action="store_true", help="exit code 1 when anything is found")
    auditing.add_argument("--allow-exec", action="store_true", help="ask programs that give secrets, too")
    moving = step("migrate", "move the secrets of the configuration to the store and leave references")
    moving.add_argument("--dry-run", action="store_true", help="say what would be moved")
    moving.add_argument("--keyring", action="store_true", help="into the system's keyring")
    moving.add_argument("--path", action="append", default=[], metavar="P", help="only what stands here (repeatable)")
    parsing.with_target(step("reload", "have a running gateway fetch every secret anew"))
    parser.set_defaults(json=False, plain=False)
    return parser


def _setting(step: Any) -> None:
    setting = step("set", "put one into the store; it is asked for, or read from standard input")
    setting.add_argument("name", metavar="NAME", help="capital letters, digits and _, as in OPENAI_API_KEY")
    setting.add_argument("--value", default=None, help="for --kind env only: others can see a command line")
    setting.add_argument("--value-file", default="", metavar="F", help="read it from this file (- is standard input)")
    setting.add_argument("--kind", choices=("secret", "env"), default=None, help="env: no secret, may be shown")
    setting.add_argument("--keyring", action="store_true", help="keep it in the system's keyring")
    setting.add_argument("--allow-host", action="append", default=[], metavar="H", help="it may go to this host only")
    setting.add_argument("--clear-allowed-hosts", action="store_true", help="it may go to any host")
    setting.add_argument("--dry-run", action="store_true", help="say what would be done")


def _store(here: Place) -> Store:
    return Store(here.paths.secrets)


def _list(here: Place, asked: argparse.Namespace) -> int:
    found = _store(here).entries()
    if asked.json:
        output.say_json({"entries": [_shown(name, entry) for name, entry in found.items()]})
    elif asked.plain:
        output.say("\n".join(found)) if found else None
    elif not found:
        output.say("The store is empty. `garra secrets set NAME` puts a secret there.")
    else:
        rows = [
            (name, entry.kind, _where(entry), ", ".join(entry.hosts) or "any host") for name, entry in found.items()
        ]
        output.say(output.table(rows, ("NAME", "KIND", "KEPT IN", "MAY GO TO")))
    return 0


def _shown(name: str, entry: Entry) -> dict[str, Any]:
    row: dict[str, Any] = {"name": name, "kind": entry.kind, "keyring": entry.keyring, "updatedAtMs": entry.updated_at}
    return {**row, "value": entry.value.reveal()} if entry.kind == "env" else {**row, "allowedHosts": list(entry.hosts)}


def _where(entry: Entry) -> str:
    return "the keyring" if entry.keyring else "the file"


def _get(here: Place, asked: argparse.Namespace) -> int:
    store = _store(here)
    found = store.entries()
    entry = found.get(asked.name)
    if entry is None:
        output.note(f"garra: the store has no {asked.name}")
        return MISSING
    if asked.reveal and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Forbidden("a secret is shown at a terminal only, so that it ends in no file and no log")
    if asked.reveal or entry.kind == "env":
        output.say(store.get(asked.name, found))
    elif asked.json:
        output.say_json(_shown(asked.name, entry))
    else:
        hosts = f"; it may go to {', '.join(entry.hosts)}" if entry.hosts else ""
        output.say(f"{asked.name} is kept in {_where(entry)}{hosts}. --reveal shows it, at a terminal.")
    return 0


def _set(here: Place, asked: argparse.Namespace) -> int:
    store, hosts = _store(here), tuple(map(exact, asked.allow_host))
    old = store.entries().get(asked.name)
    binds = bool(hosts) or asked.clear_allowed_hosts
    if old is not None and binds and asked.value is None and not asked.value_file:
        if not asked.dry_run:
            store.bind(asked.name, hosts)
        output.say(f"{asked.name} may go to {', '.join(hosts) or 'any host'}.")
        return 0
    kind = asked.kind or (old.kind if old else kind_of(asked.name))
    value = _value(asked, kind)
    kept = hosts or (() if asked.clear_allowed_hosts or old is None else old.hosts)
    entry = Entry(kind=kind, hosts=kept, updated_at=SystemClock().now_ms(), keyring=asked.keyring)
    check(asked.name, value, kind)
    if asked.dry_run:
        output.say(f"{asked.name} would be kept in {_where(entry)}.")
        return 0
    store.set(asked.name, value, entry)
    if kind == "env" and asked.kind is None and old is None:
        output.note(
            f"{asked.name} is kept as a plain variable, for its name is no secret's: it may be shown. "
            f"Where it is one: {here.command} secrets set {asked.name} --kind secret"
        )
    output.say(
        f"{asked.name} is kept in {_where(entry)}. Refer to it with "
        f'{{"source": "store", "provider": "default", "id": "{asked.name}"}}; '
        "a running gateway takes it over within a second."
    )
    return 0


def _value(asked: argparse.Namespace, kind: str) -> str:
    if asked.value is not None:
        if kind != "env":
            raise UserError("a secret on the command line can be seen by others: pipe it in, or let it be asked for")
        return str(asked.value)
    if asked.value_file and asked.value_file != "-":
        try:
            return atomic.read(Path(asked.value_file), LARGEST + 1)
        except FileNotFoundError:
            raise NotFound(f"there is no file {asked.value_file}") from None
    if asked.value_file == "-" or not sys.stdin.isatty():
        return sys.stdin.read(LARGEST + 2).removesuffix("\n")
    return getpass.getpass(f"{asked.name}: ")


def _remove(here: Place, asked: argparse.Namespace) -> int:
    store = _store(here)
    there = [name for name in asked.names if name in store.entries()]
    if there and not (asked.yes or asked.dry_run) and not _agreed(f"Remove {', '.join(there)}?"):
        return 1
    gone = there if asked.dry_run else store.remove(there)
    output.say(f"{'Would remove' if asked.dry_run else 'Removed'}: {', '.join(gone) or 'nothing'}.")
    return 0


def _agreed(question: str) -> bool:
    if not sys.stdin.isatty():
        raise UserError("nobody can be asked here: say --yes")
    return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")


def _import(here: Place, asked: argparse.Namespace) -> int:
    asked.file = asked.path or asked.file
    if asked.file != "-" and not Path(asked.file).is_file():
        raise NotFound(f"there is no file {asked.file}")
    text = sys.stdin.read(16 << 20) if asked.file == "-" else atomic.read(Path(asked.file), 16 << 20)
    found = importlib.import_module("garra.config.variables").dotenv(text)
    store = _store(here)
    for name, value in found.items():
        check(name, value, kind_of(name))
    for name, value in () if asked.dry_run else found.items():
        store.set(name, value, Entry(kind=kind_of(name), updated_at=SystemClock().now_ms()))
    output.say(_taken(here, asked, found))
    return 0


def _taken(here: Place, asked: argparse.Namespace, found: Sequence[str]) -> str:
    """What of a file was kept, and what it is: by their names some are secrets, the others plain variables."""
    if not found:
        return f"{asked.file} has no line NAME=value: nothing was stored."
    secret = [name for name in found if kind_of(name) == "secret"]
    plain = [name for name in found if name not in secret]
    parts = [f"{'Would store' if asked.dry_run else 'Stored'}: {', '.join(secret) or 'no secret'}."]
    if plain:
        parts.append(
            f"As plain variables, which may be shown: {', '.join(plain)}. Where one is a secret: "
            f"{here.command} secrets set NAME --kind secret"
        )
    if secret and not asked.dry_run and asked.file != "-":
        parts.append(f"They still stand in {asked.file}, too: remove them there.")
    return "\n".join(parts)


def _audit(here: Place, asked: argparse.Namespace) -> int:
    plain, snapshot = importlib.import_module("garra.config.plain"), _snapshot(here)
    findings, seen = plain.audit(here.paths, snapshot, programs=asked.allow_exec)
    lost = [one for one in findings if one.code in ("REF_UNRESOLVED", "PLACEHOLDER_VALUE")]
    status = "unresolved" if lost else "findings" if findings else "clean"
    counts = {
        "plaintextCount": sum(one.code == "PLAINTEXT_FOUND" for one in findings),
        "unresolvedRefCount": len(lost),
        "shadowedRefCount": 0,
        "storeResidueCount": sum(one.code == "STORE_PLAINTEXT_RESIDUE" for one in findings),
        "legacyResidueCount": 0,
    }
    if asked.json:
        shown = [one.shown() for one in findings]
        output.say_json({"version": 1, "status": status, "resolution": seen, "summary": counts, "findings": shown})
    else:
        for one in findings:
            output.say(f"{one.code}  {one.path} ({one.file}): {one.message}")
        skipped = f" {seen['skippedExecRefs']} that programs give were not tried (--allow-exec)." if seen[
            "skippedExecRefs"] else ""  # fmt: skip
        output.say(f"{len(findings) or 'No'} finding{'' if len(findings) == 1 else 's'}.{skipped}")
    return UNRESOLVED if lost else FOUND if findings and asked.check else 0


def _snapshot(here: Place) -> Any:
    return importlib.import_module("garra.config.load").load(here.paths, here.env)


def _migrate(here: Place, asked: argparse.Namespace) -> int:
    plain, merge = importlib.import_module("garra.config.plain"), importlib.import_module("garra.core.merge")
    dotted, store, found = importlib.import_module("garra.core.dotted"), _store(here), _snapshot(here)
    if found.issues:
        raise UserError(f"{here.paths.config_file} is not valid: {found.issues[0]}; mend it first")
    stored = {name: store.get(name) for name, entry in store.entries().items() if not entry.keyring}
    wanted = [move for move in plain.moves(found, stored) if not asked.path or dotted.show(move.at) in asked.path]
    rows = [{"path": dotted.show(move.at), "name": move.name} for move in wanted]
    if not asked.dry_run and wanted:
        for move in wanted:
            entry = Entry(kind="secret", updated_at=SystemClock().now_ms(), keyring=asked.keyring)
            store.set(move.name, move.value, entry)
        writer = importlib.import_module("garra.config.write").Writer(here.paths, here.env)
        writer.apply([merge.Change(move.at, move.reference) for move in wanted], found.hash)
    if asked.json:
        output.say_json({"moved": rows, "dryRun": asked.dry_run})
        return 0
    for row in rows:
        output.say(f"{'would move' if asked.dry_run else 'moved'} {row['path']} to {row['name']}")
    if rows and not asked.dry_run:
        output.say(
            f"The old text is in {here.paths.config_file}.bak, with the secrets in it: remove it once everything works."
        )
    elif not rows:
        output.say("No secret stands in the configuration as it is.")
    return 0


def _reload(here: Place, asked: argparse.Namespace) -> int:
    quick = importlib.import_module("garra.client.quick")
    answer = quick.call(here.target(parsing.wanted(asked)), "secrets.reload", {}, scopes=("operator.admin",))
    count = answer.get("warningCount", 0)
    if asked.json:
        output.say_json(answer)
    else:
        told = f" {count} could not be had; the gateway's log says which." if count else ""
        output.say(f"The gateway has fetched its secrets anew.{told}")
    return 0
