"""Auth profiles: the logins of model providers as values, how their file reads, and which comes first.

    {"version": 1,
     "profiles": {"openai:work": {"type": "api_key", "provider": "openai", "key": "…"},
                  "x:a@b.c": {"type": "oauth", "provider": "x", "access": "…", "refresh": "…", "expires": 1799e9},
                  "anthropic:t": {"type": "token", "provider": "anthropic", "token": "…"}},
     "order": {"openai": ["openai:work"]},
     "usageStats": {"openai:work": {"lastUsed": 1790000000000}}}

An older, flat form, `{"openrouter": {"apiKey": "…"}}`, reads as one key a provider.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Final, Literal, cast, get_args

from garra.core.secret import Secret
from garra.core.value import frozen

Kind = Literal["oauth", "token", "api_key"]
KINDS: Final = cast("tuple[Kind, ...]", get_args(Kind))
"""In the order in which they are taken where nobody set one."""
LAST_MS: Final = 8_640_000_000_000_000
"""The last moment that the original's clock knows."""
SOON_MS: Final = 300_000
"""An access that ends within this is renewed before it is used."""
OWNER: Final = "managedBy"
"""Beside the secrets of a login of another program: whose it is. It is read there, never renewed or written."""
REFUSED: Final = "refused"
"""Beside the secrets of a login that its issuer refuses to renew."""

_SECRETS: Final[Mapping[Kind, str]] = {"api_key": "key", "token": "token", "oauth": "access"}
_NONE: Final = Secret("")


@frozen
class Profile:
    """One login. `secret` is what a call takes: the key, the token, or the access token of an oauth login.

    `agent` is whose it is, empty for all. `extra` holds every other key of the stored form. `expires_ms` None means
    never; a stored moment that is none is -1. `version` is the store's.
    """

    id: str
    provider: str
    kind: Kind
    secret: Secret = _NONE
    refresh: Secret = _NONE
    expires_ms: int | None = None
    email: str = ""
    agent: str = ""
    version: int = 0
    extra: Mapping[str, Any] = field(default_factory=dict)


@frozen
class Document:
    """What an auth-profiles.json says. `used` is when each was last used, in milliseconds since 1970."""

    profiles: tuple[Profile, ...] = ()
    order: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    used: Mapping[str, int] = field(default_factory=dict)
    problems: tuple[str, ...] = ()


def parse(document: object, agent: str = "") -> Document:
    """Never raises: what cannot be used is named in `problems`, without its secrets."""
    if not isinstance(document, Mapping):
        return Document(problems=("it is no JSON object",))
    listed = document.get("profiles")
    rows = listed if isinstance(listed, Mapping) else _flat(document)
    found: list[Profile] = []
    problems: list[str] = []
    for id_, body in rows.items():
        profile = read(str(id_), body, agent)
        if profile is None:
            problems.append(f"profile {id_} has no type of api_key, token or oauth, or no provider")
        else:
            found.append(profile)
    used = {str(id_): at for id_, stats in _map(document.get("usageStats")) if (at := _whole(_of(stats, "lastUsed")))}
    order = {str(name).lower(): _names(ids) for name, ids in _map(document.get("order"))}
    return Document(tuple(found), order, used, tuple(problems))


def _flat(document: Mapping[Any, Any]) -> dict[str, Any]:
    """The older form: one key a provider."""
    keys = ((name, _of(body, "apiKey") or _of(body, "key")) for name, body in document.items())
    return {
        f"{name}:default": {"type": "api_key", "provider": name, "key": key}
        for name, key in keys
        if isinstance(key, str)
    }


def read(id_: str, body: object, agent: str = "", version: int = 0) -> Profile | None:
    """One profile of its stored form; None where it is none."""
    if not isinstance(body, Mapping):
        return None
    kind, provider = body.get("type") or body.get("mode"), body.get("provider")
    if kind not in KINDS or not isinstance(provider, str) or not provider.strip():
        return None
    name = _SECRETS[kind]
    expires = body.get("expires")
    moment = None if expires is None else (_whole(expires) or -1)
    known = {"type", "mode", "provider", name, "refresh", "expires", "email"}
    return Profile(
        id_,
        provider.strip().lower(),
        kind,
        _secret(body.get(name)),
        _secret(body.get("refresh")),
        moment if moment is None or moment <= LAST_MS else -1,
        email if isinstance(email := body.get("email"), str) else "",
        agent,
        version,
        {str(key): value for key, value in body.items() if key not in known},
    )


