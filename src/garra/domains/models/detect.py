"""First run: which model to take where nobody chose one, and the sentence that says so."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from importlib import util
from typing import Literal

from garra.core.errors import NotFound
from garra.core.value import frozen
from garra.domains.models import keys
from garra.domains.models.catalog import Entry
from garra.domains.models.registry import Models
from garra.domains.models.servers import Served, served
from garra.domains.models.weights import LocalWeights, sheets
from garra.sdk.ports import Http

How = Literal["configured", "key", "server", "installed", "small", "none"]
_OFFER = (
    "For real work set a provider's key (such as ANTHROPIC_API_KEY or OPENAI_API_KEY), choose a model with"
    " `garra models set PROVIDER/MODEL`, or fetch a better local one with"
    " `garra models install-local qwen2.5-coder-1.5b`."
)


@frozen
class Pick:
    """The model that was found: `ref` as `provider/model`, empty for none; `words` is what a person is told."""

    ref: str
    how: How
    words: str


class Scout:
    """Looks around, nearest first: a key in the environment, a login that is kept, a server on its usual port, the
    small model.
    """

    def __init__(self, http: Http, weights: LocalWeights, env: Mapping[str, str]) -> None:
        self._http = http
        self._weights = weights
        self._env = env

    async def pick(self, models: Models) -> Pick:
        """What is in force now. Where nothing is configured, `models` takes what was found from here on."""
        models.installed = await asyncio.to_thread(self._weights.installed)
        chosen = models.primary()
        if chosen:
            await measure(models, self._http, chosen)
            return Pick(chosen, "configured", f"Using {chosen}, as configured.")
        entries = models.entries()
        await models.profiles.read()
        pick = _by_key(entries, self._env) or _by_login(models, entries) or await self._by_server(models, entries)
        pick = pick or await self._by_file(entries)
        models.picked = pick.ref
        return pick

    async def _by_server(self, models: Models, entries: Mapping[str, Entry]) -> Pick | None:
        asked = [entry.provider for entry in entries.values() if entry.provider.probe]
        answers = await asyncio.gather(*(served(self._http, provider) for provider in asked))
        for provider, found in zip(asked, answers, strict=True):
            talker = next((item for item in found if item.talks), None)
            if talker is not None:
                ref = f"{provider.id}/{talker.id}"
                _learn(models, provider.id, found)
                return Pick(ref, "server", f"Using {ref}: {provider.name} answers at {provider.base_url}.")
        return None

    async def _by_file(self, entries: Mapping[str, Entry]) -> Pick:
        """A model file: one that was installed, else the small one, which is fetched when it is first used."""
        if "local" not in entries or await asyncio.to_thread(util.find_spec, "xllamacpp") is None:
            return Pick("", "none", f"No model was found. {_OFFER}")
        listed = await asyncio.to_thread(sheets)
        for sheet in reversed(listed):
            if not sheet.auto and await asyncio.to_thread(self._weights.find, sheet) is not None:
                return Pick(f"local/{sheet.name}", "installed", f"Using local/{sheet.name}, which is installed here.")
        small = next(sheet for sheet in listed if sheet.auto)
        there = await asyncio.to_thread(self._weights.find, small) is not None
        fetched = "" if there else f" It is fetched first ({small.megabytes} MB)."
        words = f"Using {small.title}, a small model on this machine: it can talk, not work.{fetched} {_OFFER}"
        return Pick(f"local/{small.name}", "small", words)


def _by_key(entries: Mapping[str, Entry], env: Mapping[str, str]) -> Pick | None:
    """The owner's own providers first, then those in the box, in their order."""
    for name, entry in entries.items():
        if entry.configured and entry.rows and keys.has(entry, env):
            ref = f"{name}/{next(iter(entry.rows))}"
            return Pick(ref, "key", f"Using {ref}: it is the first model under models.providers.")
    for name, entry in entries.items():
        variable = next((variable for variable in entry.provider.key_env if env.get(variable)), None)
        if variable and entry.provider.auth == "key" and entry.provider.default and keys.has(entry, env):
            ref = f"{name}/{entry.provider.default}"
            return Pick(ref, "key", f"Using {ref}: {variable} is set.")
    return None


def _by_login(models: Models, entries: Mapping[str, Entry]) -> Pick | None:
    """The first provider of the box that a login is kept for."""
    for name, entry in entries.items():
        first = next(iter(entry.rows), "") or entry.provider.default
        if first and models.profiles.has(name):
            return Pick(f"{name}/{first}", "key", f"Using {name}/{first}: a login for {entry.provider.name} is kept.")
    return None


def _learn(models: Models, provider: str, found: tuple[Served, ...]) -> None:
    for item in found:
        if item.window is not None:
            models.learn(f"{provider}/{item.id}", item.window)


async def measure(models: Models, http: Http, ref: str) -> None:
    """Ask a server of one's own how large the model's window is, where the owner did not say."""
    try:
        model = models.resolve(ref)
    except NotFound:
        return
    entry = models.entries()[model.provider]
    if entry.provider.auth == "optional" and model.id not in entry.rows:
        _learn(models, model.provider, await served(http, entry.provider, via=model.via))
