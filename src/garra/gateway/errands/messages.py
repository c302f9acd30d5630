"""The errand of `message`: something sent, answered, changed or taken back in a chat, through the outbox.

Without a target it is the chat that the turn came from. Elsewhere only the owner's own turns send, and only where the
agent is at home already: into chats that it talks in, to people its owner lets in, to groups and targets he lists.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Final, Literal

from msgspec import Meta

from garra.core.errors import Forbidden, ToolFailed, UserError
from garra.domains.access.allowlist import read
from garra.domains.access.pairing import Pairing
from garra.domains.delivery.accounts import WEBCHAT
from garra.domains.delivery.desk import Desk, Wish
from garra.domains.delivery.draft import OutboxRow
from garra.domains.delivery.ledger import Query
from garra.domains.sessions.rows import Query as Sessions
from garra.gateway.errands.sight import Run, parsed
from garra.gateway.host import Host
from garra.gateway.methods.messages import desk, enclosed
from garra.gateway.methods.pairing import WHERE
from garra.gateway.params import Params
from garra.runs.errand import Errand
from garra.sdk.channel import Address, SendFailed

WAIT_S: Final = 20.0
OWN: Final = 500
"""Sent messages of a chat in which one to change is looked for."""


class Enclosed(Params, frozen=True):
    name: Annotated[str, Meta(max_length=1_000)]
    mime: str
    data: bytes


class Message(Params, frozen=True):
    action: Literal["send", "reply", "react", "edit", "delete"]
    call_id: str
    to: str = ""
    channel: str = ""
    account_id: str = ""
    thread_id: str = ""
    text: Annotated[str, Meta(max_length=100_000)] = ""
    message_id: str = ""
    emoji: Annotated[str, Meta(max_length=64)] = ""
    silent: bool = False
    files: Annotated[tuple[Enclosed, ...], Meta(max_length=10)] = ()


async def act(host: Host, errand: Errand, raw: Mapping[str, Any]) -> dict[str, Any]:
    params = parsed(raw, Message)
    room = desk(host)
    address = await _address(host, errand, params, room)
    if params.files and params.action not in ("send", "reply"):
        raise UserError(f"files go with send and reply, not with {params.action}")
    if params.action in ("send", "reply"):
        return await _send(room, errand, params, address)
    message_id = params.message_id or (errand.message_id if params.action == "react" and not params.to else "")
    if not message_id:
        raise UserError(f"which message? {params.action} needs messageId")
    if params.action == "react":
        await _done(room, address, "react", address, message_id, params.emoji)
        return {"status": "ok", "messageId": message_id, "chat": _chat(address)}
    row = await _ours(room, address, message_id)
    if params.action == "delete":
        await _done(room, address, "delete", address, message_id)
        return {"status": "ok", "messageId": message_id, "chat": _chat(address)}
    return await _edit(room, errand, params, row)


async def where(host: Host, errand: Errand, raw: Mapping[str, Any]) -> dict[str, Any]:
    """Where a message would go, before anybody is asked about it: raises as `act` does."""
    address = await _address(host, errand, parsed(raw, Message), desk(host))
    return {"chat": _chat(address), "own": errand.address is not None and _same(errand.address, address)}


async def _send(room: Desk, errand: Errand, params: Message, address: Address) -> dict[str, Any]:
    """The same call is sent once, however often it is made."""
    if not params.text.strip() and not params.files:
        raise UserError("there is nothing to send: give text, or files")
    kept = [await enclosed(room, address.channel, each.name, each.data, mime=each.mime) for each in params.files]
    reply_to = params.message_id or (errand.message_id if params.action == "reply" and not params.to else "")
    wish = Wish(
        _key(errand, params), f"{address.channel}:{address.chat}", params.text, address.channel, address.account,
        address.thread, reply_to, params.silent, tuple(kept),
    )  # fmt: skip
    sent = await room.send(wish, WAIT_S)
    reason = next((row.reason for row in sent.rows if row.reason), "")
    found = {"status": sent.state, "messageId": sent.message_id, "chat": _chat(sent.address)}
    return {**found, "reason": reason} if reason else found


def _key(errand: Errand, params: Message) -> str:
    return f"tool:{errand.run_id}:{params.call_id}"


def _chat(address: Address) -> str:
    thread = f":topic:{address.thread}" if address.thread else ""
    return f"{address.channel}:{address.chat}{thread}"


async def _edit(room: Desk, errand: Errand, params: Message, row: OutboxRow) -> dict[str, Any]:
    """What stands there becomes these words: through the outbox, in the order of the chat."""
    address = row.draft.address
    if not params.text.strip():
        raise UserError("into what? give text")
    if not callable(getattr(room.channel(address), "edit", None)):
        raise ToolFailed(f"{address.channel} cannot change what was sent.")
    drafts = list(room.drafting(f"send:{_key(errand, params)}", address, params.text))
    if len(drafts) != 1:
        raise ToolFailed("That is too long for one message; send it as a new one.")
    await room.outbox.put([replace(drafts[0], edits=row.platform_id, purpose="send")])
    return {"status": "ok", "messageId": row.platform_id, "chat": _chat(address)}


async def _ours(room: Desk, address: Address, message_id: str) -> OutboxRow:
    """The message, if it is one of ours in this chat: nobody else's is touched."""
    rows = await room.ledger.rows(Query("out", "", address.channel, address.account, address.chat, OWN))
    for row in rows:
        if isinstance(row, OutboxRow) and row.platform_id == message_id:
            return row
    raise ToolFailed(f"There is no message {message_id[:80]} of yours in this chat.")


