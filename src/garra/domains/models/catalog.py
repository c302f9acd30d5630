"""The providers in the box, and what the configuration adds to them: a person's word wins, field by field."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, fields, replace
from importlib import resources
from typing import TYPE_CHECKING, Any

from garra.core.catalog import Row, merged
from garra.core.secret import Secret
from garra.core.value import frozen
from garra.sdk.model import Cost, Model
from garra.sdk.ports import DIRECT, Via
from garra.sdk.provider import Audio, Offer, Provider, parse

if TYPE_CHECKING:
    from garra.config.sections import Config
    from garra.config.sections.models import CatalogModel
    from garra.config.sections.models import Provider as Settings

SMALL_WINDOW = 32_000
"""Tokens below which a model gets the short prompt."""


@frozen
class Timeouts:
    """The owner's limits in seconds: until there is a connection, until the first sign, between two signs."""

    connect_s: float | None = None
    first_s: float | None = None
    between_s: float | None = None


@frozen
class Entry:
    """One provider as it is in force: the box's file with the configuration's fields laid over it.

    `key` is the configured secret, None where none is named. `timeout_s` is the owner's own patience with it,
    `timeouts` that with each part of a call. `params` are for all its models, `own` those of one, by `provider/model`.
    `found` are rows that its server told, `preview` such as nobody has confirmed: of a model the owner's word counts
    first, then the box's, then these, field by field.
    """

    provider: Provider
    key: Secret | None = None
    headers: Mapping[str, Secret] = field(default_factory=dict)
    via: Via = DIRECT
    timeout_s: float | None = None
    timeouts: Timeouts = Timeouts()
    rows: Mapping[str, CatalogModel] = field(default_factory=dict)
    configured: bool = False
    params: Mapping[str, Any] = field(default_factory=dict)
    own: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    found: Mapping[str, Row] = field(default_factory=dict)
    preview: Mapping[str, Row] = field(default_factory=dict)

    def model(self, model_id: str) -> Model:
        """Model `model_id` of this provider; one that is nowhere listed gets the usual measures."""
        offered = next((offer for offer in self.provider.models if offer.id == model_id), Offer(model_id))
        row = self.rows.get(model_id)
        unsaid = (self.found.get(model_id, {}), self.preview.get(model_id, {}))
        told = merged((_row(row), _told(offered), *unsaid))
        window = int(told.get("context_window") or 128_000)
        cost = Cost(**told.get("cost", {}))
        return Model(
            provider=self.provider.id,
            id=model_id,
            api=str(told.get("api") or self.provider.family),
            base_url=str(told.get("base_url") or self.provider.base_url),
            name=str(told.get("name") or model_id),
            context_window=window,
            max_tokens=int(told.get("max_tokens") or min(8_192, max(256, window // 4))),
            reasoning=bool(told.get("reasoning", False)),
            input=tuple(told.get("input") or ("text",)),
            cost=cost,
            headers=self.provider.headers,
            compat=self._compat(model_id, told.get("compat", {}), row),
            prompt=offered.prompt or ("lite" if window < SMALL_WINDOW else "full"),
            via=self.via,
        )

    def _compat(self, model_id: str, said: Mapping[str, Any], row: CatalogModel | None) -> dict[str, Any]:
        """The quirks, and under `params` what the owner wants sent along: what is said of one model counts most."""
        told = {**self.provider.compat, **said}
        rows = row.params if row is not None else {}
        params = {**self.params, **rows, **self.own.get(f"{self.provider.id}/{model_id}", {})}
        return {**told, "params": {**told.get("params", {}), **params}} if params else told

    def listed(self) -> tuple[str, ...]:
        """The models this provider is known to have, the owner's own first."""
        boxed = (offer.id for offer in self.provider.models)
        return tuple(dict.fromkeys([*self.rows, *boxed, *self.found, *self.preview]))


def shipped() -> tuple[Provider, ...]:
    """The providers in the box. Blocks: reads files."""
    folder = resources.files("garra") / "builtin" / "providers"
    texts = ((item.name, item.read_text("utf-8")) for item in folder.iterdir() if item.name.endswith(".toml"))
    return tuple(sorted((parse(text, name) for name, text in texts), key=lambda provider: provider.order))


Found = Mapping[str, Mapping[str, Row]]
"""Rows that servers told, by provider and model."""


def entries(config: Config, known: Iterable[Provider], told: Found | None = None) -> dict[str, Entry]:
    """Every provider in force, by id: those of the configuration, then the box's unless `models.mode` is replace.
    `told` is what servers said of their models.
    """
    own = dict(_own(config))
    boxed = {provider.id: provider for provider in known}
    found = {name: _laid(name, settings, boxed.get(name)) for name, settings in own.items()}
    if config.models.mode != "replace":
        found |= {name: Entry(provider) for name, provider in boxed.items() if name not in found}
    found |= {name: replace(found[name], found=rows) for name, rows in (told or {}).items() if name in found}
    return _with_params(config, found)


def _with_params(config: Config, found: dict[str, Entry]) -> dict[str, Entry]:
    """The same with the parameters that the owner set for all models, for a provider's, and for one."""
    defaults = config.agents.defaults
    own = {ref: setting.params for ref, setting in defaults.models.items() if setting.params}
    every = {name: settings.params for name, settings in _own(config) if settings.params}
    if not (own or every or defaults.params):
        return found
    return {
        name: replace(entry, params={**defaults.params, **every.get(name, {})}, own=own)
        for name, entry in found.items()
    }


def _own(config: Config) -> Iterator[tuple[str, Settings]]:
    return ((name.strip().lower(), settings) for name, settings in config.models.providers.items())


def _laid(name: str, settings: Settings, boxed: Provider | None) -> Entry:
    base = boxed or Provider(
        name, name, "openai-completions", auth="key" if settings.api_key is not None else "optional"
    )
    compat: dict[str, Any] = {"authHeader": True} if settings.auth_header else {}
    provider = replace(
        base,
        family=settings.api or (base.family if _same_route(settings, base) else base.elsewhere or base.family),
        base_url=settings.base_url or base.base_url,
        compat={**(base.compat if _same_route(settings, base) else {}), **compat},
        audio=_audio(settings, base),
        logins=_logins(settings, base),
        catalog=settings.catalog or base.catalog,
    )
    asked = settings.request if isinstance(settings.request, Mapping) else {}
    proxy = asked.get("proxy")
    address = settings.proxy or (str(proxy.get("url") or "") if isinstance(proxy, Mapping) else "")
    return Entry(
        provider,
        settings.api_key,
        settings.headers,
        Via(address or None, settings.ca_file or None) if address or settings.ca_file else DIRECT,
        settings.timeout_seconds,
        Timeouts(*_patience(settings)),
        {row.id: row for row in settings.models},
        configured=True,
    )


def _patience(settings: Settings) -> tuple[float | None, float | None, float | None]:
    told = settings.timeouts
    return told.connect_seconds, told.first_token_seconds, told.idle_seconds


def _same_route(settings: Settings, base: Provider) -> bool:
    """Whether the box's knowledge of quirks still fits: another address may be another server."""
    return not settings.base_url or settings.base_url.rstrip("/") == base.base_url.rstrip("/")


def _logins(settings: Settings, base: Provider) -> tuple[Mapping[str, Any], ...]:
    """The ways to log in with what the owner sets anew, in the words of the files of providers."""
    own = {name: {_snake(key): value for key, value in body.items()} for name, body in settings.logins.items()}
    known = [{**login, **own.pop(str(login.get("id")), {})} for login in base.logins]
    return (*known, *({"id": name, **body} for name, body in own.items()))


def _snake(key: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in key)


def _audio(settings: Settings, base: Provider) -> Audio | None:
    """What turns recordings into words there; what the owner says of it comes before all of the box."""
    known, own = base.audio, settings.audio
    if own is None:
        return known if _same_route(settings, base) else None
    usual = known or Audio()
    return Audio(own.model or usual.model, own.path or usual.path, order=0)


def _told(offer: Offer) -> dict[str, Any]:
    names = ("api", "name", "context_window", "max_tokens", "reasoning", "input")
    told = {name: value for name in names if (value := getattr(offer, name)) not in {None, ""}}
    return {**told, "cost": _costs(offer.cost), "compat": offer.compat}


def _row(row: CatalogModel | None) -> dict[str, Any]:
    """What the owner's row sets, and only that."""
    if row is None:
        return {}
    names = ("api", "base_url", "name", "context_window", "context_tokens", "max_tokens", "reasoning", "input")
    told = {name: getattr(row, name) for name in names if name in row.model_fields_set}
    cap = told.pop("context_tokens", None)
    if cap:
        told["context_window"] = min(cap, told.get("context_window") or cap)
    return {**told, "cost": _set(row.cost), "compat": row.compat}


def _costs(cost: Cost | None) -> dict[str, float]:
    return {} if cost is None else {item.name: getattr(cost, item.name) for item in fields(cost)}


def _set(section: Any) -> dict[str, float]:
    names = ("input", "output", "cache_read", "cache_write")
    return {name: getattr(section, name) for name in names if name in section.model_fields_set}
