"""Which secret a call to a provider takes. Asked anew for every call, so that a changed key counts at once."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from garra.core.errors import Failure, FailureKind, RunFailed
from garra.core.secret import Secret
from garra.domains.models.catalog import Entry


def found(entry: Entry, env: Mapping[str, str]) -> str | None:
    """The secret, None where none is needed. Raises RunFailed (missing_key) with a line on what to set."""
    provider = entry.provider
    if provider.auth == "none":
        return None
    if entry.key is not None:
        return _revealed(entry.key, provider.id, f"models.providers.{provider.id}.apiKey")
    named = next(_named(provider.id, provider.key_env, env), None)
    if named is not None or provider.auth == "optional":
        return named
    where = f"set {provider.key_env[0]}" if provider.key_env else f"set models.providers.{provider.id}.apiKey"
    raise _missing(provider.id, f"no key for {provider.id}: {where}, or choose another model with `garra models set`")


def several(entry: Entry, env: Mapping[str, str]) -> tuple[str, ...]:
    """All secrets for a provider, the first to be taken first; empty where none is needed. Raises RunFailed as `found`.

    Beside `X_API_KEY` the environment may have `X_API_KEYS` (parted by commas, semicolons or blanks), which comes
    first, and `X_API_KEY_…`, which come last. `GARRA_LIVE_X_KEY` is the only one where it is set.
    """
    if entry.key is None and entry.provider.auth != "none":
        many = tuple(dict.fromkeys(_named(entry.provider.id, entry.provider.key_env, env)))
        if many:
            return many
    one = found(entry, env)
    return () if one is None else (one,)


def _named(provider: str, names: tuple[str, ...], env: Mapping[str, str]) -> Iterator[str]:
    shout = re.sub(r"\W", "_", provider).upper()
    if only := env.get(f"GARRA_LIVE_{shout}_KEY") or env.get(f"OPENCLAW_LIVE_{shout}_KEY"):
        yield only
        return
    for name in names:
        if listed := env.get(f"{name}S"):
            yield from filter(None, re.split(r"[,;\s]+", listed))
        if one := env.get(name):
            yield one
    prefixes = tuple(f"{name}_" for name in names)
    if prefixes:
        more = (name for name in sorted(env) if name.startswith(prefixes) and not name.endswith("_FILE"))
        yield from filter(None, map(env.__getitem__, more))


def has(entry: Entry, env: Mapping[str, str]) -> bool:
    """Whether a call could be made."""
    try:
        found(entry, env)
    except RunFailed:
        return False
    return True


def headers(entry: Entry) -> dict[str, str]:
    """The configured headers with their secrets, for one call. Raises RunFailed as `found`."""
    at = f"models.providers.{entry.provider.id}.headers"
    return {name: _revealed(value, entry.provider.id, f"{at}.{name}") for name, value in entry.headers.items()}


def _revealed(secret: Secret, provider: str, at: str) -> str:
    if not secret or secret.missing:
        why = secret.missing or f"{at} is empty, or names a variable that is not set"
        raise _missing(provider, f"no key for {provider}: {why}")
    text = secret.reveal()
    if "${" in text:
        raise _missing(provider, f"no key for {provider}: {at} names a variable that is not set")
    return text


def _missing(provider: str, line: str) -> RunFailed:
    return RunFailed(Failure(FailureKind.NO_KEY, line, provider=provider))
