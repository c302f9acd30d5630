"""An account's settings as this channel uses them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from garra.builtin.channels.telegram.api import ROOT
from garra.builtin.channels.telegram.codec import KINDS
from garra.core.secret import Secret
from garra.core.value import frozen
from garra.sdk.channel import Account
from garra.sdk.ports import Via

HOOK = "/telegram-webhook"
_MB = 1 << 20
_IN, _OUT = 20 * _MB, 50 * _MB


@frozen
class Settings:
    """What the platform's side of an account needs; who may write is not among it."""

    token: Secret
    root: str
    via: Via
    text: int
    file_in: int
    file_out: int
    link_preview: bool
    buttons: str
    kinds: tuple[str, ...]
    reactions: str
    menu: bool
    commands: tuple[tuple[str, str], ...]
    hook_url: str
    hook_path: str
    hook_secret: Secret


def settings(account: Account) -> Settings:
    """Read them; what is absent has Telegram's own measure."""
    own = account.settings
    room = float(own.get("mediaMaxMb") or 0) * _MB
    return Settings(
        token=_secret(own.get("botToken")),
        root=str(own.get("apiRoot") or ROOT),
        via=Via(own.get("proxy") or None, own.get("caFile") or None),
        text=min(int(own.get("textChunkLimit") or 4000), 4096),
        file_in=int(min(room or _IN, _IN)),
        file_out=int(min(room or _OUT, _OUT)),
        link_preview=own.get("linkPreview") is not False,
        buttons=_buttons(own.get("capabilities")),
        kinds=tuple(kind for kind in KINDS if kind != "message_reaction" or own.get("reactionNotifications") != "off"),
        reactions=str(own.get("reactionNotifications") or "own"),
        menu=(own.get("commands") or {}).get("native") is not False,
        commands=_commands(own.get("customCommands") or ()),
        hook_url=str(own.get("webhookUrl") or ""),
        hook_path=str(own.get("webhookPath") or (HOOK if account.id == "default" else f"{HOOK}/{account.id}")),
        hook_secret=_secret(own.get("webhookSecret")),
    )


def _secret(value: Any) -> Secret:
    return value if isinstance(value, Secret) else Secret(str(value or ""))


def _buttons(value: Any) -> str:
    """Where buttons are shown; the older form is a list of abilities."""
    if isinstance(value, Mapping):
        return str(value.get("inlineButtons") or "all")
    return "all" if not isinstance(value, list) or "inlineButtons" in value else "off"


def _commands(listed: Any) -> tuple[tuple[str, str], ...]:
    found = ((str(one["command"]).lstrip("/").lower(), str(one["description"])) for one in listed)
    return tuple((name, text) for name, text in found if name.replace("_", "").isalnum() and len(name) <= 32)
