"""`channels.pairing.*`: strangers who wrote to a chat account, and those who were let in by a code."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Literal

from garra.config.sections.channels import account_rules, accounts_of
from garra.core import access
from garra.core.errors import GarraError, Unavailable, UserError
from garra.core.transcript import stamp
from garra.domains.access.pairing import VALID_MS, WAITING, Happened, Pairing, Person, Request
from garra.domains.delivery.desk import Desk
from garra.gateway.host import Host
from garra.gateway.method import ADMIN, PAIRING, Caller, Method
from garra.gateway.methods.messages import DELIVERY
from garra.gateway.params import Name, Params
from garra.sdk.channel import Address

log = logging.getLogger(__name__)

WHERE = "pairing"
"""Where the register stands in `Host.more`."""

Owned = Literal["configured", "already-configured", "unavailable", "not-requested"]


class Asked(Params, frozen=True):
    channel: Name | None = None
    account_id: Name | None = None


class Answered(Params, frozen=True):
    """A request, by its id or by the code its sender was given."""

    channel: Name
    account_id: Name | None = None
    request_id: Name | None = None
    code: Name | None = None
    notify: bool = False
    bootstrap_command_owner: bool = False


class Dismissed(Params, frozen=True):
    channel: Name
    request_id: Name
    account_id: Name | None = None


class Revoked(Params, frozen=True):
    channel: Name
    sender_id: Name
    account_id: Name | None = None


def register(host: Host) -> Pairing:
    """Raises Unavailable where no chats are kept."""
    found = host.more.get(WHERE)
    if not isinstance(found, Pairing):
        raise Unavailable("chats are not ready yet; try again in a moment")
    return found


def watch(host: Host) -> Callable[[], None]:
    """Tell the gateway's clients of every change. The call ends it."""

    def happened(change: Happened) -> None:
        payload = {"channel": change.channel, "accountId": change.account, "senderId": change.sender}
        if change.what == "requested":
            host.hub.publish("channels.pairing.requested", {**payload, "ts": host.clock.now_ms()}, scope=PAIRING)
        else:
            told = {**payload, "decision": change.what, "ts": host.clock.now_ms()}
            host.hub.publish("channels.pairing.resolved", told, scope=PAIRING)

    return register(host).subscribe(happened)


def listing(host: Host, caller: Caller, params: Asked) -> dict[str, Any]:
    pairing = register(host)
    channel, account = (params.channel or "").lower(), params.account_id or ""
    return {
        "accounts": [row for row in accounts(host) if channel in ("", row["channel"])],
        "requests": [request_row(each) for each in pairing.waiting(channel, account)],
        "people": [person_row(each) for each in pairing.people(channel, account)],
        "commandOwnerConfigured": bool(host.config.commands.get("ownerAllowFrom")),
        "limits": {"pendingPerAccount": WAITING, "ttlMs": VALID_MS},
    }


def accounts(host: Host) -> list[dict[str, Any]]:
    """The accounts where strangers get a code."""
    config = host.config
    return [
        {"channel": name, "channelLabel": name.capitalize(), "accountId": account, "notifySupported": True}
        for name, channel in config.channels.items()
        if name != "defaults"
        for account in accounts_of(channel)
        if account_rules(config.channels, name, account).get("dmPolicy", "pairing") == "pairing"
    ]


async def approve(host: Host, caller: Caller, params: Answered) -> dict[str, Any]:
    if params.bootstrap_command_owner:
        caller.require(ADMIN)
    pairing, channel = register(host), params.channel.lower()
    if params.request_id is not None:
        _fits(params.request_id, channel, params.account_id)
        person = await pairing.approve_request(params.request_id)
    elif params.code is not None:
        person = await pairing.approve(channel, params.code, params.account_id or "", guessing=False)
    else:
        raise UserError("channels.pairing.approve needs a requestId or a code")
    owner: Owned = await own(host, person) if params.bootstrap_command_owner else "not-requested"
    notified = await greet(host, person) if params.notify else "not-requested"
    return {
        "requestId": params.request_id or request_id(person),
        "senderId": person.sender,
        "accountId": person.account,
        "notification": notified,
        "commandOwnerBootstrap": owner,
    }


async def own(host: Host, person: Person) -> Owned:
    """Make them the first owner of commands, where there is none."""
    if host.config.commands.get("ownerAllowFrom"):
        return "already-configured"
    try:
        await host.put("commands.ownerAllowFrom", [owner_entry(person)])
    except GarraError as error:
        log.warning("%s was let in, but is no owner: %s", person.sender, error.message)
        return "unavailable"
    return "configured"


