"""`sessions.cleanup`, `sessions.patchMany`: keeping many conversations in order."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, ValidationError, convert, to_builtins

from garra.core.errors import GarraError, UserError
from garra.core.frames import reword
from garra.core.keys import agent_of
from garra.domains.sessions.keeping import Keeping, policy
from garra.gateway.host import Host
from garra.gateway.method import ADMIN, WRITE, Caller, Method
from garra.gateway.methods.sessions_change import SessionsPatch, patch
from garra.gateway.params import UNSET, Name, Params, UnsetType

MOST = 100
CONDITIONS = ("expectedPermissionMode", "expectedSandboxMode", "expectedNativeRuntimeConsent")


class Cleanup(Params, frozen=True):
    agent: Name | None = None
    all_agents: bool | None = None
    enforce: bool | None = None
    active_key: Name | None = None
    fix_missing: bool | None = None
    fix_dm_scope: bool | None = None
    dry_run: bool | None = None


class Target(Params, frozen=True):
    key: Name
    agent_id: Name | None = None
    expected_session_id: Name | None = None
    expected_lifecycle_revision: Name | None = None
    expected_permission_mode: str | UnsetType | None = UNSET
    expected_sandbox_mode: str | UnsetType | None = UNSET
    expected_native_runtime_consent: str | UnsetType | None = UNSET


class PatchMany(Params, frozen=True):
    targets: Annotated[tuple[Target, ...], Meta(min_length=1, max_length=MOST)]
    patch: dict[str, Any]


async def cleanup(host: Host, caller: Caller, params: Cleanup) -> dict[str, Any]:
    """Put away what is old, make room where there is too much; `session.maintenance` has the rules."""
    agent = host.agent(params.agent) if params.agent else None
    settings = host.config.session.maintenance
    spared = host.key(params.active_key) if params.active_key else ""
    working = {run.session_key for run in host.runs.every() if run.state != "ended"} | {spared}
    keeping = Keeping(host.sessions, host.paths.agents, lambda key: key in working, host.main)
    dry = params.dry_run is True or (settings.mode == "warn" and params.enforce is not True)
    done = await keeping.clean(policy(settings), host.clock.now_ms(), dry=dry, agent_id=agent)
    for key, _ in () if dry else done.archived:
        host.show.changed(key, agent_of(key, host.agent(None)), reason="archive")
    return {"ok": True, "mode": settings.mode, "dryRun": dry, **done.shown()}


async def patch_many(host: Host, caller: Caller, params: PatchMany) -> dict[str, Any]:
    """The same change to several conversations: each for itself, so that one that cannot be done stops none.

    Raises UserError for a change that no conversation could take.
    """
    try:
        wanted = [convert({**params.patch, **_wire(target)}, SessionsPatch) for target in params.targets]
    except ValidationError as fault:
        raise UserError(f"invalid sessions.patchMany params: {reword(str(fault))}") from None
    return {"outcomes": [await _patched(host, caller, each) for each in wanted]}


def _wire(target: Target) -> dict[str, Any]:
    """A target by the wire's names; null counts where it is a condition."""
    return {name: value for name, value in to_builtins(target).items() if value is not None or name in CONDITIONS}


async def _patched(host: Host, caller: Caller, wanted: SessionsPatch) -> dict[str, Any]:
    named = {"key": wanted.key} | ({"agentId": wanted.agent_id} if wanted.agent_id else {})
    try:
        await patch(host, caller, wanted)
    except GarraError as fault:
        return {"ok": False, **named, "error": {"code": fault.code, "message": fault.message}}
    return {"ok": True, **named}


METHODS: tuple[Method, ...] = (
    Method("sessions.cleanup", ADMIN, Cleanup, cleanup),
    Method("sessions.patchMany", WRITE, PatchMany, patch_many),
)
