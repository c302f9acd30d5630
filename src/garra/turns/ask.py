"""From messages that were let in to what an agent is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import Any, Final

from garra.core import groups, lanes
from garra.core.access import Admitted
from garra.core.groups import Line, Place
from garra.core.ids import RunId
from garra.core.messages import Image
from garra.core.patterns import later
from garra.core.routing import Route
from garra.core.taint import Mark
from garra.core.value import frozen
from garra.domains.delivery.inbox import InboxRow
from garra.runs.run import Turn
from garra.sdk.channel import Inbound
from garra.sdk.model import Level
from garra.turns.gate import Judged, line
from garra.turns.parts import ReplyMode

QUOTED: Final = 500
"""Characters of an answered message that the model is shown."""


@frozen
class Spoken:
    """One message that was let in, with everything its turn needs. `words` is its text without a command before it;
    `images` and `notes` what was attached; `route` names place and rights. `model` and `thinking` hold for it alone.
    `marks` tell what of it, and of what was said before it, is text from outside.
    """

    row: InboxRow
    event: Inbound
    judged: Judged
    admitted: Admitted
    routes: tuple[Route, ...]
    words: str
    images: tuple[Image, ...] = ()
    notes: tuple[str, ...] = ()
    model: str | None = None
    thinking: Level | None = None
    marks: tuple[Mark, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.admitted, Admitted):
            raise TypeError("a turn is for somebody who was admitted")

    @property
    def place(self) -> Place:
        address = self.event.address
        who = self.admitted
        return Place(
            address.channel,
            address.account,
            address.chat,
            who.sender,
            address.thread,
            not who.direct,
            who.named,
            address.parent,
            address.guild,
            who.owner,
        )

    @property
    def rights(self) -> str:
        """Messages that may share a run have the same: place, tools, and what holds for one message alone."""
        address, place = self.event.address, self.place
        near = groups.rules(self.judged.account.raw, address.chat, address.thread, address.parent, guild=address.guild)
        tools = repr(groups.tools(near, place)) if place.guest else ""
        row = groups.sender_key(self.judged.account.senders, place) or ""
        where = (address.channel, address.account, address.chat, address.thread, row)
        return "\x1f".join((*where, tools, self.model or "", self.thinking or ""))

    @property
    def line(self) -> Line:
        """Its words under its sender's label, with what was attached."""
        said = "\n".join(part for part in (reply_note(self.event), self.words, *self.notes) if part)
        return replace(line(self.event, ""), text=said)


def reply_note(event: Inbound) -> str:
    """What the message answers, as data."""
    if not event.reply_text.strip():
        return ""
    words = " ".join(groups.quoted(event.reply_text).split())
    return f'(in reply to: "{words if len(words) <= QUOTED else words[: QUOTED - 1] + "…"}")'


def text_of(spoken: Sequence[Spoken], history: Sequence[Line]) -> str:
    """What the model reads of messages that make one turn. In a group each stands under its sender's label."""
    first = spoken[0]
    if first.admitted.direct:
        return "\n".join(part for each in spoken for part in _direct(each))
    return groups.wrapped(history, [each.line for each in spoken])


def _direct(each: Spoken) -> tuple[str, ...]:
    note = reply_note(each.event)
    words = each.words.replace("[", "(", 1) if _TIME.match(each.words) else each.words
    return tuple(part for part in (note, words, *each.notes) if part)


_TIME = later(r"\s*\[[^\]\n]{0,80}\d{4}-\d{2}-\d{2}")
"""Words that would pass for the time that stands in front of a message."""


def label(spoken: Spoken) -> str:
    """Who was let in, in a line for the owner."""
    who = spoken.admitted
    rank = "owner" if who.owner else "named" if who.named else "guest"
    return f"{line(spoken.event, '').who}, {rank}"


def turn_of(spoken: Sequence[Spoken], route: Route, text: str, lane: lanes.Settings, *, number: int = 1) -> Turn:
    """The turn of one agent. It is named by its first message, so that a restart finds it again; in a round after the
    first (`number`) it hears only what the others answered.
    """
    first, begins = spoken[0], number == 1
    return Turn(
        run_id(first, route, number),
        route.key,
        route.agent,
        text,
        images=tuple(image for each in spoken for image in each.images) if begins else (),
        origin="channel",
        model=first.model,
        thinking=first.thinking,
        queue=lane.mode,
        meta={"provenance": provenance(spoken) if begins else {"kind": "broadcast", "round": number}},
        extra_system=intro(first),
        place=first.place,
        address=first.event.address,
        route=first.rights,
        marks=tuple(dict.fromkeys(mark for each in spoken for mark in each.marks)),
        lane=lane,
    )


def run_id(first: Spoken, route: Route, number: int = 1) -> RunId:
    """Of several agents each has its own run, and in each round (`number`) another."""
    if route.level != "broadcast" or (len(first.routes) == 1 and number == 1):
        return RunId(first.row.id)
    return RunId(f"{first.row.id}.{route.agent}" + (f".{number}" if number > 1 else ""))


def intro(first: Spoken) -> str:
    """What the system prompt says of the chat: the same for each turn of it."""
    group = first.judged.group
    return "" if group is None else "\n\n".join(part for part in (group_prompt(), group.prompt) if part)


@cache
def group_prompt() -> str:
    """What an agent is told of groups. Reads a file, once; call it before the loop runs."""
    return (resources.files(__package__) / "prompts" / "group.md").read_text("utf-8").strip()


def provenance(spoken: Sequence[Spoken]) -> dict[str, Any]:
    """Where a stored message came from, for people and programs; never a reason for a right."""
    address = spoken[0].event.address
    return {
        "kind": "external_user",
        "channel": address.channel,
        "accountId": address.account,
        "chatType": address.kind,
        "to": address.chat,
        **({"threadId": address.thread} if address.thread else {}),
        "messages": [
            {"id": each.event.id, "senderId": each.event.sender.id, "senderName": each.event.sender.name[:64]}
            for each in spoken
        ],
    }


def reply_mode(value: object) -> ReplyMode:
    """What a session says of replies; anything else is as configured."""
    modes: dict[object, ReplyMode] = {"off": "off", "first": "first", "all": "all"}
    return modes.get(value, "")
