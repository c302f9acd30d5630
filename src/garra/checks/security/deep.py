"""What `--deep` looks at, changing nothing: the gateway that runs, the code of plugins and skills, the engine."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Literal

from garra.checks import engine as engines
from garra.checks.finding import Ground as Found
from garra.checks.security import code as lines
from garra.checks.security.ground import Code, Deep
from garra.client import quick, target
from garra.client.target import Target, Wanted
from garra.config.peek import peek
from garra.core.errors import GarraError
from garra.domains.plugins import discover
from garra.runs import fences

WAIT_S = 5.0
FILES = 1_000
BYTES = 1 << 20
WHOLE = 32 << 20
"""Bytes of one plugin or skill that are looked at."""
PASSED_OVER = frozenset({".git", "__pycache__", ".venv"})


def look(found: Found, asked: argparse.Namespace) -> Deep:
    """Blocks, for as long as the gateway takes to answer."""
    engine, engine_fault = _engine(found)
    wanted = Wanted(asked.url, asked.token, asked.password)
    running = target.holder(found.paths) is not None or bool(wanted.url)
    code = tuple(_code(found))
    if not running:
        return Deep(code=code, engine=engine, engine_fault=engine_fault)
    try:
        where = target.find(found.paths, found.env, peek(found.paths, found.env), wanted)
    except GarraError as fault:
        return Deep("the gateway", True, fault.message, False, code, engine, engine_fault)
    return Deep(where.url, True, _probe(where), _naked(where), code, engine, engine_fault)


def _probe(where: Target) -> str:
    try:
        quick.call(where, "health", timeout_s=WAIT_S)
    except GarraError as fault:
        return fault.message
    return ""


def _naked(where: Target) -> bool:
    """Whether somebody who shows nothing is let in with the rights he asks for."""
    try:
        quick.call(Target(where.url), "health", timeout_s=WAIT_S)
    except GarraError:
        return False
    return True


def _engine(found: Found) -> tuple[str, str]:
    """The container engine that is configured, and why it cannot be used."""
    agents = found.snapshot.config.agents
    named = [agents.defaults.sandbox.backend, *(agent.sandbox.backend for agent in agents.list)]
    engine = next((name for name in named if name in fences.ENGINES), "")
    if not engine:
        return "", ""
    fault = engines.fault(engine, found.env)
    return engine, fault and f"{fault}."


def _code(found: Found) -> Iterator[Code]:
    for root in (discover.installed(), discover.extensions(found.paths.extensions)):
        with suppress(OSError):
            for one in root:
                name = one.id if isinstance(one, discover.Plugin) else one.folder.name
                yield _looked("plugins", name, one.folder)
    for folder in _skills(found):
        yield _looked("skills", folder.name, folder)


def _skills(found: Found) -> Iterator[Path]:
    """The folders of skills: of each workspace, of the state, of the configuration."""
    config, paths = found.snapshot.config, found.paths
    extra = [paths.expand(text) for text in config.skills.load.extra_dirs]
    workspaces = [paths.workspace(agent_id, config) / "skills" for agent_id in config.agents.ids()]
    for place in dict.fromkeys((paths.skills, *workspaces, *extra)):
        for folder, folders, files in os.walk(place):
            folders[:] = sorted(name for name in folders if name not in PASSED_OVER)
            if "SKILL.md" in files:
                folders.clear()
                yield Path(folder)


def _looked(kind: Literal["plugins", "skills"], name: str, root: Path) -> Code:
    hits: list[tuple[lines.Severity, str, str]] = []
    escapes: list[str] = []
    real, seen, size, fault = os.path.realpath(root), 0, 0, ""
    for file in _files(root):
        language = lines.LANGUAGES.get(file.suffix.lower())
        shown = str(file.relative_to(root))
        if file.is_symlink() and not os.path.realpath(file).startswith(f"{real}/"):
            escapes.append(shown)
        if language is None or (kind == "plugins" and language == "text"):
            continue
        seen += 1
        if seen > FILES or size > WHOLE:
            fault = f"more than {FILES:,} files, or {WHOLE >> 20} MiB; the others were not looked at."
            break
        try:
            text = _text(file)
        except OSError as error:
            fault = f"{shown}: {error.strerror or error}."
            continue
        size += len(text)
        found = lines.scan(text, language)
        hits += [(hit.severity, f"{shown}:{hit.line}", hit.what) for hit in found]
    return Code(kind, name, str(root), tuple(hits), tuple(escapes), fault)


def _files(root: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in PASSED_OVER)
        for name in sorted(files):
            yield Path(folder) / name


def _text(file: Path) -> str:
    with file.open("rb") as stream:
        data = stream.read(BYTES + 1)
    if len(data) > BYTES:
        raise OSError(f"larger than {BYTES >> 20} MiB")
    return data.decode("utf-8", "replace")
