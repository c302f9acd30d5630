"""The pages of the protocol: methods with parameters, answers and errors; events; error codes."""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from types import SimpleNamespace
from typing import Any, cast

from docs.make import answers
from docs.make.page import DOCS, ROOT, cell, first, join, table

from garra.core import errors as tree
from garra.core.errors import FailureKind, GarraError
from garra.gateway.broadcast import EMITTED, EVENTS
from garra.gateway.method import Method
from garra.gateway.schema import emit
from garra.gateway.server import Gateway
from garra.gateway.table import METHODS, of

MODULES = {
    "agents": "Agents", "chat": "Chat", "sessions": "Conversations", "config": "Configuration", "models": "Models",
    "tools": "Tools", "memory": "Memory", "skills": "Skills", "channels": "Channels", "messages": "Messages",
    "approvals": "Approvals", "questions": "Questions", "device": "Devices", "node": "Nodes", "secrets": "Secrets",
    "usage": "Usage", "trace": "Traces", "status": "Status", "logs": "Log", "restart": "Restart", "stop": "Stopping",
    "users": "People", "waiting": "Suggestions",
}  # fmt: skip
"""The headings, by the first word of the module that has the methods."""
JOINED = {
    "examine": "status",
    "agent": "agents",
    "context": "sessions",
    "dreams": "memory",
    "pairing": "channels",
    "presence": "status",
}


@cache
def words() -> Mapping[str, Mapping[str, str]]:
    return tomllib.loads((DOCS / "make" / "words" / "methods.toml").read_text())


def rows() -> dict[str, Method]:
    nobody = cast(Gateway, SimpleNamespace(devices=None))  # the rows bind it, none is called
    return dict(of(nobody).rows)


def does(row: Method) -> str:
    """What a method does, in a line; empty where nobody says so."""
    return words()["does"].get(row.name) or row.summary or first(row.run.__doc__)


def answer(row: Method) -> str:
    """What a method answers; empty where neither its code nor anybody says so."""
    if by_hand := words()["answers"].get(row.name):
        return by_hand
    return ", ".join(f"`{key}`" for key in answers.keys(_bare(row)))


def _bare(row: Method) -> Any:
    run: Any = inspect.unwrap(row.run)
    return getattr(run, "__func__", run)


def classes() -> dict[str, type[GarraError]]:
    """The errors that are raised on purpose, by name."""
    return {
        name: found for name, found in vars(tree).items() if isinstance(found, type) and issubclass(found, GarraError)
    }


def raised(row: Method) -> str:
    known = classes()
    found = answers.raises(_bare(row), frozenset(known))
    return ", ".join(f"`{known[name].code}` ({_plain(name)})" for name in found if name != "GarraError")


def _plain(name: str) -> str:
    return {"UserError": "what was asked is not possible", "NotFound": "no such thing", "Forbidden": "not allowed",
            "Conflict": "it changed meanwhile", "Unavailable": "not now", "ConfigInvalid": "the configuration does not fit",
            }.get(name, name)  # fmt: skip


def methods() -> str:
    """docs/reference/methods.md"""
    document = emit(of(cast(Gateway, SimpleNamespace(devices=None))))
    known = rows()
    groups: dict[str, list[str]] = {}
    for module, names in METHODS.items():
        word = module.split("_")[0]
        groups.setdefault(_title(word), []).extend(names.split())
    body = [join(f"## {title}", *(_method(known[name], document) for name in groups[title]))
            for title in sorted(groups, key=[*MODULES.values(), *groups].index)]  # fmt: skip
    return join(
        "# Methods",
        "```sh\ngarra gateway call sessions.list --params '{\"limit\": 5}'\n```",
        "What a client may ask of the gateway, over the WebSocket ([the protocol](../concepts/protocol.md)) or by"
        " `garra gateway call`. This page is made from the method table. The shapes as JSON Schema:"
        " `garra gateway schema`.",
        "Each method asks for one right; `operator.admin` has all of them, `operator.write` includes `operator.read`."
        " Every method may answer `INVALID_REQUEST` (a parameter does not fit), `FORBIDDEN` (the right is missing) and"
        " `UNAVAILABLE` (the gateway starts or ends); errors below come on top. What the codes mean:"
        " [errors](errors.md). A parameter with `?` may be left out.",
        *body,
    )


def _title(word: str) -> str:
    """The heading of a module, by its first word."""
    return MODULES.get(JOINED.get(word, word), word.capitalize())


def _method(row: Method, document: Mapping[str, Any]) -> str:
    facts = [f"Right: `{row.scope}`." if row.scope else "Right: none."]
    facts += ["Answers twice."] if row.twice else []
    facts += [] if row.advertised else ["Not named in the greeting."]
    shape = document["methods"][row.name]["params"]
    given = table(("parameter", "type", "meaning"), _params(shape, document["$defs"]))
    about = first(_resolved(shape, document["$defs"]).get("description"))
    error = raised(row)
    return join(
        f"### `{row.name}`",
        does(row),
        " ".join(facts),
        about if given else "",
        given or ("Parameters: none." if row.params else "Parameters: any object; nothing of it is read."),
        f"Answer: {answer(row)}.",
        f"Errors: {error}." if error else "",
    )