def owner_entry(person: Person) -> str:
    """How `commands.ownerAllowFrom` names them."""
    return f"{person.channel}:{person.sender}"


async def greet(host: Host, person: Person) -> str:
    """Tell them, by the outbox: it is on its way when this returns."""
    desk = host.more.get(DELIVERY)
    if not isinstance(desk, Desk):
        return "unsupported"
    address = Address(person.channel, person.account, person.chat or person.sender, "direct")
    key = f"paired:{request_id(person)}:{person.approved_at}"
    try:
        await desk.outbox.put(desk.drafting(key, address, "You have been let in. Say anything."))
    except GarraError as error:
        log.warning("%s was not told: %s", person.sender, error.message)
        return "failed"
    return "queued"


async def dismiss(host: Host, caller: Caller, params: Dismissed) -> dict[str, Any]:
    _fits(params.request_id, params.channel.lower(), params.account_id)
    request = await register(host).dismiss(params.request_id)
    return {"requestId": params.request_id, "senderId": request.sender}


async def revoke(host: Host, caller: Caller, params: Revoked) -> dict[str, Any]:
    """`commandOwner`: what became of the ownership that an approval may have given; `stillListed`: the lists of the
    configuration that name them all the same.
    """
    pairing = register(host)
    person = await pairing.revoke(params.channel.lower(), params.sender_id, params.account_id or "")
    elsewhere = any(each.sender == person.sender for each in pairing.people(person.channel))
    disowned = not elsewhere and ADMIN in caller.scopes and await disown(host, person)
    return {
        "channel": person.channel,
        "accountId": person.account,
        "senderId": person.sender,
        "commandOwner": "removed" if disowned else "not-changed",
        "stillListed": lists(host, person),
    }


async def disown(host: Host, person: Person) -> bool:
    """Make them the owner of commands no more, where an entry of the form that an approval writes says they are."""
    written = list(host.config.commands.get("ownerAllowFrom") or ())
    kept = [each for each in written if each != owner_entry(person)]
    if kept == written:
        return False
    try:
        await host.put("commands.ownerAllowFrom", kept)
    except GarraError as error:
        log.warning("%s was let out, but stays the owner: %s", person.sender, error.message)
        return False
    return True


def lists(host: Host, person: Person) -> list[str]:
    """The places of the configuration that name them, by their paths."""
    config, channel = host.config, person.channel
    allowed = account_rules(config.channels, channel, person.account).get("allowFrom") or ()
    found = {
        f"channels.{channel}.allowFrom": access.people(allowed, channel, config.access_groups),
        "commands.ownerAllowFrom": access.owners(config.commands.get("ownerAllowFrom") or (), channel),
    }
    return [path for path, people in found.items() if people.names(person.sender)]


def _fits(request: str, channel: str, account: str | None) -> None:
    """Raises UserError for a request of another account than the one named."""
    if not request.startswith(f"{channel}:{account}:" if account else f"{channel}:"):
        raise UserError("pending DM access request no longer exists")


def request_id(who: Person | Request) -> str:
    return f"{who.channel}:{who.account}:{who.sender}"


def request_row(request: Request) -> dict[str, Any]:
    """A request as clients know it."""
    shown = {"name": request.name, "username": request.handle}
    return {
        "requestId": request.id,
        "channel": request.channel,
        "channelLabel": request.channel.capitalize(),
        "accountId": request.account,
        "senderId": request.sender,
        "senderLabel": "id",
        "metadata": {key: value for key, value in shown.items() if value},
        "code": request.code,
        "createdAt": stamp(request.created_at),
        "lastSeenAt": stamp(request.seen_at),
        "expiresAt": stamp(request.expires_at),
        "notifySupported": True,
    }


def person_row(person: Person) -> dict[str, Any]:
    """Somebody who was let in."""
    return {
        "channel": person.channel,
        "accountId": person.account,
        "senderId": person.sender,
        "name": person.name,
        "approvedAt": stamp(person.approved_at),
    }


METHODS: tuple[Method, ...] = (
    Method("channels.pairing.list", PAIRING, Asked, listing),
    Method("channels.pairing.approve", PAIRING, Answered, approve),
    Method("channels.pairing.dismiss", PAIRING, Dismissed, dismiss),
    Method("channels.pairing.revoke", PAIRING, Revoked, revoke),
)
