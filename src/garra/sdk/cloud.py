"""What the tools of clouds leave on a machine: variables, and files of credentials. The host hands it to families."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Protocol

from garra.core.errors import Failure, FailureKind, RunFailed
from garra.sdk.model import Model

_PLACE = re.compile(r"\{([A-Z0-9_|]+)(?:=([^{}]*))?\}")


class Cloud(Protocol):
    """The port `cloud`."""

    def setting(self, *names: str) -> str:
        """The first of these variables that is set; empty where none is."""
        ...

    async def file(self, path: str) -> bytes | None:
        """A file of credentials, `~` being the owner's home; None where there is none."""
        ...


def address(model: Model, cloud: Cloud) -> str:
    """The model's address without a slash at its end. `{A|B=usual}` in it is the first of these variables that is set.

    Raises RunFailed where one is not set and has no usual value.
    """
    return filled(model, cloud.setting)


def filled(model: Model, setting: Callable[..., str]) -> str:
    """As `address`, where only variables are at hand."""

    def found(place: re.Match[str]) -> str:
        names = place[1].split("|")
        value = setting(*names) or (place[2] or "")
        if not value:
            line = f"set {names[0]}, or models.providers.{model.provider}.baseUrl"
            raise RunFailed(Failure(FailureKind.NO_KEY, line, provider=model.provider, model=model.id))
        return value

    return _PLACE.sub(found, model.base_url).rstrip("/")


def told(model: Model, cloud: Cloud, name: str, *variables: str) -> str:
    """What `params` or `compat` of the model say under `name`, else the first of these variables that is set."""
    params = model.compat.get("params")
    values: Mapping[str, object] = {**model.compat, **(params if isinstance(params, Mapping) else {})}
    return str(values.get(name) or cloud.setting(*variables) or "")
