"""A command's plan as its session's fence wants it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace

from garra.core import containers
from garra.core.errors import ToolFailed
from garra.core.fence import Fence
from garra.core.ways import no_way
from garra.domains.exec.egress import PORT, Asked, Egress, Passage
from garra.sdk.sandbox import Exit, Opens, Plan, Sandbox


def fenced(plan: Plan, fence: Fence, name: str) -> Plan:
    """The plan within the fence. Blocks: binds are followed to where they really are.

    Raises ToolFailed where it cannot be as the owner set it.
    """
    if fault := fence.fault or next(faults(fence), ""):
        raise ToolFailed(f"No command was run: agents.defaults.sandbox.docker: {fault}")
    binds = tuple(replace(bind, source=os.path.realpath(bind.source)) for bind in fence.binds)
    return replace(
        plan, read_only=fence.access == "ro", binds=(*plan.binds, *binds), container=fence.container, name=name
    )


def faults(fence: Fence) -> Iterator[str]:
    """Why binds and container of a fence are refused. Blocks."""
    if not fence.binds and fence.container is None:
        return
    ground = replace(
        fence.ground,
        private=tuple(map(os.path.realpath, fence.ground.private)),
        roots=tuple(map(os.path.realpath, fence.ground.roots)),
    )
    yield from containers.bind_faults([(bind, os.path.realpath(bind.source)) for bind in fence.binds], ground)
    if fence.container is not None:
        yield from containers.faults(fence.container, ground)


def passage(egress: Egress | None, fence: Fence, sandbox: Sandbox, asked: Asked) -> Passage | None:
    """The way out of this sandbox; None where there is to be none, or it can make none."""
    if egress is None or not fence.ways.open or not isinstance(sandbox, Opens) or not sandbox.opens:
        return None
    return egress.passage(fence.ways, asked)


def closed(fence: Fence, sandbox: Sandbox, plan: Plan) -> str:
    """What is said of a command that wants a network where this sandbox leads none out; empty where one is."""
    if plan.network or (isinstance(sandbox, Opens) and sandbox.opens):
        return ""
    engine = fence.container
    return "" if engine is not None and engine.network != "none" else no_way(sandbox.name, len(fence.ways.listed))


def through(plan: Plan, way: Passage | None) -> Plan:
    """The plan with what leads its programs to the way out."""
    if way is None:
        return plan
    return replace(plan, env={**plan.env, **way.environment}, way_out=Exit(PORT, way.theirs.fileno()))
