"""`channels.*`: every account of every chat channel as it stands; start, stop, and forget one."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any

from msgspec import Meta

from garra.config.load import Snapshot
from garra.config.write import Writer
from garra.core.errors import GarraError, NotFound, Unavailable
from garra.domains.delivery.accounts import DEFAULT, WEBCHAT, LinkKey, Setup
from garra.domains.delivery.desk import Desk
from garra.domains.delivery.link import LinkStatus, State
from garra.domains.delivery.links import Links
from garra.gateway.host import Host
from garra.gateway.method import ADMIN, READ, Caller, Method
from garra.gateway.methods.messages import DELIVERY
from garra.gateway.params import Name, Params

LIFECYCLE: Mapping[State, str] = {
    "stopped": "stopped",
    "starting": "starting",
    "connected": "ready",
    "stalled": "recovering",
    "waiting": "recovering",
    "refused": "blocked",
}
"""Our states in the words of the protocol."""


class ChannelsStatus(Params, frozen=True):
    """`probe` asks each running channel what it knows of itself; that is no network either."""

    probe: bool = False
    timeout_ms: Annotated[int, Meta(ge=0)] | None = None
    channel: Name | None = None


class ChannelsAccount(Params, frozen=True):
    channel: Name
    account_id: Name | None = None


def links(host: Host) -> Links:
    """Raises Unavailable where no channels are kept."""
    found = host.more.get("links")
    if not isinstance(found, Links):
        raise Unavailable("channels are not ready yet; try again in a moment")
    return found


def status(host: Host, caller: Caller, params: ChannelsStatus) -> dict[str, Any]:
    """Raises NotFound for a channel that no plugin brings."""
    found = listed(host, params.channel, probe=params.probe, own=True)
    room = host.more.get(DELIVERY)
    if params.channel and not found["channelOrder"] and isinstance(room, Desk):
        room.known(params.channel)
    return {"ts": host.clock.now_ms(), **found}


def listed(host: Host, channel: str | None = None, *, probe: bool = False, own: bool = False) -> dict[str, Any]:
    """What is told of channels, here and in `health`; empty where none are kept. `own`: the gateway's own chat too,
    which stands last.
    """
    kept = host.more.get("links")
    found = [] if not isinstance(kept, Links) else [one for one in kept.status() if channel in (None, one.key.channel)]
    found = [one for one in found if own or one.key.channel != WEBCHAT]
    order = sorted({one.key.channel for one in found}, key=lambda name: (name == WEBCHAT, name))
    setups = {one.key: kept.setup(one.key) for one in found} if isinstance(kept, Links) else {}
    labels = {name: _label(setups, name) for name in order}
    accounts = {
        name: [
            account(one, setups[one.key], _known(kept, one.key) if probe else None)
            for one in found
            if one.key.channel == name
        ]
        for name in order
    }
    return {
        "channelOrder": order,
        "channelLabels": labels,
        "channelDetailLabels": labels,
        "channelSystemImages": {},
        "channelMeta": [{"id": name, "label": labels[name], "detailLabel": labels[name]} for name in order],
        "channels": {name: _summary(accounts[name]) for name in order},
        "channelAccounts": accounts,
        "channelDefaultAccountId": {name: _default(host, name, accounts[name]) for name in order},
        "statusIssues": [issue for one in found if (issue := _issue(one)) is not None],
    }


def _label(setups: Mapping[LinkKey, Setup | None], channel: str) -> str:
    return next(
        (setup.label for key, setup in setups.items() if setup and setup.label and key.channel == channel), channel
    )


def _known(kept: Any, key: LinkKey) -> Mapping[str, Any]:
    try:
        told: Mapping[str, Any] = kept.inspect(*key)
    except GarraError as fault:
        return {"ok": False, "error": fault.message}
    return {"ok": True, **told}


def account(one: LinkStatus, setup: Setup | None, known: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """One account as the protocol shows it."""
    running = one.state not in {"stopped", "refused"}
    row = {
        "accountId": one.key.account,
        "name": one.name or None,
        "enabled": one.enabled,
        "configured": one.configured,
        "running": running,
        "connected": one.state == "connected",
        "lifecycle": LIFECYCLE[one.state],
        "statusState": one.state,
        "stateReason": one.fault or None,
        "stalledSince": one.since_ms if one.state == "stalled" else None,
        "restartPending": one.state == "waiting",
        "nextStartAt": one.next_ms,
        "reconnectAttempts": one.attempts,
        "lastError": one.fault or None,
        "lastStartAt": one.started_ms,
        "lastStopAt": one.stopped_ms,
        "lastConnectedAt": one.connected_ms,
        "lastTransportActivityAt": one.alive_ms,
        "lastInboundAt": one.inbound_ms,
        "lastOutboundAt": None,
        "note": one.note or None,
        "bot": None if one.me is None else {"id": one.me.id, "username": one.me.handle, "name": one.me.name},
        "dmPolicy": None if setup is None or setup.channel == WEBCHAT else _dm_policy(setup),
        "probe": None if known is None else dict(known),
    }
    for key, source in (setup.sources if setup else {}).items():
        row.setdefault("tokenSource", source)
        row[f"{key}Source"] = source
    return {key: value for key, value in row.items() if value is not None}


def _dm_policy(setup: Setup) -> str:
    return str(setup.account.settings.get("dmPolicy") or "pairing")


def _summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """A channel by its best account."""
    best = max(rows, key=lambda row: (row["connected"], row["running"], row["configured"]))
    return {key: best[key] for key in ("configured", "running", "connected", "lastError", "lifecycle") if key in best}


def _default(host: Host, channel: str, rows: list[dict[str, Any]]) -> str:
    section = host.live.snapshot.resolved.get("channels", {}).get(channel) or {}
    names = [row["accountId"] for row in rows]
    chosen = section.get("defaultAccount", DEFAULT)
    return str(chosen) if chosen in names else names[0]


def _issue(one: LinkStatus) -> dict[str, Any] | None:
    """What the owner should mend."""
    if not one.enabled or not one.fault or one.state in {"starting", "connected"}:
        return None
    kind = {"refused": "auth", "stopped": "config"}.get(one.state, "runtime")
    return {"channel": one.key.channel, "accountId": one.key.account, "kind": kind, "message": one.fault}


def start(host: Host, caller: Caller, params: ChannelsAccount) -> dict[str, Any]:
    key = _meant(host, params)
    found = links(host).start(*key)
    return {"channel": key.channel, "accountId": key.account, "started": found.state != "stopped"}


async def stop(host: Host, caller: Caller, params: ChannelsAccount) -> dict[str, Any]:
    key = _meant(host, params)
    found = await links(host).stop(*key)
    return {"channel": key.channel, "accountId": key.account, "stopped": found.state == "stopped"}


async def logout(host: Host, caller: Caller, params: ChannelsAccount) -> dict[str, Any]:
    """Stop it and take its credentials out of the configuration."""
    key = _meant(host, params)
    setup = links(host).setup(key)
    await links(host).stop(*key)
    place = ["channels", key.channel] + ([] if key.account == DEFAULT else ["accounts", key.account])
    stored = [name for name, source in (setup.sources if setup else {}).items() if source == "config"]
    for name in stored:
        await host.live.change(partial(_forget, place=(*place, *name.split("."))))
    return {"channel": key.channel, "accountId": key.account, "cleared": bool(stored), "loggedOut": True}


def _forget(writer: Writer, place: tuple[str, ...]) -> Snapshot:
    return writer.unset(place)


def _meant(host: Host, params: ChannelsAccount) -> LinkKey:
    """The account named, or the channel's default one. Raises NotFound."""
    rows = [key for key in links(host).accounts() if key.channel == params.channel]
    if not rows:
        raise NotFound(f"no channel {params.channel[:64]!r} is configured; add it with: garra channels add")
    if params.account_id:
        return LinkKey(params.channel, params.account_id)
    return next((key for key in rows if key.account == DEFAULT), rows[0])


METHODS: tuple[Method, ...] = (
    Method("channels.status", READ, ChannelsStatus, status),
    Method("channels.start", ADMIN, ChannelsAccount, start),
    Method("channels.stop", ADMIN, ChannelsAccount, stop),
    Method("channels.logout", ADMIN, ChannelsAccount, logout),
)
