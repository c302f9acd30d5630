"""`models.auth*` and `models.probe`: the logins of providers, for their owner. No secret goes out."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Iterable
from typing import Annotated, Any, Literal, Protocol

from msgspec import UNSET, Meta, UnsetType

from garra.core.errors import NotFound, Unavailable, UserError
from garra.core.profiles import OWNER, Profile
from garra.core.secret import Secret
from garra.domains.models.logins import Logins
from garra.domains.models.registry import Models
from garra.gateway.host import Host
from garra.gateway.method import ADMIN, READ, Caller, Method
from garra.gateway.params import Name, Params
from garra.gateway.parts import ModelRow
from garra.gateway.work import LOGINS

Id = Annotated[str, Meta(min_length=1, max_length=256)]


class Keeping(Protocol):
    """The logins of this house. `refresh` asks servers which models they have, all or one."""

    logins: Logins

    @property
    def models(self) -> Models: ...

    async def refresh(self, only: str = "") -> Any: ...


class AuthStatus(Params, frozen=True):
    refresh: bool = False
    agent_id: str | None = None


class AuthRefresh(Params, frozen=True):
    operation: Literal["login", "logout", "update"]
    agent_id: str | None = None


class AuthSetApiKey(Params, frozen=True, forbid_unknown_fields=False):
    provider: Name
    api_key: Annotated[str, Meta(min_length=1, max_length=16_384)]
    agent_id: str | None = None


class AuthLogout(Params, frozen=True):
    provider: Name
    profile_ids: Annotated[tuple[Id, ...], Meta(min_length=1)] | UnsetType = UNSET
    credential_type: Literal["api_key"] | None = None
    agent_id: str | None = None


class AuthOrderSet(Params, frozen=True):
    provider: Name
    profile_ids: Annotated[tuple[Id, ...], Meta(min_length=1)] | UnsetType = UNSET
    agent_id: str | None = None


class Probe(Params, frozen=True):
    provider: Name
    profile_id: Id | None = None
    timeout_ms: Annotated[int, Meta(ge=1)] | None = None
    agent_id: str | None = None


def keeping(host: Host) -> Keeping:
    """Raises Unavailable where there is none yet."""
    found: Keeping | None = host.more.get(LOGINS)
    if found is None:
        raise Unavailable("the logins of providers are not ready yet; try again in a moment", retryable=True)
    return found


async def auth_status(host: Host, caller: Caller, params: AuthStatus) -> dict[str, Any]:
    """Per provider, which logins there are and how they stand, and whether there is a key; never the key."""
    rows = host.models.rows()
    names = list(dict.fromkeys(row.provider for row in rows))
    kept = await _kept(host, refresh=params.refresh)
    return {
        "ts": host.clock.now_ms(),
        "providers": [
            _provider(host, name, rows, kept.get(name, [])) for name in [*names, *sorted({*kept} - {*names})]
        ],
        "providerCapabilities": [
            {"provider": name, "apiKeySupported": True, "quickApiKeySetup": False} for name in sorted(names)
        ],
    }


async def _kept(host: Host, *, refresh: bool) -> dict[str, list[dict[str, Any]]]:
    """The kept logins of each provider."""
    found: Keeping | None = host.more.get(LOGINS)
    if found is None:
        return {}
    standing = await asyncio.to_thread(importlib.import_module, "garra.domains.models.standing")
    profiles = found.models.profiles
    known = await profiles.read() if refresh or not profiles.known.profiles else profiles.known
    now = host.clock.now_ms()
    listed: dict[str, list[dict[str, Any]]] = {}
    for each in known.profiles.values():
        listed.setdefault(each.provider, []).append(standing.row(each, now))
    return listed


def _provider(host: Host, name: str, rows: Iterable[ModelRow], listed: list[dict[str, Any]]) -> dict[str, Any]:
    usable = any(row.available for row in rows if row.provider == name)
    configured = host.config.models.providers.get(name)
    keyed = "config" if configured and configured.api_key else "env"
    order = ("ok", "static", "expiring", "expired", "missing")
    told = min((each["status"] for each in listed), key=order.index, default="static" if usable else "missing")
    shown = {"provider": name, "authProvider": name, "displayName": name, "status": told, "profiles": listed}
    return {**shown, "apiKey": {"source": keyed}} if usable and not listed else shown


async def auth_refresh(host: Host, caller: Caller, params: AuthRefresh) -> dict[str, Any]:
    """Read what is kept anew: another process changed it."""
    kept = await keeping(host).models.profiles.read()
    return {"ok": True, "profiles": len(kept.profiles), "ts": host.clock.now_ms()}


async def auth_set_api_key(host: Host, caller: Caller, params: AuthSetApiKey) -> dict[str, Any]:
    own, text = keeping(host), params.api_key.strip()
    provider = own.models.provider(params.provider)
    if not text or any(letter.isspace() for letter in text) or text.startswith("sk-ant-oat"):
        raise UserError("that is no API key: one word is needed, and no token of a subscription")
    agent = params.agent_id or ""
    kept = await own.models.profiles.read()
    mine = [
        each
        for each in kept.profiles.values()
        if (each.provider, each.agent, each.kind) == (provider, agent, "api_key")
    ]
    id_ = mine[0].id if len(mine) == 1 else f"{provider}:manual"
    await own.logins.put(Profile(id_, provider, "api_key", Secret(text), agent=agent))
    await own.models.profiles.read()
    return {"provider": provider, "profileId": id_}


async def auth_logout(host: Host, caller: Caller, params: AuthLogout) -> dict[str, Any]:
    """Forget logins of a provider: the next call of any turn has none of them."""
    own = keeping(host)
    provider = own.models.provider(params.provider)
    kept = await own.models.profiles.read()
    gone = [
        each.id
        for each in kept.profiles.values()
        if each.provider == provider and _leaves(each, params) and await own.logins.remove(each.agent, each.id)
    ]
    if not gone:
        raise NotFound(f"no such login of {provider} is kept here")
    await own.models.profiles.read()
    return {"provider": provider, "removedProfiles": gone}


def _leaves(profile: Profile, params: AuthLogout) -> bool:
    """Whether it is one of those that are to go; another program's is not ours to forget."""
    named = params.profile_ids is UNSET or profile.id in params.profile_ids
    kind = params.credential_type in (None, profile.kind)
    return named and kind and params.agent_id in (None, profile.agent) and not profile.extra.get(OWNER)


