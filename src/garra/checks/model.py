"""Does the chosen model exist, and is there a key for it."""

from __future__ import annotations

from garra.checks.finding import Finding, Ground
from garra.domains.models import catalog, keys

WHERE = "agents.defaults.model.primary"


def check(ground: Ground) -> list[Finding]:
    config = ground.snapshot.config
    primary = config.agents.defaults.model.primary
    if not primary:
        return [
            Finding(
                "model", "ok", "no model is set: the first turn picks one and says which", WHERE, "garra models set"
            )
        ]
    entries = catalog.entries(config, catalog.shipped())
    provider = primary.partition("/")[0]
    entry = entries.get(provider)
    if entry is None:
        how = f"garra models list shows what there is; or declare models.providers.{provider}"
        return [Finding("model", "bad", f"{primary}: no provider is called {provider}", WHERE, how)]
    if not keys.has(entry, ground.snapshot.env or ground.env):
        names = " or ".join(entry.provider.key_env) or f"models.providers.{provider}.apiKey"
        return [Finding("model", "bad", f"{primary}: there is no key for {provider}", WHERE, f"set {names}")]
    return [Finding("model", "ok", f"{primary} answers, and there is a key for it", WHERE)]
