"""Where reading stands, as it is stored. Pure."""

from __future__ import annotations

import msgspec

from garra.core.value import frozen


@frozen
class Invite:
    """An invitation: by whom, and whether it says that it is to a direct chat."""

    room: str
    by: str
    direct: bool = False


@frozen
class Position:
    """The token that the next sync of `user` begins with; empty at the very first.

    `open` are invitations of the first sync that were not judged yet: they are shown once only.
    """

    user: str
    since: str = ""
    open: tuple[Invite, ...] = ()

    def text(self) -> str:
        return msgspec.json.encode(self).decode()


def position(text: str | None, user: str) -> Position:
    """The stored position, or the beginning where there is none, or it is another user's."""
    try:
        found = msgspec.json.decode(text or "{}", type=Position)
    except msgspec.DecodeError:
        return Position(user)
    return found if found.user == user else Position(user)