async def _done(room: Desk, address: Address, name: str, *given: Any) -> None:
    """Have the channel do what it can do besides sending."""
    doing = getattr(room.channel(address), name, None)
    if not callable(doing):
        raise ToolFailed(f"{address.channel} has no such thing as {name}.")
    try:
        await doing(*given)
    except SendFailed as fault:
        raise ToolFailed(f"{address.channel} did not do it: {fault.message}") from None


async def _address(host: Host, errand: Errand, params: Message, room: Desk) -> Address:
    """Where it goes. Raises Forbidden for a chat that this turn may not write to."""
    own = errand.address
    if not params.to:
        if own is None or own.channel == WEBCHAT:
            raise UserError("This turn came from no chat: what you answer is shown to the owner. To send, give `to`.")
        return replace(own, thread=params.thread_id or own.thread)
    wish = Wish("", params.to, "", params.channel or _near(params.to, own), params.account_id, params.thread_id)
    _, address = await room.target(wish)
    if own is not None and _same(own, address):
        return address
    if not errand.owners:
        raise Forbidden("From here you write into this chat alone; only the owner's own turns send elsewhere.")
    across = host.config.tools.message.cross_context
    near = own is None or own.channel == address.channel
    if not (across.allow_within_provider if near else across.allow_across_providers):
        raise Forbidden("The owner has switched off sending into other chats (tools.message.crossContext).")
    if not await _known(host, address):
        raise Forbidden(
            f"{_chat(address)} is no chat the agent talks in. The owner adds it to tools.message.to, or lets them in."
        )
    return address


def _near(to: str, own: Address | None) -> str:
    """A chat named without its channel is one of the channel that the turn came from."""
    return own.channel if own is not None and ":" not in to and own.channel != WEBCHAT else ""


def _same(one: Address, other: Address) -> bool:
    return (one.channel, one.account, one.chat) == (other.channel, other.account, other.chat)


async def _known(host: Host, address: Address) -> bool:
    config, chat = host.config, address.chat
    if {chat, f"{address.channel}:{chat}"} & set(config.tools.message.to):
        return True
    account = read(config, address.channel, address.account)
    pairing = host.more.get(WHERE)
    paired = pairing.allowed(address.channel, address.account) if isinstance(pairing, Pairing) else None
    lists = (account.policy.allow, account.policy.owners, *((paired,) if paired else ()))
    if any(each.names(chat) for each in lists) or chat in (account.raw.get("groups") or {}):
        return True
    page = await host.sessions.list(Sessions(archived=None, limit=1_000))
    wanted = (address.channel, address.account, chat)
    places = (each.extra.get("deliveryContext") or {} for each in page.sessions)
    return any((each.get("channel"), each.get("accountId"), each.get("to")) == wanted for each in places)


ERRANDS: Mapping[str, Run] = {"message": act, "message.where": where}
