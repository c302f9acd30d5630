"""`chat.*`: say something in a session, stop it, read what was said."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from garra.core.errors import Conflict, UserError
from garra.core.ids import RunId
from garra.core.keys import agent_of
from garra.core.messages import Assistant, Text
from garra.core.value import replace
from garra.domains.delivery.accounts import WEBCHAT
from garra.domains.sessions.session import Session
from garra.gateway import commands, kin
from garra.gateway.history import displayed, shortened
from garra.gateway.host import Host
from garra.gateway.inbound import Said, asked, images_of, level, meta_of
from garra.gateway.ledgers import conflict, digest, user_key
from garra.gateway.method import ADMIN, READ, WRITE, Caller, Method
from garra.gateway.methods.models import model_rows
from garra.gateway.params import UNSET, Attachment, Index, Limit, Name, Params, UnsetType
from garra.gateway.reading import ChatHistory, read, spoken
from garra.runs.run import Turn
from garra.sdk.channel import Sender
from garra.turns.queueing import MODES
from garra.turns.webchat import WebChat

RECENT = 500
"""Entries in which a message that is sent again is looked for."""

LARGEST = 26_213_376
"""Bytes of one message that still fit a frame."""

Queue = Literal["steer", "followup", "collect", "interrupt"]
Key = Annotated[str, Meta(min_length=1, max_length=512)]


class ChatSend(Params, frozen=True):
    """One message. `idempotency_key` becomes the run's id. What this gateway has no use for is taken and ignored."""

    session_key: Key
    message: str
    idempotency_key: Name
    agent_id: Name | None = None
    session_id: Name | None = None
    mentions: tuple[Any, ...] = ()
    work_context: dict[str, Any] | None = None
    intent: dict[str, Any] | None = None
    thinking: str | None = None
    fast_mode: bool | Literal["auto"] | None = None
    fast_auto_on_seconds: Limit | None = None
    queue_mode: Queue | None = None
    deliver: bool | None = None
    originating_channel: str | None = None
    originating_to: str | None = None
    originating_account_id: str | None = None
    originating_thread_id: str | None = None
    reply_to_id: Name | None = None
    attachments: tuple[Attachment, ...] = ()
    tool_bindings: dict[str, Any] | None = None
    timeout_ms: Index | None = None
    system_input_provenance: dict[str, Any] | None = None
    system_provenance_receipt: str | None = None
    suppress_command_interpretation: bool = False
    expected_leaf_entry_id: str | UnsetType | None = UNSET
    expected_session_routing_contract: Name | None = None
    expected_permission_mode: str | UnsetType | None = UNSET
    expected_tool_overrides: dict[str, Any] | UnsetType | None = UNSET


class ChatAbort(Params, frozen=True):
    session_key: Name
    run_id: Name | None = None
    agent_id: Name | None = None
    preserve_side_runs: bool | None = None


class ChatInject(Params, frozen=True):
    session_key: Name
    message: Name
    agent_id: Name | None = None
    label: Annotated[str, Meta(max_length=100)] | None = None


async def send(host: Host, caller: Caller, params: ChatSend) -> dict[str, Any]:
    """Answers at once; what comes of it comes as events."""
    said = Said(
        key=host.key(params.session_key, params.agent_id),
        text=params.message.replace("\x00", ""),
        run_id=RunId(params.idempotency_key),
        images=images_of(params.attachments),
        thinking=level(params.thinking),
        queue=params.queue_mode,
        timeout_s=None if params.timeout_ms is None else params.timeout_ms / 1000,
    )
    if not said.text.strip() and not said.images:
        raise UserError("invalid chat.send params: message or attachment required")
    return await say(host, caller, said, params)