def written(profile: Profile) -> dict[str, Any]:
    """The stored form, with its secrets."""
    body: dict[str, Any] = {**profile.extra, "type": profile.kind, "provider": profile.provider}
    if profile.secret and referred(profile) is None:
        body[_SECRETS[profile.kind]] = profile.secret.reveal()
    if profile.refresh:
        body["refresh"] = profile.refresh.reveal()
    if profile.expires_ms is not None:
        body["expires"] = profile.expires_ms
    if profile.email:
        body["email"] = profile.email
    return body


def referred(profile: Profile) -> tuple[str, str, str] | None:
    """Where the secret of a key or token is looked up: source, provider, id; None where it stands there itself."""
    ref = profile.extra.get({"api_key": "keyRef", "token": "tokenRef"}.get(profile.kind, ""))
    if not isinstance(ref, Mapping) or not all(isinstance(ref.get(name), str) for name in ("source", "id")):
        return None
    return ref["source"], str(ref.get("provider") or ""), ref["id"]


def unfit(profile: Profile, now_ms: int) -> str:
    """Why a profile cannot be used, as the original names it; empty where it can."""
    if profile.secret.missing:
        return "unresolved_ref"
    if profile.kind == "oauth" and profile.refresh and REFUSED not in profile.extra:
        return ""
    if not profile.secret:
        return "missing_credential"
    if profile.expires_ms is None:
        return ""
    if profile.expires_ms <= 0:
        return "invalid_expires"
    return "expired" if profile.expires_ms <= now_ms else ""


def stale(profile: Profile, now_ms: int) -> bool:
    """Whether an oauth login has to be renewed before a call."""
    ends = profile.expires_ms
    return profile.kind == "oauth" and (not profile.secret or (ends is not None and ends - SOON_MS <= now_ms))


def ordered(
    profiles: Iterable[Profile],
    wanted: Sequence[str] | None,
    last_used: Callable[[str], int],
    now_ms: int,
) -> tuple[Profile, ...]:
    """The profiles of one provider that can be used, the first to be taken first.

    `wanted` is an order that somebody set: what it does not name is left out. Without one: oauth, tokens, keys; of
    oauth those that need no renewal first; then whichever was used longest ago.
    """
    fit = [profile for profile in profiles if not unfit(profile, now_ms)]
    if wanted is not None:
        by_id = {profile.id: profile for profile in fit}
        return tuple(by_id[id_] for id_ in dict.fromkeys(wanted) if id_ in by_id)

    def rank(profile: Profile) -> tuple[int, bool, int]:
        return KINDS.index(profile.kind), stale(profile, now_ms), last_used(profile.id)

    return tuple(sorted(fit, key=rank))


def pinned(line: Sequence[Profile], pin: str) -> tuple[Profile, ...]:
    """The line with the profile `pin` in front, where it is in the line."""
    return (*(each for each in line if each.id == pin), *(each for each in line if each.id != pin))


def renewed(profile: Profile, access: str, refresh: str, expires_ms: int | None) -> Profile:
    """An oauth login with a new access; an empty `refresh` keeps the old one."""
    kept = Secret(refresh) if refresh else profile.refresh
    return replace(profile, secret=Secret(access), refresh=kept, expires_ms=expires_ms)


def _secret(value: object) -> Secret:
    return Secret(value.strip()) if isinstance(value, str) else _NONE


def _whole(value: object) -> int:
    """A moment; 0 where it is none."""
    fine = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < float("inf")
    return int(cast("float", value)) if fine else 0


def _of(body: object, name: str) -> Any:
    return body.get(name) if isinstance(body, Mapping) else None


def _map(value: object) -> Iterable[tuple[Any, Any]]:
    return value.items() if isinstance(value, Mapping) else ()


def _names(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list | tuple) else ()
