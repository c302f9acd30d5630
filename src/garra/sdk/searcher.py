"""Who can search the web, as data: where to ask, what our arguments are called there, where the results stand."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal

from garra.core.errors import UserError
from garra.core.value import frozen


@frozen
class Searcher:
    """One of them. `url` is its origin, `path` what is asked there; `env` are variables that may hold its key.

    `names` maps `query`, `count`, `freshness`, `language`, `country` to its own names (what is absent it does not
    know), `words` the values of `freshness`. `more` is always sent. `key` is a header and its form. `rows` is the
    dotted place of the results, `fields` where `title`, `url`, `text` and `age` stand in each. `base_env` may hold
    its address; one without `url` exists only where the owner gives one.
    """

    id: str
    name: str
    url: str = ""
    path: str = ""
    method: Literal["GET", "POST"] = "GET"
    form: Literal["query", "json"] = "query"
    reads: Literal["json", "duckduckgo"] = "json"
    order: int = 100
    env: tuple[str, ...] = ()
    base_env: str = ""
    keyless: bool = False
    key: tuple[str, str] | None = None
    most: int = 10
    names: Mapping[str, str] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)
    more: Mapping[str, Any] = field(default_factory=dict)
    rows: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)


def parse(text: str, where: str) -> Searcher:
    """Read one from TOML. Raises UserError that names the file and the fault."""
    try:
        body = tomllib.loads(text)
        key = body.pop("key", None)
        return Searcher(
            **{**body, "env": tuple(body.get("env", ()))}, key=(str(key["header"]), str(key["form"])) if key else None
        )
    except (tomllib.TOMLDecodeError, TypeError, KeyError) as error:
        raise UserError(f"{where}: {error}") from None
