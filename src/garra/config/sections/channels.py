"""`channels`: each chat channel's own settings, and what all of them share."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from garra.config.sections.fields import Closed, Field, OpenSection

DmPolicy = Literal["pairing", "allowlist", "open", "disabled"]
GroupPolicy = Literal["open", "allowlist", "disabled"]


class Account(OpenSection):
    """One account on a channel. Further keys belong to the channel."""

    enabled: bool = True
    dm_policy: Annotated[DmPolicy | None, Closed("disabled")] = None
    group_policy: Annotated[GroupPolicy | None, Closed("allowlist")] = None
    allow_from: tuple[str | int, ...] = ()
    group_allow_from: tuple[str | int, ...] = ()
    groups: dict[str, Any] = Field(default_factory=dict)
    proxy: str = ""
    ca_file: str = ""


class Channel(Account):
    """One channel, and its accounts when it has several."""

    accounts: dict[str, Account] = Field(default_factory=dict)


def account_rules(channels: Mapping[str, Channel], channel: str, account: str) -> dict[str, Any]:
    """What the file says of one account, by its keys: its own, else its channel's, else those of `channels.defaults`.

    Only what stands in the file is there; `accounts` is left out.
    """
    found: dict[str, Any] = {}
    shared, own = channels.get("defaults"), channels.get(channel)
    for section in (shared, own, own.accounts.get(account) if own is not None else None):
        if section is not None:
            found |= section.model_dump(by_alias=True, exclude_unset=True, exclude={"accounts"})
    return found


def accounts_of(channel: Channel) -> tuple[str, ...]:
    """The accounts of a channel, sorted; without any it is one account itself, `default`."""
    return tuple(sorted(channel.accounts)) or ("default",)


def default_account(channel: Channel) -> str:
    """The account that is meant when nobody names one."""
    named = (channel.model_extra or {}).get("defaultAccount")
    accounts = accounts_of(channel)
    if isinstance(named, str) and named:
        return named
    return "default" if "default" in accounts else accounts[0]
