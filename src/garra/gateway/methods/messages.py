"""`messages.*`, `send` and `message.action`: every message's state and story, and a message sent on request."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Final, Literal

from msgspec import Meta

from garra.core.errors import Unavailable, UserError
from garra.domains.delivery.desk import Desk, Sent, Wish
from garra.domains.delivery.draft import OutboxRow
from garra.domains.delivery.inbox import InboxRow
from garra.domains.delivery.ledger import Query, Row
from garra.domains.delivery.timeline import Station
from garra.gateway.host import Host
from garra.gateway.method import READ, WRITE, Caller, Method, Reply
from garra.gateway.params import Attachment, Name, Params
from garra.sdk.channel import File, Inbound, MediaKind

DELIVERY = "delivery"
"""Where the desk stands in `Host.more`."""

WAIT_S = 20.0
"""How long `send` waits for the platform's word."""

PREVIEW = 200
"""Characters of a message in a list."""


class MessagesList(Params, frozen=True):
    direction: Literal["in", "out"] | None = None
    state: Literal["pending", "claimed", "adopted", "done", "sending", "sent", "unsure", "dead"] | None = None
    channel: str = ""
    account_id: str = ""
    chat: str = ""
    limit: Annotated[int, Meta(ge=1, le=1000)] = 50


class MessageId(Params, frozen=True):
    """`id` is an inbox id or an outbox key, or a beginning that only one has."""

    id: Name


class Send(Params, frozen=True):
    """One message to a chat. With the same `idempotencyKey` it is sent once."""

    to: Name
    idempotency_key: Name
    message: str = ""
    channel: str = ""
    account_id: str = ""
    thread_id: str | int | None = None
    reply_to_id: str | int | None = None
    silent: bool = False
    attachments: tuple[Attachment, ...] = ()
    media_url: str | None = None
    media_urls: tuple[str, ...] = ()
    session_key: str | None = None
    agent_id: str | None = None
    parse_mode: str | None = None
    gif_playback: bool = False
    force_document: bool = False


class Action(Params, frozen=True):
    """What the original's own command line sends; `params` are its options as they are."""

    action: Name
    params: dict[str, Any]
    idempotency_key: Name
    channel: str = ""
    account_id: str = ""
    session_key: str | None = None
    session_id: str | None = None
    agent_id: str | None = None
    sender_is_owner: bool | None = None
    conversation_read_origin: str | None = None
    requester_sender_id: str | None = None
    tool_context: dict[str, Any] | None = None


def desk(host: Host) -> Desk:
    """Raises Unavailable where nothing delivers."""
    found = host.more.get(DELIVERY)
    if not isinstance(found, Desk):
        raise Unavailable("no channel is running here: garra channels add sets one up")
    return found


async def listed(host: Host, caller: Caller, params: MessagesList) -> dict[str, Any]:
    query = Query(params.direction, params.state or "", params.channel, params.account_id, params.chat, params.limit)
    room = desk(host)
    counts = [
        {"channel": channel, "accountId": account, **states}
        for (channel, account), states in sorted((await room.ledger.counts()).items())
        if params.channel in ("", channel) and params.account_id in ("", account)
    ]
    rows = await room.ledger.rows(query)
    if params.channel and not rows:
        room.known(params.channel)
    found = [_explained(room, row) for row in rows]
    return {"ts": host.clock.now_ms(), "messages": found, "unfinished": counts}


async def unfinished(host: Host) -> dict[str, int]:
    """How many messages of all chats are not at their end, and how many came to a bad one: `waiting`, `working`,
    `sending`, `unsure`, `dead`. Empty where nothing delivers.
    """
    found = host.more.get(DELIVERY)
    if not isinstance(found, Desk):
        return {}
    sums = dict.fromkeys(("waiting", "working", "sending", "unsure", "dead"), 0)
    for states in (await found.ledger.counts()).values():
        for state, count in states.items():
            sums[_KINDS[state]] += count
    return sums


_KINDS: Final[Mapping[str, str]] = {
    "in.pending": "waiting",
    "in.claimed": "working",
    "in.adopted": "working",
    "in.dead": "dead",
    "out.pending": "sending",
    "out.sending": "sending",
    "out.unsure": "unsure",
    "out.dead": "dead",
}


async def got(host: Host, caller: Caller, params: MessageId) -> dict[str, Any]:
    room = desk(host)
    row = await room.ledger.find(params.id)
    answers = [_explained(room, answer, whole=True) for answer in await room.ledger.answers(row)]
    story = [told(station) for station in await room.ledger.story(row)]
    return {"message": _explained(room, row, whole=True), "answers": answers, "timeline": story}


def _explained(room: Desk, row: Row, *, whole: bool = False) -> dict[str, Any]:
    """A message with the reason why it waits, where its account is the reason."""
    message = shown(row, whole=whole)
    if isinstance(row, OutboxRow) and (why := room.waits_for(row)):
        message["reason"] = f"{why} ({row.reason})" if row.reason else why
    return message


async def retried(host: Host, caller: Caller, params: MessageId) -> dict[str, Any]:
    return {"ok": True, "message": shown(await desk(host).ledger.retry(params.id))}


async def dropped(host: Host, caller: Caller, params: MessageId) -> dict[str, Any]:
    return {"ok": True, "message": shown(await desk(host).ledger.drop(params.id))}


async def send(host: Host, caller: Caller, params: Send) -> Reply:
    room = desk(host)
    if params.media_url or params.media_urls:
        raise UserError("mediaUrl is not taken here: send the file itself in attachments")
    wish = Wish(
        params.idempotency_key,
        params.to,
        params.message,
        params.channel,
        params.account_id,
        _text(params.thread_id),
        _text(params.reply_to_id),
        params.silent,
    )
    files = [await _file(room, (await room.target(wish))[0].channel, each) for each in params.attachments]
    return _reply(params.idempotency_key, await room.send(replace(wish, files=tuple(files)), WAIT_S))


