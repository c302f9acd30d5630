"""The chat accounts of this installation, without a gateway: found, switched off, taken out."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from garra.core import dotted
from garra.core.errors import NotFound
from garra.faces.cli.place import Place

if TYPE_CHECKING:
    from garra.domains.delivery.accounts import Setup
    from garra.domains.plugins.discover import Plugin

DEFAULT = "default"


def known(here: Place) -> tuple[list[Plugin], list[Setup]]:
    """The channels there are (plugins), and the accounts configured in them."""
    accounts = importlib.import_module("garra.app.accounts")  # reads manifests and the configuration, no more
    channels, setups = accounts.local(here.paths, here.env)
    return channels, setups


def plugin(here: Place, channel: str) -> Plugin:
    """The plugin that brings a channel. Raises NotFound."""
    channels, _ = known(here)
    found = next((one for one in channels for part in one.manifest.parts if part.name == channel), None)
    if found is None:
        names = sorted(part.name for one in channels for part in one.manifest.parts)
        near = difflib.get_close_matches(channel, names, n=1)
        meant = f"did you mean {near[0]}?" if near else f"there is {', '.join(names)}"
        raise NotFound(f"there is no channel {channel!r} here; {meant}")
    return found


def one(setups: list[Setup], channel: str, account: str) -> Setup | None:
    return next((setup for setup in setups if (setup.channel, setup.account.id) == (channel, account)), None)


def placed(here: Place, channel: str, account: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """`values` as a merge into the configuration, where that account has its keys."""
    listed = _section(here, channel).get("accounts") or {}
    plain = account == DEFAULT and DEFAULT not in listed
    return {"channels": {channel: dict(values) if plain else {"accounts": {account: dict(values)}}}}


def nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values by path (`nickserv.password`) as the objects they lie in."""
    found: dict[str, Any] = {}
    for path, value in values.items():
        *above, last = (str(part) for part in dotted.parse(path))
        inner = found
        for part in above:
            inner = inner.setdefault(part, {})
        inner[last] = value
    return found


def write(here: Place, merged: Mapping[str, Any]) -> None:
    """Merge into the configuration. Raises what its writer raises."""
    writing = importlib.import_module("garra.config.write")  # the configuration's types are heavy
    writing.Writer(here.paths, here.env).patch(dict(merged))


def switched_off(here: Place, channel: str, account: str) -> None:
    """The account keeps its settings, and has no link; the channel's other accounts go on. Raises NotFound."""
    if _others(here, channel, account) and account == DEFAULT:  # the channel's own `enabled` is that of all accounts
        write(here, {"channels": {channel: {"accounts": {DEFAULT: {"enabled": False}}}}})
    else:
        write(here, placed(here, channel, account, {"enabled": False}))


def removed(here: Place, channel: str, account: str) -> bool:
    """Take an account out of the configuration. Raises NotFound.

    False: it is off only, since the channel's own keys make it an account, and others have theirs from those.
    """
    if not _others(here, channel, account):
        _take_out(here, channel, [()])
    elif account != DEFAULT:
        _take_out(here, channel, [("accounts", account)])
    else:
        accounts = importlib.import_module("garra.domains.delivery.accounts")
        schema = plugin(here, channel).manifest.settings
        if accounts.bare(schema):
            switched_off(here, channel, account)
            return False
        keys = ("name", *accounts.credentials(schema))
        _take_out(here, channel, [("accounts", DEFAULT), *(tuple(key.split(".")) for key in keys)])
    return True


def _take_out(here: Place, channel: str, places: Sequence[tuple[str, ...]]) -> None:
    """Remove what stands at these places of a channel; how much of the file goes with it is its owner's wish."""
    writing = importlib.import_module("garra.config.write")
    change = importlib.import_module("garra.core.merge").Change
    there = [("channels", channel, *at) for at in places if _has(_section(here, channel), at)]
    writing.Writer(here.paths, here.env).apply([change(path, None, gone=True) for path in there])


def _has(section: Mapping[str, Any], path: tuple[str, ...]) -> bool:
    at: Any = section
    for part in path:
        if not isinstance(at, Mapping) or part not in at:
            return False
        at = at[part]
    return True


def _section(here: Place, channel: str) -> Mapping[str, Any]:
    """What the configuration says of a channel, as plain values."""
    channels = here.config.get("channels")
    section = channels.get(channel) if isinstance(channels, dict) else None
    return section if isinstance(section, dict) else {}


def _others(here: Place, channel: str, account: str) -> list[Setup]:
    """The other accounts of a channel. Raises NotFound where the one named is none."""
    setups = known(here)[1]
    if one(setups, channel, account) is None:
        raise NotFound(f"there is no account {channel}/{account}: see {here.command} channels list")
    return [setup for setup in setups if setup.channel == channel and setup.account.id != account]