async def auth_order_set(host: Host, caller: Caller, params: AuthOrderSet) -> dict[str, Any]:
    own = keeping(host)
    provider = own.models.provider(params.provider)
    ids = None if params.profile_ids is UNSET else tuple(dict.fromkeys(params.profile_ids))
    known = {each.id for each in (await own.models.profiles.read()).profiles.values() if each.provider == provider}
    if strange := [each for each in ids or () if each not in known]:
        raise NotFound(f"{provider} has no login {strange[0]}; there are: {', '.join(sorted(known)) or 'none'}")
    await own.logins.order(params.agent_id or "", provider, ids)
    await own.models.profiles.read()
    return {"provider": provider, "order": None if ids is None else list(ids)}


async def probe(host: Host, caller: Caller, params: Probe) -> dict[str, Any]:
    """One tiny live request for each login of a provider."""
    own = keeping(host)
    probing = await asyncio.to_thread(importlib.import_module, "garra.domains.models.probing")
    provider, agent = own.models.provider(params.provider), params.agent_id or ""
    only = (params.profile_id,) if params.profile_id else ()
    listed = await probing.targets(own.models, provider, agent=agent, only=only)
    limits = probing.Limits((params.timeout_ms or 8_000) / 1_000)
    results = await probing.tried(own.models, listed, limits, agent=agent)
    names = ("profileId", "label", "status", "latencyMs", "error", "reasonCode")
    good = next((each for each in results if each["status"] == "ok"), results[0] if results else None)
    return {
        "provider": provider,
        "status": good["status"] if good else "auth",
        **({} if good else {"error": f"{provider} has no login and no key here"}),
        "results": [{name: each[name] for name in names if name in each} for each in results],
    }


METHODS: tuple[Method, ...] = (
    Method("models.authStatus", READ, AuthStatus, auth_status),
    Method("models.authRefresh", ADMIN, AuthRefresh, auth_refresh),
    Method("models.authSetApiKey", ADMIN, AuthSetApiKey, auth_set_api_key),
    Method("models.authLogout", ADMIN, AuthLogout, auth_logout),
    Method("models.authOrderSet", ADMIN, AuthOrderSet, auth_order_set),
    Method("models.probe", ADMIN, Probe, probe),
)