async def act(host: Host, caller: Caller, params: Action) -> Reply:
    """Of the original's actions, `send`; its dry run says where it would go."""
    if params.action != "send":
        raise UserError(f"the action {params.action[:40]} is not known here: send is")
    asked = params.params
    wish = Wish(
        params.idempotency_key,
        _text(asked.get("to") or asked.get("target")),
        _text(asked.get("message")),
        params.channel or _text(asked.get("channel")),
        params.account_id or _text(asked.get("accountId")),
        _text(asked.get("threadId")),
        _text(asked.get("replyTo")),
        asked.get("silent") is True,
    )
    if asked.get("dryRun") is True:
        _, address = await desk(host).target(wish)
        return Reply({"dryRun": True, "channel": address.channel, "accountId": address.account, "to": address.chat})
    if asked.get("media"):
        raise UserError("media is not taken here: use garra message send --media, which sends the file itself")
    return _reply(params.idempotency_key, await desk(host).send(wish, WAIT_S))


def _reply(key: str, sent: Sent) -> Reply:
    address = sent.address
    payload = {
        "runId": key,
        "messageId": sent.message_id,
        "channel": address.channel,
        "accountId": address.account,
        "chatId": address.chat,
        "threadId": address.thread or None,
        "state": sent.state,
        "ids": [row.key for row in sent.rows],
    }
    if sent.state == "dead":
        dead = next(row for row in sent.rows if row.state == "dead")
        line = f"it was not delivered: {dead.reason}; once that is mended: garra messages retry {dead.key}"
        return Reply(payload, Unavailable(line))
    return Reply(payload)


def _text(value: object) -> str:
    return str(value).strip() if isinstance(value, str | int) and not isinstance(value, bool) else ""


async def _file(room: Desk, channel: str, each: Attachment) -> File:
    """An attachment, stored below the media root. Raises UserError for what is no base64."""
    content = each.content.partition(",")[2] if str(each.content).startswith("data:") else each.content
    try:
        data = base64.b64decode(content, validate=True)
    except (binascii.Error, TypeError, ValueError):
        raise UserError(f"{each.file_name or 'the attachment'} is no base64") from None
    mime = each.mime_type or "application/octet-stream"
    return await enclosed(room, channel, each.file_name or "file", data, mime=mime)


async def enclosed(room: Desk, channel: str, name: str, data: bytes, *, mime: str) -> File:
    """A file that is to be sent, stored below the media root. Raises Unavailable."""
    return (await room.media.add(channel, name, data, mime=mime, kind=_kind(mime))).file()


def _kind(mime: str) -> MediaKind:
    kinds: Mapping[str, MediaKind] = {"image": "image", "audio": "audio", "video": "video"}
    return kinds.get(mime.partition("/")[0], "file")


def shown(row: Row, *, whole: bool = False) -> dict[str, Any]:
    """A message as JSON; its text cut to a line unless `whole`."""
    return _inbound(row, whole=whole) if isinstance(row, InboxRow) else _outbound(row, whole=whole)


def _inbound(row: InboxRow, *, whole: bool) -> dict[str, Any]:
    event = row.event
    place = event.address
    message: dict[str, Any] = {
        "id": row.id,
        "direction": "in",
        "state": row.state,
        "channel": place.channel if place else None,
        "accountId": place.account if place else None,
        "chat": place.chat if place else None,
        "thread": (place.thread or None) if place else None,
        "platformId": event.id,
        "at": row.received_at,
        "updatedAt": row.updated_at,
        "tries": row.tries,
        "runId": row.run_id or None,
        "sessionKey": row.session_key or None,
        "reason": row.why or None,
    }
    if isinstance(event, Inbound):
        message |= {"event": event.event, "text": event.text if whole else event.text[:PREVIEW]}
        message["sender"] = {"id": event.sender.id, "name": event.sender.name}
        message["media"] = [{"kind": media.kind, "name": media.name, "size": media.size} for media in event.media]
    return message


def _outbound(row: OutboxRow, *, whole: bool) -> dict[str, Any]:
    draft = row.draft
    return {
        "id": row.key,
        "direction": "out",
        "state": row.state,
        "channel": draft.address.channel,
        "accountId": draft.address.account,
        "chat": draft.address.chat,
        "thread": draft.address.thread or None,
        "platformId": row.platform_id or None,
        "at": row.created_at,
        "updatedAt": row.updated_at,
        "dueAt": row.due_at or None,
        "tries": row.tries,
        "inboxId": row.inbox_id or None,
        "runId": draft.run_id or None,
        "purpose": draft.purpose,
        "text": draft.text if whole else draft.text[:PREVIEW],
        "files": [{"name": file.name, "size": file.size} for file in draft.files],
        "reason": row.reason or None,
    }


def told(station: Station) -> dict[str, Any]:
    return {
        "at": station.at,
        "message": station.message,
        "station": station.station,
        "detail": station.detail or None,
        "words": station.words,
    }


METHODS: tuple[Method, ...] = (
    Method("messages.list", READ, MessagesList, listed, startup=True),
    Method("messages.get", READ, MessageId, got, startup=True),
    Method("messages.retry", WRITE, MessageId, retried, startup=True),
    Method("messages.drop", WRITE, MessageId, dropped, startup=True),
    Method("send", WRITE, Send, send, startup=True),
    Method("message.action", WRITE, Action, act, startup=True),
)