async def say(host: Host, caller: Caller, said: Said, params: ChatSend | None = None) -> dict[str, Any]:
    """Start `said` once: the same key again tells how far it is. Raises Conflict when it meant something else."""
    claim, new = host.ledgers.chat.claim(said.run_id, asked(said))
    if not new:
        return {"runId": said.run_id, "status": "ok" if claim.done is not None else "in_flight"}
    try:
        return await _start(host, caller, said, params)
    except BaseException:
        host.ledgers.chat.release(claim)
        raise


async def _start(host: Host, caller: Caller, said: Said, params: ChatSend | None) -> dict[str, Any]:
    began = host.clock.monotonic()
    command = None if params and params.suppress_command_interpretation else commands.parse(said.text)
    session = await host.ensure(said.key)
    if "delivery" not in session.extra and "deliveryContext" not in session.extra:
        session = await host.sessions.record(said.key, extra={"delivery": {"kind": "internal"}})
    transcript = await host.sessions.transcript(said.key)
    loaded = host.clock.monotonic()
    stored = host.ledgers.keys.find(transcript.session_id, transcript.messages(), user_key(said.run_id))
    if stored is not None:
        rest = "" if command is None else commands.remainder(host, session, command)
        if stored not in (digest(said.text), digest(rest)):
            raise conflict("chat-request-conflict")
        return {"runId": said.run_id, "status": _standing(host, said.run_id)}
    if params and isinstance(leaf := params.expected_leaf_entry_id, str):
        _on_branch(transcript.entries(), leaf)
    if command is not None and host.runs.find(said.run_id) is not None:
        return {"runId": said.run_id, "status": _standing(host, said.run_id)}
    if command is not None and (rest := await commands.begun(host, session, command, caller)):
        said, command = replace(said, text=rest), None
        session = await host.ensure(said.key)
    if command is not None:
        host.spawn(commands.run(host, session, command, caller, run_id=said.run_id), "chat command")
        host.ledgers.chat.end(said.run_id)
        return {"runId": said.run_id, "status": "started"}
    with host.show.expected(said.run_id, caller):
        await _submit(host, turn(said, session, caller), caller)
    host.show.changed(said.key, session.agent_id, reason="send")
    now = host.clock.monotonic()
    timing = {"receivedToAckMs": round((now - began) * 1000, 3), "loadSessionMs": round((loaded - began) * 1000, 3)}
    return {"runId": said.run_id, "status": "started", "serverTiming": timing}


async def _submit(host: Host, wanted: Turn, caller: Caller) -> None:
    """Kept like a message of any channel, where the gateway keeps messages."""
    kept = host.more.get(WEBCHAT)
    if isinstance(kept, WebChat):
        await kept.submit(wanted, Sender(caller.who.profile or "operator", caller.client.display_name or ""))
    else:
        await host.runs.submit(wanted)


def _standing(host: Host, run_id: RunId) -> str:
    """How far a message is that was stored before this process, or this connection, knew of it."""
    run = host.runs.find(run_id)
    if run is not None and run.state != "ended":
        return "in_flight"
    host.ledgers.chat.end(run_id)
    return "ok"


def _on_branch(entries: Any, leaf: str) -> None:
    if not any(entry.id == leaf for entry in reversed(entries)):
        details = {"reason": "active-leaf-changed"}
        raise Conflict("the conversation has moved on; reload it and send again", details=details)


def turn(said: Said, session: Session, caller: Caller) -> Turn:
    return Turn(
        said.run_id,
        said.key,
        session.agent_id,
        said.text,
        images=said.images,
        model=said.model,
        thinking=said.thinking,
        timeout_s=said.timeout_s,
        queue=said.queue or MODES.get(str(session.extra.get("queueMode"))),
        meta=meta_of(said.run_id, caller),
        extra_system=said.extra_system,
    )


async def abort(host: Host, caller: Caller, params: ChatAbort) -> dict[str, Any]:
    """The `chat` event that says so goes out before this answer."""
    runs = await stop(host, host.key(params.session_key, params.agent_id), params.run_id)
    return {"ok": True, "aborted": bool(runs), "runIds": runs}


