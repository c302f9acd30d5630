"""Which secret a call to a provider takes. Asked anew for every call, so that a changed key counts at once."""

from __future__ import annotations

from collections.abc import Mapping

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
    named = next((env[name] for name in provider.key_env if env.get(name)), None)
    if named is not None or provider.auth == "optional":
        return named
    where = f"set {provider.key_env[0]}" if provider.key_env else f"set models.providers.{provider.id}.apiKey"
    raise _missing(provider.id, f"no key for {provider.id}: {where}, or choose another model with `garra models set`")


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