def _params(shape: Mapping[str, Any], defs: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    shape = _resolved(shape, defs)
    needed = set(shape.get("required", ()))
    said = words()["params"]
    for name, below in shape.get("properties", {}).items():
        meaning = below.get("description") or said.get(name) or ("" if _read(name) else TAKEN)
        yield f"`{name}`" if name in needed else f"`{name}`?", kind(below, defs), meaning


TAKEN = "of OpenClaw's clients; taken, and nothing reads it"


@cache
def _source() -> str:
    """All code that could read a parameter."""
    return "\n".join(path.read_text() for path in sorted((ROOT / "src" / "garra").rglob("*.py")))


@cache
def _read(name: str) -> bool:
    """Whether anything reads a parameter of this name, as an attribute or by its name."""
    own = re.sub(r"(?<!^)([A-Z])", lambda found: f"_{found.group(1).lower()}", name)
    return bool(re.search(rf"\.{own}\b|[\"']{own}[\"']|[\"']{name}[\"']", _source()))


def _resolved(shape: Mapping[str, Any], defs: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = defs[str(shape["$ref"]).rsplit("/", 1)[-1]] if "$ref" in shape else shape
    return found


def kind(shape: Mapping[str, Any], defs: Mapping[str, Any]) -> str:
    """A JSON Schema as a few words."""
    if "$ref" in shape:
        found = defs[str(shape["$ref"]).rsplit("/", 1)[-1]]
        return (
            "object: " + ", ".join(f"`{key}`" for key in found.get("properties", ()))
            if found.get("properties")
            else "object"
        )
    if branches := shape.get("anyOf"):
        return " or ".join(kind(each, defs) for each in branches if each != {"type": "null"})
    if "enum" in shape:
        return " or ".join(f"`{each}`" for each in shape["enum"] if each is not None)
    if "const" in shape:
        return f"`{shape['const']}`"
    word = shape.get("type", "anything")
    if word == "array" and isinstance(shape.get("items"), dict):
        return f"list of {kind(shape['items'], defs)}"
    return _bounded(str(word), shape)


def _bounded(word: str, shape: Mapping[str, Any]) -> str:
    lowest, highest = shape.get("minimum"), shape.get("maximum")
    if "exclusiveMinimum" in shape:
        return f"{word} > {shape['exclusiveMinimum']}"
    if lowest is not None and highest is not None:
        return f"{word} {lowest} to {highest}"
    if lowest is not None:
        return f"{word} ≥ {lowest}"
    if highest is not None:
        return f"{word} ≤ {highest}"
    return f"{word}, at most {shape['maxLength']} characters" if "maxLength" in shape else word


def events() -> str:
    """docs/reference/events.md"""
    said = words()["events"]
    known = sorted({*EVENTS, *EMITTED})
    rows_ = [(f"`{name}`", f"`{EVENTS[name]}`" if EVENTS.get(name) else "everyone" if name in EVENTS else "`operator.admin`"
              if name != "connect.challenge" else "everyone", said.get(name, "")) for name in known]  # fmt: skip
    return join(
        "# Events",
        '```json\n{"type": "event", "event": "tick", "payload": {"ts": 1790000000000}, "seq": 7}\n```',
        "What the gateway tells without being asked. `seq` counts the events of one connection from 1: a gap means that a"
        " slow reader missed one and reads again what it shows. An event goes to connections that hold its right; those"
        " of conversations only to those that subscribed (`sessions.subscribe`, `sessions.messages.subscribe`). This page"
        " is made from the event table.",
        table(("event", "right", "meaning"), rows_),
    )


def codes() -> dict[str, str]:
    """Every error code, with what it means; empty where nobody says so."""
    found = {each.code for each in _every(GarraError)}
    said = words()["codes"]
    return {code: said.get(code, "") for code in sorted(found)}


def _every(root: type[GarraError]) -> Iterator[type[GarraError]]:
    from garra.domains.context import workspace  # noqa: F401, PLC0415 - its error joins the tree
    from garra.gateway import refusals  # noqa: F401, PLC0415 - likewise
    from garra.sdk import channel  # noqa: F401, PLC0415 - likewise

    yield root
    for below in root.__subclasses__():
        yield from _every(below)


def errors() -> str:
    """docs/reference/errors.md"""
    failures = words()["failures"]
    return join(
        "# Errors",
        '```json\n{"type": "res", "id": "1", "ok": false,\n'
        ' "error": {"code": "INVALID_REQUEST", "message": "unknown method: nope"}}\n```',
        "What a failed request says: a code for programs, which is stable, a line for people, and `details`, `retryable`"
        " and `retryAfterMs` where they help. This page is made from the tree of errors.",
        table(("code", "meaning"), ((f"`{code}`", said) for code, said in codes().items())),
        "## Why a run failed",
        "A turn that ends without an answer says why: `details.kind` of the error, `failure` of a trace, and the words in"
        " the chat.",
        table(("kind", "meaning"), ((f"`{each.value}`", failures.get(each.value, "")) for each in FailureKind)),
        "## Exit codes of the command line",
        table(("code", "meaning"), (("0", "done"), ("1", "it could not be done; the line on standard error says why"),
                                    ("2", "the command line cannot be understood"), ("130", "stopped by Ctrl-C"))),
    )  # fmt: skip


def mute() -> list[str]:
    """What has no line: methods, their answers, events, codes, reasons."""
    said = words()
    known = rows()
    lost = [f"{name}: what it does" for name, row in known.items() if not does(row)]
    lost += [f"{name}: what it answers" for name, row in known.items() if not answer(row)]
    lost += [f"event {name}" for name in {*EVENTS, *EMITTED} if not cell(said["events"].get(name, ""))]
    lost += [f"code {code}" for code, text in codes().items() if not text]
    lost += [f"failure {each.value}" for each in FailureKind if not said["failures"].get(each.value)]
    return sorted(lost)
