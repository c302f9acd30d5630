"""A provider as data: a TOML file says which family it speaks, where, with which key, and what it offers.

id = "openrouter"
kind = "provider"
family = "openai-completions"
base_url = "https://openrouter.ai/api/v1"
key_env = ["OPENROUTER_API_KEY"]
as_of = "2026-11"                      # when windows and prices were read
[compat]                               # quirks, in the family's words
thinkingFormat = "openrouter"
[audio]                                # only where it turns recordings into words, in OpenAI's dialect
model = "whisper-large-v3-turbo"
order = 10
[[login]]                              # ways to log in beside a key, as `domains.models.ways` reads them
id = "oauth"
kind = "oauth"
[[model]]
id = "anthropic/claude-sonnet-5"
context_window = 1_000_000
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal

from garra.core.errors import UserError
from garra.core.value import frozen
from garra.sdk.model import Cost

Auth = Literal["key", "optional", "none"]


@frozen
class Offer:
    """One model of a provider; what is None is not known. Windows and limits in tokens; `api` is its family where that
    is another than the provider's.
    """

    id: str
    name: str = ""
    api: str = ""
    context_window: int | None = None
    max_tokens: int | None = None
    reasoning: bool | None = None
    input: tuple[str, ...] | None = None
    cost: Cost | None = None
    compat: Mapping[str, Any] = field(default_factory=dict)
    prompt: Literal["full", "lite"] | None = None


@frozen
class Audio:
    """How a provider turns recordings into words: `POST base_url + path`, a form as OpenAI's. `model` is taken when
    nobody chose one; of several providers the one with the smallest `order` is asked first.
    """

    model: str = ""
    path: str = "/audio/transcriptions"
    order: int = 100


@frozen
class Provider:
    """One provider. `default` is the model taken when nobody chose one; empty: ask the server what it has.

    `auth` optional means that a server of one's own usually wants no key. `probe` is asked at first run whether such
    a server is running. `aggregator`: it hands calls on to many others, so that a limit of one is no reason to rest.
    `logins` are its ways to log in, read when somebody does. `catalog` names the form of the list that its server has
    of the models a key may use: `openai` (`GET base_url/models`), `clawrouter` or `bedrock`; empty where none is asked.
    `elsewhere` is the family spoken at an address that the owner set; empty: the same. `carrier`: it has the models of
    other vendors, so that a model's bare name means theirs.
    """

    id: str
    name: str
    family: str
    base_url: str = ""
    key_env: tuple[str, ...] = ()
    auth: Auth = "key"
    default: str = ""
    probe: bool = False
    order: int = 100
    as_of: str = ""
    aliases: tuple[str, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    compat: Mapping[str, Any] = field(default_factory=dict)
    models: tuple[Offer, ...] = ()
    audio: Audio | None = None
    aggregator: bool = False
    logins: tuple[Mapping[str, Any], ...] = ()
    catalog: str = ""
    elsewhere: str = ""
    carrier: bool = False


def parse(text: str, where: str) -> Provider:
    """Read a provider file; `where` names it in errors. Raises UserError."""
    try:
        body = tomllib.loads(text)
        return Provider(
            id=str(body["id"]),
            name=str(body.get("name", body["id"])),
            family=str(body["family"]),
            base_url=str(body.get("base_url", "")),
            key_env=tuple(map(str, body.get("key_env", ()))),
            auth=body.get("auth", "key"),
            default=str(body.get("default", "")),
            probe=bool(body.get("probe", False)),
            order=int(body.get("order", 100)),
            as_of=str(body.get("as_of", "")),
            aliases=tuple(map(str, body.get("aliases", ()))),
            headers=dict(body.get("headers", {})),
            compat=dict(body.get("compat", {})),
            models=tuple(_offer(model) for model in body.get("model", ())),
            audio=Audio(**body["audio"]) if "audio" in body else None,
            aggregator=bool(body.get("aggregator", False)),
            logins=tuple(dict(login) for login in body.get("login", ())),
            catalog=str(body.get("catalog", "")),
            elsewhere=str(body.get("elsewhere", "")),
            carrier=bool(body.get("carrier", False)),
        )
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{where}: not TOML: {error}") from None
    except KeyError as error:
        raise UserError(f"{where}: {error.args[0]} is missing") from None
    except (TypeError, ValueError) as error:
        raise UserError(f"{where}: {error}") from None


def _offer(body: Mapping[str, Any]) -> Offer:
    cost = body.get("cost")
    return Offer(
        id=str(body["id"]),
        name=str(body.get("name", "")),
        api=str(body.get("api", "")),
        context_window=body.get("context_window"),
        max_tokens=body.get("max_tokens"),
        reasoning=body.get("reasoning"),
        input=tuple(body["input"]) if "input" in body else None,
        cost=Cost(**cost) if cost is not None else None,
        compat=dict(body.get("compat", {})),
        prompt=body.get("prompt"),
    )
