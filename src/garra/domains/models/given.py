"""The logins that nobody made: a provider's keys in the configuration and the environment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from garra.core.profiles import Profile
from garra.core.secret import Secret
from garra.domains.models import keys
from garra.domains.models.catalog import Entry


def implicit(entry: Entry, env: Mapping[str, str]) -> tuple[Profile, ...]:
    """The logins that configuration and environment give. Raises RunFailed where one is needed and none is there."""
    provider = entry.provider.id
    several = keys.several(entry, env)
    if not several:
        return (Profile("", provider, "api_key"),)
    where = "config" if entry.key is not None else "env"
    ids: Iterable[str] = (f"{provider}:{where}{number or ''}" for number in (0, *range(2, len(several) + 1)))
    return tuple(Profile(id_, provider, "api_key", Secret(text)) for id_, text in zip(ids, several, strict=False))


def bypassed(entry: Entry) -> bool:
    """Whether a provider hands calls on to many others, so that one's fault says nothing of the rest."""
    return entry.provider.aggregator
