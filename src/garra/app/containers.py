"""The containers of this installation: listed and removed by asking the engines, whether a gateway runs or not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal

from garra.builtin.sandbox.engines.engine import Docker, Podman
from garra.builtin.sandbox.engines.standing import Standing, images, standing
from garra.config.paths import Paths
from garra.config.sections import Config
from garra.core.errors import Unavailable
from garra.core.value import frozen
from garra.domains.exec.boxes import chore_by, probe_by
from garra.io.clock import SystemClock
from garra.io.env import Environment
from garra.io.process.door import Programs
from garra.runs import fences
from garra.runs.fences import Whom

KINDS = {"docker": Docker, "podman": Podman}


@frozen
class Wanted:
    """Which are meant: all, those of an agent, or those of one scope as the list names it."""

    by: Literal["all", "agent", "session"] = "all"
    name: str = ""

    def takes(self, scope: str) -> bool:
        match self.by:
            case "all":
                return True
            case "session":
                return scope == self.name
            case "agent":
                return scope == f"agent:{self.name}" or scope.startswith(f"agent:{self.name}:")


@frozen
class Asking:
    """Whose containers: of this configuration and state. `places` says where clients are, besides the usual folders."""

    config: Config
    paths: Paths
    env: Environment
    places: Mapping[str, Sequence[str]] = MappingProxyType({})


async def listed(asking: Asking) -> list[dict[str, Any]]:
    """The containers there are, as `sandbox list --json` has them. Raises Unavailable where an engine is silent."""
    now, found = SystemClock().now_ms(), list[dict[str, Any]]()
    programs = Programs()
    try:
        for engine in await _engines(asking, programs):
            rows = await standing(engine.asked, fences.installation(asking.paths))
            found += [_row(engine.name, row, asking, now) for row in rows]
    finally:
        await programs.close()
    return found


async def removed(asking: Asking, wanted: Wanted) -> tuple[list[str], list[str]]:
    """End and remove containers, and the images that their setups made: their names, and what could not be removed."""
    gone, failed = list[str](), list[str]()
    programs, mark = Programs(), fences.installation(asking.paths)
    try:
        for engine in await _engines(asking, programs):
            for row in await standing(engine.asked, mark):
                if wanted.takes(row.scope):
                    done = await engine.asked("rm", "--force", "--volumes", "--", row.id)
                    (gone if done.code == 0 else failed).append(row.name)
            for name, scope in await images(engine.asked, mark):
                if wanted.takes(scope):
                    done = await engine.asked("image", "rm", "--force", name)
                    (gone if done.code == 0 else failed).append(f"image {name[:19]} ({scope})")
    finally:
        await programs.close()
    return gone, failed


async def _engines(asking: Asking, programs: Programs) -> Sequence[Docker]:
    """The engines that are set, each of which answers."""
    found: list[Docker] = []
    for name in fences.backends(asking.config):
        engine = KINDS[name](
            probe=probe_by(programs), engine=asking.env, chore=chore_by(programs), programs=asking.places.get(name, ())
        )
        answered = await engine.available()
        if not answered.ok:
            raise Unavailable(f"{answered.reason}; {answered.remedy}")
        found.append(engine)
    return found


def _row(backend: str, row: Standing, asking: Asking, now: int) -> dict[str, Any]:
    whom = Whom(_agent(row), row.session or row.scope, "channel", guest=True)
    wanted = fences.of(asking.config, asking.paths, whom).container
    return {
        "containerName": row.name,
        "backendId": backend,
        "runtimeLabel": row.name,
        "sessionKey": row.scope,
        "createdAtMs": row.created_at,
        "lastUsedAtMs": now if row.running else row.created_at,
        "image": row.image,
        "configLabelKind": "Image",
        "configHash": row.config,
        "running": row.running,
        "imageMatch": wanted is not None and wanted.image == row.image,
        "configMatch": wanted is not None and wanted.digest == row.config,
    }


def _agent(row: Standing) -> str:
    parts = row.session.split(":")
    return parts[1] if len(parts) > 1 and parts[0] == "agent" else "main"
