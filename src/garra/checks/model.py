"""Does the chosen model exist, and is there a key for it."""

from __future__ import annotations

import re

from garra.checks.finding import Finding, Ground
from garra.core import profiles
from garra.core.errors import GarraError, NotFound, RunFailed, Unavailable
from garra.domains.models import catalog, keys, logins, weights
from garra.domains.models.catalog import Entry
from garra.domains.models.names import Names, is_file
from garra.domains.plugins import known
from garra.io.clock import SystemClock

WHERE = "agents.defaults.model.primary"
_LACKING = re.compile(r'Missing env var ("\w+"(?:, "\w+")*)')


def check(ground: Ground) -> list[Finding]:
    config = ground.snapshot.config
    primary = config.agents.defaults.model.primary
    if not primary:
        return [
            Finding(
                "model", "ok", "no model is set: the first turn picks one and says which", WHERE, "garra models set"
            )
        ]
    providers = (*catalog.shipped(), *known.brought(ground.paths, config))
    named = Names(config, catalog.entries(config, providers), providers)
    try:
        provider, model = named.meant(primary)
    except NotFound as fault:
        return [Finding("model", "bad", f"{primary}: {fault.message}", WHERE, "garra models list --all")]
    if is_file(model):
        return [_file(primary, model)]
    entry = named.entries.get(provider)
    if entry is None:
        how = f"garra models list --all shows what there is; or declare models.providers.{provider}"
        return [Finding("model", "bad", f"{primary}: no provider is called {provider}", WHERE, how)]
    lacking, doubt = _key(ground, primary, entry), _listed(primary, model, entry)
    return [*lacking, *doubt] or [Finding("model", "ok", f"{primary} is chosen{_way(ground, entry)}", WHERE)]


def _way(ground: Ground, entry: Entry) -> str:
    """How it is reached, as far as that can be told without asking it."""
    if entry.provider.family == "local":
        return ", a model on this machine"
    try:
        if keys.found(entry, ground.snapshot.env or ground.env) is None:
            return "; it needs no key (it was not asked)"
    except RunFailed:
        return ", and a login for it is kept (it was not asked)"
    return ", and there is a key for it (it was not asked)"


def _file(primary: str, model: str) -> Finding:
    """A model file of one's own: whether it can be read, and is one."""
    try:
        weights.own_file(model)
    except Unavailable as fault:
        return Finding("model", "bad", f"{primary}: {fault.message}", WHERE, "write where the file is")
    return Finding("model", "ok", f"{primary} is chosen, a model file on this machine", WHERE)


def _login(ground: Ground, provider: str) -> bool:
    """Whether a login that can be used is kept for a provider."""
    if not ground.paths.db.exists():
        return False
    clock = SystemClock()
    try:
        found = logins.kept(ground.paths.db, ground.paths.agents, clock).profiles.values()
    except GarraError:
        return False
    return any(each.provider == provider and not profiles.unfit(each, clock.now_ms()) for each in found)


def _key(ground: Ground, primary: str, entry: Entry) -> list[Finding]:
    provider = entry.provider
    try:
        keys.found(entry, ground.snapshot.env or ground.env)
    except RunFailed as fault:
        if _login(ground, provider.id):
            return []
        how = f"export {' or '.join(provider.key_env)}" if provider.key_env else ""
        if entry.key is not None:
            named = _LACKING.search(fault.message)
            how = f"export {named[1].replace(chr(34), '')}" if named else fault.message
        how = how or f"set models.providers.{provider.id}.apiKey"
        return [Finding("model", "bad", f"{primary}: there is no key for {provider.id}", WHERE, how)]
    return []


def _listed(primary: str, model: str, entry: Entry) -> list[Finding]:
    """A doubt about a name that is nowhere listed; a server of one's own has what it has."""
    names = entry.listed()
    if not names or model in names or model.endswith(".gguf") or entry.provider.probe:
        return []
    what = f"{primary}: {model} is not in the catalog of {entry.provider.id}; if it is misspelt, its calls will fail"
    how = f"garra models list --all --provider {entry.provider.id} shows what it is known to have"
    return [Finding("model", "warn", what, WHERE, how)]
