"""Looks at an installation once, changing nothing. What cannot be looked at is taken as not there."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from garra.checks.finding import Ground as Found
from garra.checks.security.ground import Deep, Escape, Ground, Installed, Spot, What
from garra.config import gate
from garra.config.gate import Gate
from garra.config.paths import Paths
from garra.config.sections import Config
from garra.core import execrules
from garra.core.errors import GarraError, UserError
from garra.core.execrules import Rules
from garra.domains.exec import approvals_rules, fenced
from garra.domains.plugins import discover
from garra.domains.plugins.discover import Plugin
from garra.io.store import look
from garra.runs import fences
from garra.runs.fences import Whom

VISITS = 2_000
"""So many folders of skills are looked at."""


def gather(found: Found, deep: Deep | None = None, given: Gate | None = None) -> Ground:
    """What the audit judges; `given` is what the gateway is started with instead of what is configured. Blocks."""
    paths, snapshot, config = found.paths, found.snapshot, found.snapshot.config
    env = snapshot.env or found.env
    try:
        hosts = gate.hosts(config)
    except UserError:
        hosts = ()
    installed = tuple(_installed(paths))
    escapes, cut = _skills(paths, config)
    return Ground(
        config,
        snapshot.resolved if snapshot.valid else {},
        snapshot.merged if snapshot.valid else {},
        given or gate.read(config, env, paths.prefix),
        hosts,
        os.path.realpath(paths.state),
        str(paths.home),
        str(snapshot.issues[0]) if snapshot.issues else "",
        tuple(_spots(paths, snapshot.included)),
        installed,
        _known(paths, installed),
        escapes,
        cut,
        tuple(_mounts(paths, config)),
        tuple(_loose(config)),
        _people(paths),
        _rules(paths),
        deep,
    )


def _spots(paths: Paths, included: tuple[str, ...]) -> Iterator[Spot]:
    yield from _spot("state_dir", paths.state)
    yield from _spot("config", paths.config_file)
    for name in included:
        yield from _spot("config_include", Path(name))
    for name in ("", "-wal", "-shm"):
        yield from _spot("database", paths.db.with_name(paths.db.name + name))
    yield from _spot("credentials_dir", paths.state / "credentials")
    yield from _spot("log_file", paths.logs)
    for agent in _inside(paths.agents):
        yield from _spot("sessions_store", agent / "sessions")
        for name in ("auth-profiles.json", "openclaw-agent.sqlite"):
            yield from _spot("auth_profiles", agent / "agent" / name)
    yield from _spot("auth_profiles", paths.state / "auth-profiles.json")


def _spot(what: What, path: Path) -> Iterator[Spot]:
    with suppress(OSError):
        facts = path.stat()
        yield Spot(what, str(path), stat.S_IMODE(facts.st_mode) & 0o777, stat.S_ISDIR(facts.st_mode), path.is_symlink())


def _inside(folder: Path) -> list[Path]:
    try:
        return sorted(each for each in folder.iterdir() if each.is_dir())
    except OSError:
        return []


def _installed(paths: Paths) -> Iterator[Installed]:
    for root in (discover.installed(), discover.extensions(paths.extensions)):
        with suppress(OSError):
            for one in root:
                if isinstance(one, Plugin):
                    yield Installed(one.id, str(one.folder))
                else:
                    yield Installed(one.folder.name, str(one.folder), one.reason)


def _known(paths: Paths, installed: tuple[Installed, ...]) -> frozenset[str]:
    """The ids of every plugin that is there; the box is read only where somebody lists plugins."""
    bundled = (one.id for one in discover.bundled(discover.box()) if isinstance(one, Plugin))
    return frozenset((*bundled, *(one.id for one in installed)))


def _skills(paths: Paths, config: Config) -> tuple[tuple[Escape, ...], str]:
    """Links among the skills of the workspaces that lead out of them, and the workspace that has too many."""
    found: dict[str, Escape] = {}
    for agent_id in config.agents.ids():
        workspace = paths.workspace(agent_id, config)
        root = os.path.realpath(workspace)
        for visits, (folder, folders, files) in enumerate(os.walk(workspace / "skills"), 1):
            if visits > VISITS:
                return tuple(found.values()), str(workspace)
            for name in (*folders, *files):
                path = os.path.join(folder, name)  # noqa: PTH118 - thousands of them
                real = os.path.realpath(path)
                if os.path.islink(path) and not f"{real}/".startswith(f"{root}/") and _skill(path, real):  # noqa: PTH114
                    found[path] = Escape(path, real)
    return tuple(found.values()), ""


def _skill(path: str, real: str) -> bool:
    """Whether a link is a skill, or a folder that has one."""
    return Path(path).name == "SKILL.md" or (Path(real) / "SKILL.md").is_file()


def _mounts(paths: Paths, config: Config) -> Iterator[str]:
    """Why the folders that agents' containers are given are refused."""
    told: dict[str, None] = {}
    for agent_id in config.agents.ids():
        fence = fences.of(config, paths, Whom(agent_id, f"agent:{agent_id}:x:group:g", "channel", guest=True))
        told |= {line: None for line in fenced.faults(fence) if line.startswith("binds: ")}
    for line in told:
        if "dangerouslyAllow" not in line:
            yield line


def _loose(config: Config) -> Iterator[str]:
    """The folders of trusted programs that others may write to."""
    for folder in config.tools.exec.safe_bin_trusted_dirs:
        with suppress(OSError):
            if Path(folder).stat().st_mode & 0o022:
                yield folder


def _people(paths: Paths) -> Mapping[str, int]:
    counts: dict[str, int] = {}
    for person in look.shelf(paths.db, "pairing-people").values():
        channel = person.get("channel") if isinstance(person, Mapping) else None
        if isinstance(channel, str):
            counts[channel] = counts.get(channel, 0) + 1
    return counts


def _rules(paths: Paths) -> Rules | None:
    stored = look.shelf(paths.db, approvals_rules.SPACE).get("document")
    try:
        return execrules.parse(stored) if stored is not None else Rules()
    except GarraError:
        return None
