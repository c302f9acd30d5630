"""Does a model answer, by which login, how fast: one tiny request each, a few at once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

from garra.core import profiles
from garra.core.errors import FailureKind, GarraError, RunFailed
from garra.core.failover import Attempt
from garra.core.messages import Text, User
from garra.core.value import frozen
from garra.domains.models.call import Way
from garra.domains.models.profiles import implicit
from garra.domains.models.registry import Models
from garra.sdk.model import ModelRequest
from garra.sdk.ports import Clock

TIMEOUT_S: Final = 8.0
AT_ONCE: Final = 2
TOKENS: Final = 8
_BUCKETS: Final = {
    FailureKind.AUTH: "auth",
    FailureKind.NO_KEY: "auth",
    FailureKind.BILLING: "billing",
    FailureKind.RATE_LIMIT: "rate_limit",
    FailureKind.OVERLOADED: "rate_limit",
    FailureKind.TIMEOUT: "timeout",
    FailureKind.NETWORK: "timeout",
    FailureKind.REFUSED: "format",
    FailureKind.NOT_FOUND: "no_model",
}


@frozen
class Target:
    """What is tried. `profile` empty: by whatever login a turn would take. `reason` is why it is not tried."""

    ref: str
    provider: str
    profile: str = ""
    label: str = ""
    source: str = "env"
    kind: str = "api_key"
    reason: str = ""


@frozen
class Limits:
    """Seconds of one try, how many at once, tokens of an answer."""

    timeout_s: float = TIMEOUT_S
    at_once: int = AT_ONCE
    tokens: int = TOKENS


USUAL: Final = Limits()


async def targets(models: Models, provider: str, *, agent: str = "", only: Sequence[str] = ()) -> list[Target]:
    """The logins of a provider, each with a model of it to try."""
    entry = models.entries()[provider]
    ref = _model(models, provider, agent)
    kept = await models.profiles.read()
    now = models.clock.now_ms()
    order = next(
        (kept.orders[owner, provider] for owner in (agent, "", "main") if (owner, provider) in kept.orders), None
    )
    found = []
    for profile in kept.profiles.values():
        if profile.provider != provider or (only and profile.id not in only):
            continue
        reason = profiles.unfit(profile, now)
        if not reason and order is not None and profile.id not in order:
            reason = "excluded_by_auth_order"
        found.append(Target(ref, provider, profile.id, profile.id, "profile", profile.kind, reason or _lacks(ref)))
    if not only:
        try:
            keyed = implicit(entry, models.env())
        except RunFailed:
            keyed = ()
        found += [
            Target(
                ref,
                provider,
                "",
                each.id or provider,
                "env" if entry.key is None else "models.json",
                reason=_lacks(ref),
            )
            for each in keyed[:1]
            if each.secret or (entry.provider.auth != "key" and not found)
        ]
    return found


def usable(models: Models) -> list[str]:
    """The providers that could be asked."""
    return list(dict.fromkeys(row.provider for row in models.rows() if row.available or row.configured))


def _lacks(ref: str) -> str:
    return "" if ref else "no_model"


def _model(models: Models, provider: str, agent: str) -> str:
    """The model of a provider to try: the chosen one where it is that provider's, else its usual or first one."""
    try:
        chosen = models.resolve(None, agent)
    except GarraError:
        chosen = None
    if chosen is not None and chosen.provider == provider:
        return chosen.ref
    entry = models.entries()[provider]
    name = entry.provider.default or next(iter(entry.listed()), "")
    return f"{provider}/{name}" if name else ""


async def tried(
    models: Models,
    listed: Iterable[Target],
    limits: Limits = USUAL,
    *,
    agent: str = "",
) -> list[dict[str, Any]]:
    """How each went, in the original's words; never raises for a model's fault."""
    gate = asyncio.Semaphore(limits.at_once)

    async def one(target: Target) -> dict[str, Any]:
        async with gate:
            return await _tried(models, target, limits, agent)

    return list(await asyncio.gather(*(one(target) for target in listed)))


async def _tried(models: Models, target: Target, limits: Limits, agent: str) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "provider": target.provider,
        "model": target.ref or None,
        "label": target.label or target.ref,
        "source": target.source,
        "mode": target.kind,
        **({"profileId": target.profile} if target.profile else {}),
    }
    if target.reason:
        status = "no_model" if target.reason == "no_model" else "auth"
        return {
            **shown,
            "status": status,
            "reasonCode": target.reason,
            "error": _WORDS.get(target.reason, target.reason),
        }
    clock: Clock = models.clock
    began = clock.monotonic()
    status, error = await _asked(models, target, limits, agent)
    kind, status = status, _bucket(status)
    spent = round((clock.monotonic() - began) * 1_000)
    return {**shown, "status": status, "latencyMs": spent, **({"error": error} if error else {}), **_why(kind, status)}


async def _asked(models: Models, target: Target, limits: Limits, agent: str) -> tuple[str, str]:
    attempts: list[Attempt] = []
    try:
        model = models.resolve(target.ref, agent)
    except GarraError as lost:
        return "no_model", lost.message
    request = ModelRequest(
        replace(model), "You answer with one word.", (User((Text("Say ok."),), models.clock.now_ms()),),
        max_tokens=limits.tokens, timeout_first_s=limits.timeout_s, timeout_between_s=limits.timeout_s,
    )  # fmt: skip
    stream = models.stream(request, Way(attempts.append, behind=1, agent=agent, prefer=target.profile))
    try:
        async with asyncio.timeout(limits.timeout_s):
            answer = await stream.result()
    except TimeoutError:
        return "timeout", f"no answer within {limits.timeout_s:g} s"
    finally:
        stream.abort()
    own = next((each for each in attempts if each.profile == target.profile), None) if target.profile else None
    if own is not None and own.result != "success":
        return own.result, own.reason
    if target.profile and own is None and answer.stop not in ("error", "aborted"):
        return "unknown", "it rests after a fault, and another login answered; log in anew, or try later"
    if answer.stop not in ("error", "aborted"):
        return "ok", ""
    return attempts[-1].result if attempts else "unknown", answer.error or "it did not answer"


def _bucket(result: str) -> str:
    """The original's word for how a call ended."""
    return _BUCKETS.get(FailureKind(result), "unknown") if result in set(FailureKind) else result


def _why(kind: str, status: str) -> dict[str, str]:
    """What is known where the original has no word for it."""
    return {"reasonCode": kind} if status == "unknown" and kind != status else {}


_WORDS: Final = {
    "excluded_by_auth_order": "the order that is set for this provider leaves it out",
    "missing_credential": "it has no secret",
    "expired": "it has ended; log in again",
    "invalid_expires": "its end is no moment",
    "unresolved_ref": "its secret cannot be had",
    "no_model": "no model of this provider is known by name",
}
