"""How the logins of providers stand, as people and clients are shown it: nothing of a secret is in here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

from garra.core import profiles
from garra.core.cooldowns import Health, Rest
from garra.core.profiles import OWNER, Profile
from garra.domains.models.logins import Kept
from garra.domains.models.refresh import refused

Standing = Literal["ok", "static", "expiring", "expired", "missing"]
WARN_MS: Final = 86_400_000
"""A token that ends within a day is said to be expiring."""
_BEST_FIRST: Final[tuple[Standing, ...]] = ("ok", "static", "expiring", "expired", "missing")


def standing(profile: Profile, now_ms: int) -> Standing:
    """How one stands. A login that renews itself is `ok` whatever its access does."""
    if profile.kind == "oauth" and profile.refresh and not refused(profile):
        return "ok"
    if profiles.unfit(profile, now_ms) in {"expired", "invalid_expires"}:
        return "expired"
    if profiles.unfit(profile, now_ms):
        return "missing"
    if profile.expires_ms is None:
        return "static"
    soon = profile.expires_ms - now_ms <= WARN_MS and not profile.extra.get(OWNER)
    return "expiring" if soon else "ok"


def row(profile: Profile, now_ms: int) -> dict[str, Any]:
    """One login, in the original's words."""
    shown: dict[str, Any] = {
        "profileId": profile.id,
        "provider": profile.provider,
        "type": profile.kind,
        "status": standing(profile, now_ms),
        "source": "external" if profile.extra.get(OWNER) else "store",
        "label": label(profile),
    }
    if reason := profiles.unfit(profile, now_ms):
        shown["reasonCode"] = reason
    ends = ends_ms(profile)
    return shown if ends is None else {**shown, "expiresAt": ends, "remainingMs": ends - now_ms}


def label(profile: Profile) -> str:
    return f"{profile.id} ({profile.email})" if profile.email and profile.email not in profile.id else profile.id


def ends_ms(profile: Profile) -> int | None:
    """When it ends for good; None for one that does not, or renews itself."""
    if profile.kind == "oauth" and profile.refresh and not refused(profile):
        return None
    return profile.expires_ms


def rests(kept: Kept, now_ms: int) -> list[dict[str, Any]]:
    """The logins that rest now, and why."""
    found = []
    for owned, profile in kept.profiles.items():
        health = kept.health.get(owned, Health())
        whole = [("", health.whole)] if health.whole else []
        for model, rest in [*whole, *health.models.items()]:
            if rest.until_ms > now_ms:
                found.append(_resting(profile, model, rest, now_ms))
    return found


def _resting(profile: Profile, model: str, rest: Rest, now_ms: int) -> dict[str, Any]:
    closed = rest.reason in {"billing", "auth_permanent", "auth"}
    return {
        "profileId": profile.id,
        "provider": profile.provider,
        "kind": "disabled" if closed else "cooldown",
        "reason": rest.reason,
        "until": rest.until_ms,
        "remainingMs": rest.until_ms - now_ms,
        **({"model": model} if model else {}),
    }


def overview(kept: Kept, keyed: Mapping[str, str], now_ms: int) -> dict[str, Any]:
    """What `models status --json` has under `auth`. `keyed` says of providers where their key is: `env` or `config`."""
    names = sorted({*(each.provider for each in kept.profiles.values()), *keyed})
    return {
        "providersWithOAuth": [
            f"{name} ({count})" for name in names if (count := sum(each.kind != "api_key" for each in _of(kept, name)))
        ],
        "providers": [_provider(name, list(_of(kept, name)), keyed.get(name)) for name in names],
        "unusableProfiles": rests(kept, now_ms),
        "oauth": {
            "warnAfterMs": WARN_MS,
            "profiles": [row(each, now_ms) for each in kept.profiles.values()],
            "providers": [
                {
                    "provider": name,
                    "status": best(standing(each, now_ms) for each in listed),
                    "profiles": [row(each, now_ms) for each in listed],
                }
                for name in names
                if (listed := list(_of(kept, name)))
            ],
        },
    }


def _of(kept: Kept, provider: str) -> Iterable[Profile]:
    return (each for each in kept.profiles.values() if each.provider == provider)


def _provider(name: str, listed: list[Profile], key: str | None) -> dict[str, Any]:
    return {
        "provider": name,
        "effective": {"kind": "profiles" if listed else key or "missing"},
        "profiles": {
            "count": len(listed),
            "oauth": sum(each.kind == "oauth" for each in listed),
            "token": sum(each.kind == "token" for each in listed),
            "apiKey": sum(each.kind == "api_key" for each in listed),
            "labels": [label(each) for each in listed],
        },
    }


def best(each: Iterable[Standing]) -> Standing:
    """The best that a provider's logins are: one that works is enough."""
    return min(each, key=_BEST_FIRST.index, default="missing")