async def stop(host: Host, key: str, run_id: str | None = None, reason: str = "rpc") -> list[RunId]:
    """Abort what runs in a session, with all that works for it, or one run of it with what that had started; the ids of
    what was stopped.
    """
    runs = await host.runs.abort(key, run_id, reason)
    if run_id is None:
        await kin.stop_under(host, key)
    await host.show.aborted(runs, reason)
    return runs


class ChatMessage(Params, frozen=True):
    session_key: Name
    message_id: Name
    agent_id: Name | None = None
    max_chars: Annotated[int, Meta(ge=1)] = 1_000_000


class ChatMetadata(Params, frozen=True):
    agent_id: Name | None = None
    auth_profile_id: Name | None = None
    session_key: Name | None = None


async def history(host: Host, caller: Caller, params: ChatHistory) -> dict[str, Any]:
    return await read(host, params)


async def message(host: Host, caller: Caller, params: ChatMessage) -> dict[str, Any]:
    """One message whole, for where a page showed a part of it."""
    _, entries = await spoken(host, host.key(params.session_key, params.agent_id))
    for at, entry in enumerate(entries):
        if entry.id == params.message_id:
            row = shortened(displayed(entry.body, at + 1), params.max_chars)
            if len(msgspec.json.encode(row)) > LARGEST:
                return {"ok": False, "unavailableReason": "oversized"}
            return {"ok": True, "message": row}
    return {"ok": False, "unavailableReason": "not_found"}


async def inject(host: Host, caller: Caller, params: ChatInject) -> dict[str, Any]:
    """Put words into a session as if the agent had said them; no model is asked."""
    text = f"[{params.label}]\n\n{params.message}" if params.label else params.message
    return {"ok": True, "messageId": await put(host, host.key(params.session_key, params.agent_id), text)}


async def put(host: Host, named: str, text: str, once: str = "") -> str:
    """Say `text` in a session as if the agent had; the entry's id. What has the key `once` already is not said again.
    Raises NotFound for a session that is not there; an agent's own one is made.
    """
    key = host.key(named)
    own = key == f"agent:{agent_of(key, host.config.agents.default_id())}:{host.main}"
    session = await (host.ensure(key) if own else host.session(key))
    transcript = await host.sessions.transcript(session.key)
    for entry in reversed(transcript.entries()[-RECENT:] if once else ()):
        if isinstance(entry.body, Assistant) and entry.body.meta.get("idempotencyKey") == once:
            return entry.id
    meta = {"idempotencyKey": once} if once else {}
    words = Assistant((Text(text),), host.clock.now_ms(), api="gateway", provider="gateway", meta=meta)
    entry = await transcript.append(words)
    host.show.tell(f"inject-{entry.id}", session.key, session.agent_id, text)
    host.show.changed(session.key, session.agent_id, phase="message", messageId=entry.id)
    return entry.id


def metadata(host: Host, caller: Caller, params: ChatMetadata) -> dict[str, Any]:
    """What the composer offers: models and commands."""
    agent = host.agent(params.agent_id)
    return {
        "models": model_rows(host, agent),
        "commands": [commands.listed(each) for each in commands.COMMANDS],
        "swarmEnabled": False,
        "accountSelection": {"kind": "automatic", "label": "Automatic account selection"},
        "runtimeSelectionLocked": False,
    }


METHODS: tuple[Method, ...] = (
    Method("chat.send", WRITE, ChatSend, send, startup=True),
    Method("chat.abort", WRITE, ChatAbort, abort),
    Method("chat.history", READ, ChatHistory, history, startup=True),
    Method("chat.startup", READ, ChatHistory, history, startup=True),
    Method("chat.message.get", READ, ChatMessage, message, startup=True),
    Method("chat.metadata", READ, ChatMetadata, metadata, startup=True),
    Method("chat.inject", ADMIN, ChatInject, inject, advertised=False),
)
