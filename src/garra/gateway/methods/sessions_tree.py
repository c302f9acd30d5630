"""`sessions.branches.list`, `.branches.switch`, `.rewind`: going back in a conversation. Nothing is ever deleted."""

from __future__ import annotations

from typing import Any

from garra.core import branches
from garra.core.errors import Conflict, NotFound, UserError
from garra.core.messages import User
from garra.gateway.host import Host
from garra.gateway.method import ADMIN, READ, Caller, Method
from garra.gateway.params import Name, Params


class Named(Params, frozen=True):
    session_key: Name
    agent_id: Name | None = None


class Switch(Params, frozen=True):
    session_key: Name
    leaf_entry_id: Name
    agent_id: Name | None = None


class Rewind(Params, frozen=True):
    session_key: Name
    entry_id: Name
    agent_id: Name | None = None


async def listed(host: Host, caller: Caller, params: Named) -> dict[str, Any]:
    """The ends that a person may go back to, the active one first."""
    key = host.key(params.session_key, params.agent_id)
    await host.session(key)
    opened = await host.sessions.transcript(key)
    rows = [
        {"leafEntryId": each.leaf, "headline": each.headline, "messageCount": each.count, "active": each.active}
        | ({"updatedAt": each.updated_at} if each.updated_at else {})
        for each in branches.listed(opened.every(), opened.leaf)
    ]
    return {"branches": rows}


async def switch(host: Host, caller: Caller, params: Switch) -> dict[str, Any]:
    """Go on at the end of another branch."""
    key = host.key(params.session_key, params.agent_id)
    session = await host.session(key)
    opened = await host.sessions.transcript(key)
    _free(host, key)
    if params.leaf_entry_id not in {each.leaf for each in branches.listed(opened.every(), opened.leaf)}:
        raise NotFound(f"session {key} has no branch that ends at {params.leaf_entry_id}")
    if opened.leaf != params.leaf_entry_id:
        await opened.branch(params.leaf_entry_id)
        host.show.changed(key, session.agent_id, reason="branch")
    return {}


async def rewind(host: Host, caller: Caller, params: Rewind) -> dict[str, Any]:
    """Go back to before a person's message; its words are given back, to be said in another way."""
    key = host.key(params.session_key, params.agent_id)
    session = await host.session(key)
    opened = await host.sessions.transcript(key)
    _free(host, key)
    entry = next((each for each in opened.entries() if each.id == params.entry_id), None)
    if entry is None:
        raise NotFound(f"session {key} has no entry {params.entry_id} on the way to its end")
    said = entry.message
    if not isinstance(said, User):
        raise UserError("only a person's message can be gone back to")
    await opened.branch(entry.parent)
    host.show.changed(key, session.agent_id, reason="rewind")
    return {"editorText": said.text}


def _free(host: Host, key: str) -> None:
    """Raises Conflict while the conversation has work under way."""
    if any(run.session_key == key and run.state != "ended" for run in host.runs.every()):
        raise Conflict("a turn is running there; stop it first, or wait for it", retryable=True)


METHODS: tuple[Method, ...] = (
    Method("sessions.branches.list", READ, Named, listed),
    Method("sessions.branches.switch", ADMIN, Switch, switch),
    Method("sessions.rewind", ADMIN, Rewind, rewind),
)
