"""An account's settings as this channel uses them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from garra.core.secret import Secret
from garra.core.value import frozen
from garra.sdk.channel import Account
from garra.sdk.ports import Via

ROOT = "https://discord.com/api/v10"
TEXT = 2000
_MB = 1 << 20
_IN, _OUT = 25 * _MB, 10 * _MB

GUILDS, GUILD_MESSAGES, GUILD_REACTIONS = 1 << 0, 1 << 9, 1 << 10
DIRECT_MESSAGES, DIRECT_REACTIONS, MESSAGE_CONTENT = 1 << 12, 1 << 13, 1 << 15


@frozen
class Settings:
    """What the platform's side of an account needs; who may write is not among it."""

    token: Secret
    root: str
    via: Via
    text: int
    file_in: int
    file_out: int
    content: bool
    reactions: str
    previews: bool
    buttons: bool

    @property
    def intents(self) -> int:
        """What the gateway is asked to tell of."""
        found = GUILDS | GUILD_MESSAGES | DIRECT_MESSAGES
        found |= MESSAGE_CONTENT if self.content else 0
        return found | (GUILD_REACTIONS | DIRECT_REACTIONS if self.reactions != "off" else 0)


def settings(account: Account) -> Settings:
    """Read them; what is absent has Discord's own measure."""
    own = account.settings
    room = float(own.get("mediaMaxMb") or 0) * _MB
    token = own.get("token")
    return Settings(
        token=token if isinstance(token, Secret) else Secret(str(token or "")),
        root=str(own.get("apiRoot") or ROOT).rstrip("/"),
        via=Via(own.get("proxy") or None, own.get("caFile") or None),
        text=min(int(own.get("textChunkLimit") or TEXT), TEXT),
        file_in=int(room or _IN),
        file_out=int(room or _OUT),
        content=_part(own, "intents").get("messageContent") is not False,
        reactions=str(own.get("reactionNotifications") or "own"),
        previews=own.get("suppressEmbeds") is False,
        buttons=_part(own, "agentComponents").get("enabled") is not False,
    )


def _part(own: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = own.get(key)
    return found if isinstance(found, Mapping) else {}
