"""What is known of a chat is recorded before anything follows from it: where it is, who wrote last."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final

from garra.core.routing import Route
from garra.sdk.channel import Address
from garra.turns.ask import Spoken
from garra.turns.parts import Ports

PEOPLE: Final = "people"
"""Where a session keeps who wrote to it directly, when more than one person may."""

KNOWN: Final = 20


class Recorder:
    """Keeps each session's last place, and says when a second person gets into one that is shared."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._places: OrderedDict[str, dict[str, Any]] = OrderedDict()

    async def record(self, spoken: Spoken, route: Route) -> None:
        """Make the session where there is none, and note where its last message came from."""
        ports = self._ports
        session = await ports.sessions.ensure(
            route.key, agent_id=route.agent, cwd=ports.workspace(route.agent), created_via="channel"
        )
        place = delivery(spoken.event.address)
        if spoken.admitted.direct and route.scope == "main":
            await self._shared(spoken, route, list(session.extra.get(PEOPLE) or ()))
            if not _pinned(spoken):
                return
        if self._places.get(route.key) == place and session.extra.get("deliveryContext") == place:
            return
        self._places[route.key] = place
        while len(self._places) > 2_000:
            self._places.popitem(last=False)
        kind = spoken.event.address.kind
        await ports.sessions.record(
            route.key,
            extra={
                "chatType": kind,
                "channel": place["channel"],
                "lastChannel": place["channel"],
                "lastTo": place["to"],
                "lastAccountId": place["accountId"],
                "lastThreadId": place.get("threadId"),
                "deliveryContext": place,
                "delivery": outside(place, kind),
            },
        )

    async def _shared(self, spoken: Spoken, route: Route, people: list[str]) -> None:
        """One conversation for all direct messages: say so when somebody else writes into it."""
        address = spoken.event.address
        who = f"{address.channel}:{spoken.admitted.sender}"
        if who in people:
            return
        await self._ports.sessions.record(route.key, extra={PEOPLE: [*people, who][-KNOWN:]})
        if people:
            self._ports.warn(
                f"{who} now shares the conversation {route.key} with {', '.join(people[:3])}, and they can see each "
                "other's words: session.dmScope is main. Keep people apart with: "
                "garra config set session.dmScope per-channel-peer"
            )


def _pinned(spoken: Spoken) -> bool:
    """Whether this person's place may become the main conversation's: where one owner is listed, only theirs."""
    listed = spoken.judged.account.policy.allow
    return len(listed.ids) != 1 or listed.names(spoken.admitted.sender)


def delivery(address: Address) -> dict[str, Any]:
    """A place as sessions keep it."""
    place = {"channel": address.channel, "accountId": address.account, "to": address.chat}
    return {**place, "threadId": address.thread} if address.thread else place


def outside(place: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """That a session is answered in a chat outside, as the original's entries say it; `internal` is the other kind."""
    target = {"to": place["to"], "chatType": kind}
    route = {"channel": place["channel"], "accountId": place["accountId"], "target": target}
    origin = {"provider": place["channel"], "to": place["to"], "accountId": place["accountId"], "chatType": kind}
    return {"kind": "external", "route": route, "context": dict(place), "origin": origin}


def pairing_line(channel: str, sender: str, code: str, *, brief: bool = False) -> str:
    """What a stranger is told, once; `brief`: in one line."""
    if brief:
        return (
            f"I do not know you yet, {sender}, so your message was not read. My owner can let you in, within an hour: "
            f"garra pairing approve {channel} {code}"
        )
    return (
        "This assistant does not know you yet, so your message was not read.\n\n"
        f"Your id on {channel}: {sender}\n"
        f"Pairing code: {code}\n\n"
        f"Its owner lets you in with:\ngarra pairing approve {channel} {code}\n"
        "The code is good for an hour."
    )
