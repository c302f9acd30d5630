"""A command's plan as its session's fence wants it."""

from __future__ import annotations

from dataclasses import replace

from garra.core.errors import ToolFailed
from garra.core.fence import Fence
from garra.domains.exec.egress import PORT, Asked, Egress, Passage
from garra.sdk.sandbox import Exit, Opens, Plan, Sandbox


def fenced(plan: Plan, fence: Fence, name: str) -> Plan:
    """The plan within the fence. Raises ToolFailed where that cannot be as the owner set it."""
    if fence.fault:
        raise ToolFailed(f"No command was run: agents.defaults.sandbox.docker: {fence.fault}")
    return replace(plan, read_only=fence.access == "ro", binds=fence.binds, container=fence.container, name=name)


def passage(egress: Egress | None, fence: Fence, sandbox: Sandbox, asked: Asked) -> Passage | None:
    """The way out of this sandbox; None where there is to be none, or it can make none."""
    if egress is None or not fence.ways.open or not isinstance(sandbox, Opens) or not sandbox.opens:
        return None
    return egress.passage(fence.ways, asked)


def through(plan: Plan, way: Passage | None) -> Plan:
    """The plan with what leads its programs to the way out."""
    if way is None:
        return plan
    return replace(plan, env={**plan.env, **way.environment}, way_out=Exit(PORT, way.theirs.fileno()))
