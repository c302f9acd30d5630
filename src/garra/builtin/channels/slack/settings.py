"""An account's settings as this channel uses them."""

from __future__ import annotations

from typing import Any

from garra.core.secret import Secret
from garra.core.value import frozen
from garra.sdk.channel import Account
from garra.sdk.ports import Via

ROOT = "https://slack.com/api"
TEXT = 4000
_MB = 1 << 20


@frozen
class Settings:
    """What the platform's side of an account needs; who may write is not among it."""

    bot: Secret
    app: Secret
    root: str
    via: Via
    text: int
    files: int
    reactions: str
    unfurl: tuple[tuple[str, bool], ...]


def settings(account: Account) -> Settings:
    """Read them; what is absent has Slack's own measure."""
    own = account.settings
    unfurl = [("unfurl_links", own.get("unfurlLinks") is True)]
    if isinstance(own.get("unfurlMedia"), bool):
        unfurl.append(("unfurl_media", own["unfurlMedia"]))
    return Settings(
        bot=_secret(own.get("botToken")),
        app=_secret(own.get("appToken")),
        root=str(own.get("apiRoot") or ROOT).rstrip("/"),
        via=Via(own.get("proxy") or None, own.get("caFile") or None),
        text=min(int(own.get("textChunkLimit") or TEXT), TEXT),
        files=int(float(own.get("mediaMaxMb") or 20) * _MB),
        reactions=str(own.get("reactionNotifications") or "own"),
        unfurl=tuple(unfurl),
    )


def _secret(value: Any) -> Secret:
    return value if isinstance(value, Secret) else Secret(str(value or ""))
