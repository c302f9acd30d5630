"""`garra memory`: search what an agent remembers, see its index, make it again. Works without a gateway too."""

from __future__ import annotations

import argparse
import asyncio
import importlib
from collections.abc import Mapping, Sequence
from typing import Any

from garra.client import quick
from garra.client.socket import Unreachable
from garra.core.errors import UserError
from garra.faces.cli import dreams, output, parsing, place
from garra.faces.cli.place import Place

SCOPES = ("operator.read", "operator.write")


def run(arguments: Sequence[str]) -> int:
    """Exit code 0 when done, 1 when something could not be done, 2 when the command line is wrong."""
    asked = _parser().parse_args(list(arguments) or ["status"])
    here = place.here()
    try:
        code: int = asked.step(here, asked)
    except UserError as fault:
        if not asked.json:
            raise
        output.say_json({"ok": False, "error": {"type": "cli_error", "message": fault.message}})
        return 1
    return code


def _parser() -> argparse.ArgumentParser:
    parser = parsing.parser("memory", "What an agent remembers: its files of memory and its conversations.")
    common = parsing.with_target(parsing.with_json(argparse.ArgumentParser(add_help=False)))
    common.add_argument("--agent", default="", metavar="ID", help="whose (the default agent's)")
    common.add_argument("--verbose", action="store_true", help="say more")
    steps = parser.add_subparsers(metavar="COMMAND", required=True)
    search = steps.add_parser("search", parents=[common], help="look for something")
    search.add_argument("words", nargs="?", default="", metavar="QUERY", help="what to look for")
    search.add_argument("--query", default="", metavar="TEXT", help="what to look for; wins over QUERY")
    search.add_argument("--max-results", type=int, default=None, metavar="N", help="at most N results")
    search.add_argument("--min-score", type=float, default=None, metavar="X", help="only what fits so well, 0 to 1")
    search.add_argument("--corpus", default="all", choices=("memory", "sessions", "all"), help="where (all)")
    search.set_defaults(step=_search)
    status = steps.add_parser("status", parents=[common], help="how much is indexed, and who makes vectors")
    status.add_argument("--deep", action="store_true", help="ask whoever makes the vectors, too")
    status.add_argument("--index", action="store_true", help="index what is new first; as --deep")
    status.set_defaults(step=_status)
    for name, about in (("index", "read what is new"), ("reindex", "read everything again")):
        index = steps.add_parser(name, parents=[common], help=about)
        index.add_argument("--force", action="store_true", default=name == "reindex", help="read everything again")
        index.add_argument("--wait", action="store_true", help="until all vectors are made")
        index.set_defaults(step=_index)
    dreams.add(steps, common, _ask)
    return parser


def _ask(
    here: Place, asked: argparse.Namespace, method: str, params: Mapping[str, Any], *, scopes: Any = SCOPES
) -> dict[str, Any]:
    given = {name: value for name, value in {**params, "agentId": asked.agent}.items() if value not in (None, "")}
    try:
        answer: dict[str, Any] = quick.call(
            here.target(parsing.wanted(asked)), method, given, scopes=scopes, timeout_s=None
        )
    except Unreachable:
        if here.holder or asked.url:
            raise
        offline = importlib.import_module("garra.app.memory_offline")  # opens the house; only where no gateway runs
        answer = asyncio.run(offline.answer(here.paths, here.env, method, given))
    return answer


def _search(here: Place, asked: argparse.Namespace) -> int:
    query = asked.query or asked.words
    if not query.strip():
        raise UserError("what should be looked for? such as: garra memory search 'wifi password'")
    params = {
        "query": query, "maxResults": asked.max_results, "minScore": asked.min_score, "corpus": asked.corpus,
    }  # fmt: skip
    found = _ask(here, asked, "memory.search", params)
    if asked.json:
        output.say_json(found)
        return 0
    for hit in found.get("results", ()):
        output.say(f"{hit['score']:.3f} {hit['citation']}\n{hit['snippet']}\n")
    if not found.get("results"):
        output.say("Nothing was found." if found.get("status") != "disabled" else "Memory is switched off.")
    if found.get("warning"):
        output.note(found["warning"])
    return 0


def _status(here: Place, asked: argparse.Namespace) -> int:
    if asked.index:
        _ask(here, asked, "memory.index", {})
    told = _ask(here, asked, "doctor.memory.status", {"deep": asked.deep or asked.index})
    if asked.json:
        output.say_json([told])
        return 0
    if told.get("status") == "disabled":
        output.say("Memory is switched off.")
        return 0
    rows = [(row["source"], row["files"], row["chunks"], row["chunkBytes"]) for row in told["status"]["sourceCounts"]]
    output.say(f"{told['agentId']}: {told['status']['words']}")
    output.say(output.table([tuple(map(str, row)) for row in rows], ("source", "files", "pieces", "bytes")))
    if asked.verbose or asked.deep or asked.index:
        output.say(f"Index: {told['status']['dbPath']}")
    if not told["embedding"]["ok"]:
        output.note(told["embedding"]["error"])
    return 0


def _index(here: Place, asked: argparse.Namespace) -> int:
    done = _ask(here, asked, "memory.index", {"force": asked.force, "wait": asked.wait})
    if asked.json:
        output.say_json(done)
    elif done.get("status") == "disabled":
        output.say("Memory is switched off.")
    else:
        output.say(f"{done['agentId']}: {done['files']} files read, {done['gone']} forgotten")
        for line in done["faults"]:
            output.note(line)
    return 0
