"""`channels`: each chat channel's own settings, and what all of them share."""

from typing import Annotated, Any, Literal

from pydantic import Field

from garra.config.sections.fields import Closed, OpenSection

DmPolicy = Literal["pairing", "allowlist", "open", "disabled"]
GroupPolicy = Literal["open", "allowlist", "disabled"]


class Account(OpenSection):
    """One account on a channel. Further keys belong to the channel."""

    enabled: bool = True
    dm_policy: Annotated[DmPolicy | None, Closed("disabled")] = None
    group_policy: Annotated[GroupPolicy | None, Closed("disabled")] = None
    allow_from: tuple[str | int, ...] = ()
    group_allow_from: tuple[str | int, ...] = ()
    groups: dict[str, Any] = Field(default_factory=dict)
    proxy: str = ""
    ca_file: str = ""


class Channel(Account):
    """One channel, and its accounts when it has several."""

    accounts: dict[str, Account] = Field(default_factory=dict)
