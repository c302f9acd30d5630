"""Which providers turn recordings into words, and how each is reached."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import field

from garra.core.errors import NotFound
from garra.core.value import frozen
from garra.domains.models import keys
from garra.domains.models.catalog import Entry
from garra.domains.models.names import Names
from garra.sdk.ports import Via
from garra.sdk.provider import Audio


@frozen
class Listener:
    """One provider for one call: `headers` hold its secrets, `secret` the key among them (empty: none)."""

    provider: str
    url: str
    model: str
    via: Via
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    secret: str = field(default="", repr=False)


@frozen
class Listening:
    """The providers in force, seen as listeners. `primary` names the model that answers by default; `kept` gives the
    key that is kept for a provider, empty where there is none.
    """

    names: Names
    env: Mapping[str, str]
    primary: str = ""
    kept: Callable[[str], str] = lambda _: ""

    def ready(self) -> tuple[str, ...]:
        """Those that could be asked now: the provider that answers anyway, the owner's own, the box's in its order."""
        able = [entry for entry in self.names.entries.values() if self._able(entry)]
        answers = self._answers()
        able.sort(key=lambda entry: (entry.provider.id != answers, _audio(entry).order, entry.provider.id))
        return tuple(entry.provider.id for entry in able)

    def listener(self, provider: str, model: str = "", base_url: str = "") -> Listener:
        """How to ask `provider`. Raises NotFound where it cannot hear, RunFailed (missing_key)."""
        entry = self.names.entries.get(self.names.canonical(provider))
        if entry is None:
            raise NotFound(f"no provider is called {provider}")
        base = base_url or entry.provider.base_url
        chosen = model or _audio(entry).model
        if not base or not chosen or (entry.provider.audio is None and not entry.provider.family.startswith("openai")):
            raise NotFound("it turns nothing into words here: name its model, or set models.providers.ID.audio")
        secret = self.kept(entry.provider.id) or keys.found(entry, self.env) or ""
        headers = {name.lower(): value for name, value in {**entry.provider.headers, **keys.headers(entry)}.items()}
        if secret:
            headers = {"authorization": f"Bearer {secret}"} | headers
        return Listener(entry.provider.id, base.rstrip("/") + _audio(entry).path, chosen, entry.via, headers, secret)

    def _able(self, entry: Entry) -> bool:
        provider = entry.provider
        meant = provider.auth == "key" or entry.configured
        known = provider.audio is not None and bool(provider.audio.model and provider.base_url)
        return known and meant and (bool(self.kept(provider.id)) or keys.has(entry, self.env))

    def _answers(self) -> str:
        """The provider of the model that answers; empty where none is chosen."""
        with suppress(NotFound):
            return self.names.meant(self.primary).provider if self.primary else ""
        return ""


def _audio(entry: Entry) -> Audio:
    return entry.provider.audio or Audio()
