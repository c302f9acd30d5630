"""Whose memories a turn may find. A row has one owner, and what is not known to be one's own is somebody else's.

""                        the owner's: his files, and what he said at his own screen
channel:account:sender    what one person said in a direct chat
key:<session key>         what was said in a group, or where nobody knows who it was: found in that session only
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from garra.core import keys
from garra.core.value import frozen

OWN: Final = "key:"
SKIPPED: Final = ("subagent", "acp", "cron", "hook")
"""Conversations that no person has: they are not indexed."""


@frozen
class Viewer:
    """Who looks: the session, the person (`channel:account:sender`, empty at the owner's own screen), whether the turn
    is the owner's, whether others read along (`room`). `owners` are who the owner is elsewhere (`channel:sender`, or
    the sender alone), `links` one person's names by `session.identityLinks`.
    """

    session: str
    person: str = ""
    owner: bool = False
    room: bool = False
    owners: tuple[str, ...] = ()
    links: Mapping[str, Sequence[str]] = {}


def sees(viewer: Viewer, owner: str) -> bool:
    """Whether a row of `owner` may be found by `viewer`."""
    if owner.startswith(OWN) or viewer.room:
        return owner == f"{OWN}{viewer.session}"
    if owner == "":
        return viewer.owner
    if viewer.person and (owner == viewer.person or _same(viewer, owner)):
        return True
    return viewer.owner and _is_owner(viewer, owner)


def _is_owner(viewer: Viewer, owner: str) -> bool:
    channel, _, rest = owner.partition(":")
    sender = rest.partition(":")[2]
    return bool(sender) and (f"{channel}:{sender}" in viewer.owners or sender in viewer.owners)


def _same(viewer: Viewer, owner: str) -> bool:
    """Whether both are one person's names."""
    one, other = _linked(viewer.person, viewer.links), _linked(owner, viewer.links)
    return one is not None and one == other


def _linked(person: str, links: Mapping[str, Sequence[str]]) -> str | None:
    channel, _, rest = person.partition(":")
    return keys.linked(channel, rest.partition(":")[2], links)


def owner_of(key: str, meta: Mapping[str, Any], main: str = "main") -> str:
    """Whose a message is that is stored in the session `key` with `meta`."""
    parsed = keys.parse(key, main)
    told = meta.get("provenance")
    if parsed.kind in ("group", "channel"):
        return f"{OWN}{key}"
    if isinstance(told, Mapping) and told.get("kind") == "external_user":
        return _sender(told) or f"{OWN}{key}"
    if parsed.kind == "direct":
        return f"{OWN}{key}"
    return ""


def _sender(told: Mapping[str, Any]) -> str:
    """The one person whose words a turn of a direct chat is made of; empty where that cannot be told."""
    rows = told.get("messages")
    if told.get("chatType") != "direct" or not isinstance(rows, list | tuple):
        return ""
    people = {str(row.get("senderId", "")) for row in rows if isinstance(row, Mapping)}
    sender = people.pop() if len(people) == 1 else ""
    return f"{told.get('channel')}:{told.get('accountId')}:{sender}" if sender else ""


def indexed(key: str, main: str = "main") -> bool:
    """Whether a session's words are remembered."""
    return keys.parse(key, main).kind not in SKIPPED


def viewer(key: str, who: Viewer, main: str = "main") -> Viewer:
    """`who`, in the session `key`: a group's session finds the group's words alone, whoever asks there; and the owner
    at his own screen, in the direct chat of somebody else, finds nothing that this person must not read there.
    """
    parsed = keys.parse(key, main)
    room = who.room or parsed.kind in ("group", "channel")
    if not who.person and parsed.kind == "direct" and not room:
        room = not _his(who, parsed)
    return Viewer(key, who.person, who.owner, room, who.owners, who.links)


def _his(who: Viewer, parsed: keys.Key) -> bool:
    """Whether a direct chat is the owner's own."""
    return (
        parsed.id in who.owners
        or f"{parsed.channel}:{parsed.id}" in who.owners
        or (not parsed.channel and any(entry.partition(":")[2] == parsed.id for entry in who.owners))
    )
