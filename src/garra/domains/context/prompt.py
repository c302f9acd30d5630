"""The system prompt: fixed sections in a fixed order, everything that changes from turn to turn kept apart in `tail`.

`system` depends on nothing but `Inputs`, without `Inputs.now` and its like, so two turns a minute apart share every
byte of it, and a provider's prompt cache holds.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from importlib import resources
from typing import Any, Literal

from garra.core.budget import FILE_CHARS, TOTAL_CHARS, Document, Injected, fit, injected_json, truncation_json
from garra.core.reply import Quiet
from garra.core.skills import Listed
from garra.core.value import frozen
from garra.sdk.model import ToolSpec

Shape = Literal["full", "minimal", "lite", "none"]
"""`minimal` is a sub-agent's, `lite` a small local model's; `none` is the identity line alone."""

KEPT = 64
SUBAGENT_FILES = ("AGENTS.md", "TOOLS.md")
LITE_FILE_CHARS = 300


def sections() -> Mapping[str, str]:
    """The texts of `prompts/`, by name. Reads files: call it in a thread."""
    folder = resources.files(__package__) / "prompts"
    found = ((file.name, file.read_text("utf-8").strip()) for file in folder.iterdir())
    return {name.removesuffix(".md"): text for name, text in sorted(found) if name.endswith(".md")}


@frozen
class Stable:
    """What the stable part is made of. `tools` are names in their order, `byname` those that are told by name only;
    `senders` who may give orders.

    `extra` is the session's own addition (a client's instructions), the same for all its turns.
    """

    product: str = "Garra"
    shape: Shape = "full"
    tools: tuple[str, ...] = ()
    byname: tuple[str, ...] = ()
    workspace: str = ""
    files: tuple[Document, ...] = ()
    skills: tuple[Listed, ...] = ()
    memory: bool = True
    time_zone: str = "UTC"
    senders: tuple[str, ...] = ()
    file_chars: int = FILE_CHARS
    total_chars: int = TOTAL_CHARS
    extra: str = ""

    def has(self, tool: str) -> bool:
        """Whether it can be called, however it is told of."""
        return tool in self.tools or tool in self.byname


@frozen
class Turn:
    """What changes from turn to turn. `now` is as `core.stamps.moment`; `heartbeat` is the text of HEARTBEAT.md when
    this turn is one; `notes` are facts for this turn only.
    """

    now: str = ""
    heartbeat: str | None = None
    quiet: Quiet = "never"
    notes: tuple[str, ...] = ()


@frozen
class _Prefix:
    system: str
    files: tuple[Injected, ...]
    hash: str
    context_chars: int


@frozen
class Prompt:
    """`system` goes first and stays; `tail` goes last. The rest is what it was made of."""

    system: str
    tail: str
    stable: Stable
    prefix: _Prefix
    specs: tuple[ToolSpec, ...]

    def report(self) -> dict[str, Any]:
        """What is in it, in characters, as clients are told."""
        return _report(self.stable, self.prefix, self.specs)


class Prompts:
    """Builds prompts; keeps the last 64 stable parts, so an unchanged one costs a look-up.

    `texts` come from `sections()`.
    """

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts
        self._kept: OrderedDict[Stable, _Prefix] = OrderedDict()

    def build(self, stable: Stable, turn: Turn | None = None, specs: tuple[ToolSpec, ...] = ()) -> Prompt:
        """The prompt of one turn. `specs` are only measured, for the report."""
        prefix = self._kept.get(stable)
        if prefix is None:
            prefix = self._kept[stable] = self._render(stable)
            if len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end(stable)
        tail = "" if turn is None or stable.shape == "none" else "\n\n".join(self._tail(turn))
        return Prompt(prefix.system, tail, stable, prefix, specs)

    def _render(self, stable: Stable) -> _Prefix:
        files = fit(_chosen(stable), min(stable.file_chars, _limit(stable)), stable.total_chars)
        context = self._context(stable, files)
        parts = [*self._parts(stable), *([context] if context else [])]
        system = "\n\n".join(part for part in parts if part)
        return _Prefix(system, files, hashlib.sha256(system.encode()).hexdigest(), len(context))

    def pieces(self, stable: Stable) -> list[tuple[str, str]]:
        """The sections of the stable part, each with its first words."""
        files = fit(_chosen(stable), min(stable.file_chars, _limit(stable)), stable.total_chars)
        parts = [*self._parts(stable), self._context(stable, files)]
        return [(part.splitlines()[0].strip("# ")[:60], part) for part in parts if part]

    def _parts(self, stable: Stable) -> Iterator[str]:
        """The sections before the files, in their order."""
        if stable.shape == "lite":
            yield self._said("lite", product=stable.product)
            yield stable.extra
            return
        yield self._said("identity", product=stable.product)
        if stable.shape == "none":
            yield stable.extra
            return
        yield self._tooling(stable)
        if stable.shape == "full" and stable.has("sessions_spawn"):
            yield self._said("subagents")
        if stable.tools:
            yield self._said("style")
        yield self._said("safety")
        if stable.skills and "read" in stable.tools:
            yield self._said("skills", skills="\n".join(one.line for one in stable.skills))
        if stable.shape == "full" and stable.memory:
            more = ("memory-search",) if stable.has("memory_search") else ()
            yield "\n".join(self._said(name) for name in ("memory", *more))
        yield self._people(stable)
        if stable.shape == "minimal":
            yield self._said("subagent")
        yield stable.extra

    def _tooling(self, stable: Stable) -> str:
        if not stable.tools:
            return self._said("tooling-none")
        lines = [self._said("tooling", tools=", ".join(stable.tools), workspace=stable.workspace)]
        lines += [self._said(f"tooling-{tool}") for tool in ("process", "cron") if stable.has(tool)]
        return "\n".join(lines)

    def _people(self, stable: Stable) -> str:
        lines = [self._said("people", zone=stable.time_zone)]
        if stable.shape == "full" and stable.senders:
            lines.append(self._said("senders", senders=", ".join(stable.senders)))
        return "\n".join(lines)

    def _context(self, stable: Stable, files: tuple[Injected, ...]) -> str:
        shown = [file for file in files if file.text]
        if not shown or stable.shape == "none":
            return ""
        if stable.shape == "lite":
            return "\n\n".join(file.text for file in shown)
        head = self._said("context")
        if any(file.truncated for file in files):
            head += "\n" + self._said("cut")
        return "\n\n".join([head, *(f"## {file.name}\n{file.text}" for file in shown)])

    def _tail(self, turn: Turn) -> Iterator[str]:
        if turn.heartbeat is not None:
            yield self._said("heartbeat") + (f"\n\n{turn.heartbeat.strip()}" if turn.heartbeat.strip() else "")
        if turn.quiet == "group":
            yield self._said("silence")
        yield from turn.notes
        if turn.now:
            yield self._said("now", now=turn.now)

    def text(self, name: str) -> str:
        """One of the texts, as it is written."""
        return self._texts[name]

    def _said(self, name: str, **values: str) -> str:
        text = self._texts[name]
        for key, value in values.items():
            text = text.replace(f"{{{key}}}", value)
        return text


def _chosen(stable: Stable) -> tuple[Document, ...]:
    if stable.shape == "full":
        return stable.files
    names = {"minimal": SUBAGENT_FILES, "lite": ("IDENTITY.md",), "none": ()}[stable.shape]
    return tuple(file for file in stable.files if file.name in names)


def _limit(stable: Stable) -> int:
    return LITE_FILE_CHARS if stable.shape == "lite" else stable.file_chars


def _report(stable: Stable, prefix: _Prefix, specs: tuple[ToolSpec, ...]) -> dict[str, Any]:
    chars = len(prefix.system)
    listed = "\n".join(one.line for one in stable.skills)
    schemas = [(spec, len(json.dumps(dict(spec.parameters)))) for spec in specs]
    return {
        "source": "run",
        "workspaceDir": stable.workspace,
        "bootstrapMaxChars": stable.file_chars,
        "bootstrapTotalMaxChars": stable.total_chars,
        "bootstrapTruncation": truncation_json(prefix.files, stable.file_chars, stable.total_chars),
        "systemPrompt": {
            "chars": chars,
            "hash": prefix.hash,
            "projectContextChars": prefix.context_chars,
            "nonProjectContextChars": chars - prefix.context_chars,
        },
        "injectedWorkspaceFiles": injected_json(prefix.files),
        "skills": {
            "promptChars": len(listed),
            "hash": hashlib.sha256(listed.encode()).hexdigest(),
            "entries": [{"name": one.name, "blockChars": len(one.line)} for one in stable.skills],
        },
        "tools": {
            "listChars": len(", ".join(stable.tools)),
            "schemaChars": sum(size for _, size in schemas),
            "entries": [
                {
                    "name": spec.name,
                    "summaryChars": len(spec.description),
                    "schemaChars": size,
                    "propertiesCount": len(spec.parameters.get("properties", {})),
                }
                for spec, size in schemas
            ],
        },
    }
