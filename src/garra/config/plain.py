"""Secrets that stand in the configuration as they are, and moving them to a store; references that lead nowhere."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from garra.config.load import Snapshot
from garra.config.paths import Paths
from garra.config.references import References
from garra.config.sections.lookup import secret_at
from garra.config.variables import dotenv, is_reference, listed
from garra.core import dotted
from garra.core.dotted import Path
from garra.core.errors import NotFound, Unavailable
from garra.core.redact import SENTINEL, hidden, sensitive
from garra.core.redact import is_reference as names_only
from garra.core.value import frozen
from garra.io.files import atomic

Code = Literal["PLAINTEXT_FOUND", "REF_UNRESOLVED", "STORE_PLAINTEXT_RESIDUE", "PLACEHOLDER_VALUE"]

_KINDS = ("providers", "channels", "entries", "servers", "accounts", "models", "plugins", "config", "mcp")
"""The words of a path that say nothing of whose secret it is."""
_LONG = 8
"""Shorter ones would be found in innocent text."""
_WORDS = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")


@frozen
class Finding:
    """One thing to mend: where (a dotted path of `file`), and what. Never the secret itself."""

    code: Code
    file: str
    path: str
    message: str

    def shown(self) -> dict[str, str]:
        return {"code": self.code, "file": self.file, "jsonPath": self.path, "message": self.message}


@frozen
class Move:
    """One secret to be moved: from this place to this name in the store."""

    at: Path
    name: str
    value: str

    @property
    def reference(self) -> dict[str, str]:
        return {"source": "store", "provider": "default", "id": self.name}


def texts(tree: Any, at: Path = ()) -> Iterator[tuple[Path, str]]:
    """Every secret that stands in a configuration as it is."""
    if isinstance(tree, dict):
        if not is_reference(tree):
            for key, below in tree.items():
                yield from texts(below, (*at, key))
    elif isinstance(tree, list):
        for index, below in enumerate(tree):
            yield from texts(below, (*at, index))
    elif isinstance(tree, str) and tree.strip() and not names_only(tree) and hidden(at, secret_at):
        yield at, tree


def name_of(at: Path, taken: Mapping[str, str], value: str) -> str:
    """A name for the secret at this place: `models.providers.openai.apiKey` is OPENAI_API_KEY."""
    parts = [str(part) for part in at if part not in _KINDS]
    words = [word.upper() for part in parts for word in _WORDS.findall(part)]
    name = "_".join(words)[:120] or "SECRET"
    name = name if name[0].isalpha() else f"SECRET_{name}"
    number = 2
    made = name
    while taken.get(made, value) != value:
        made, number = f"{name}_{number}", number + 1
    return made


def moves(found: Snapshot, stored: Mapping[str, str]) -> list[Move]:
    """What there is to move out of the main file; `stored` are the names and values that the store has."""
    taken, made = dict(stored), []
    for at, value in texts(found.parsed):
        if value == SENTINEL:
            continue
        name = name_of(at, taken, value)
        taken[name] = value
        made.append(Move(at, name, value))
    return made


def audit(paths: Paths, found: Snapshot, *, programs: bool = False) -> tuple[list[Finding], dict[str, Any]]:
    """What is to be mended, and how far it could be seen. Programs are asked where `programs` says so. Blocks."""
    file = str(paths.config_file)
    findings: list[Finding] = []
    references = References(paths, found.env, found.merged)
    stored = {name: entry.value.reveal() for name, entry in _entries(references).items() if entry.value}
    for at, value in texts(found.merged):
        where = dotted.show(at)
        if value == SENTINEL:
            findings.append(
                Finding("PLACEHOLDER_VALUE", file, where, "what is shown in place of a secret stands there")
            )
            continue
        same = next((name for name, text in stored.items() if text == value), "")
        code: Code = "STORE_PLAINTEXT_RESIDUE" if same else "PLAINTEXT_FOUND"
        told = f"it stands there as it is{f', and in the store as {same}' if same else ''}: `garra secrets migrate`"
        findings.append(Finding(code, file, where, told))
    checked = skipped = 0
    for at, wanted in listed(found.merged):
        if wanted["source"] == "exec" and not programs:
            skipped += 1
            continue
        checked += 1
        try:
            references.look(wanted["source"], str(wanted.get("provider") or ""), wanted["id"])
        except NotFound as fault:
            findings.append(Finding("REF_UNRESOLVED", file, dotted.show(at), fault.message))
    findings += (*_dotenv(paths), *_former(paths, stored))
    return findings, {"refsChecked": checked, "skippedExecRefs": skipped, "resolvabilityComplete": not skipped}


def _entries(references: References) -> Mapping[str, Any]:
    try:
        return references.store.entries()
    except Unavailable:
        return {}


def _former(paths: Paths, stored: Mapping[str, str]) -> Iterator[Finding]:
    """Secrets of the store in the text that the last change of the configuration kept."""
    file = paths.config_file.with_name(f"{paths.config_file.name}.bak")
    try:
        text = atomic.read(file, 16 << 20)
    except (OSError, Unavailable):
        return
    for name, value in stored.items():
        if len(value) >= _LONG and (value in text or json.dumps(value)[1:-1] in text):
            yield Finding("STORE_PLAINTEXT_RESIDUE", str(file), name, "the old text has it as it is: remove that file")


def _dotenv(paths: Paths) -> Iterator[Finding]:
    """The secrets in the state folder's `.env`."""
    file = paths.state / ".env"
    try:
        text = atomic.read(file, 1 << 20)
    except (FileNotFoundError, Unavailable):
        return
    for name, value in dotenv(text).items():
        if value and sensitive(name):
            yield Finding(
                "PLAINTEXT_FOUND", str(file), name, "it stands there as it is: `garra secrets import` moves it"
            )
