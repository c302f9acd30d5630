"""One refresher for each account: whoever needs a login renewed waits for the one that renews it.

Issuers give a new refresh token with each renewal and refuse the old one from then on; some end all logins of an
account when an old one is shown. So a renewal is made by one process at a time (a lock of the operating system, one a
provider, since two agents may hold copies of one login), it begins with reading the store again, and its answer is
stored before anybody uses it, in place of what was read and of nothing newer. A turn that is stopped does not stop the
renewal it waits for.

A process that dies between the request and the store may have spent the token. That it was about to is written down
before it asks, so that the next one can say so; it tries the old token once more, which issuers with a grace period
allow.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Protocol

from garra.core import oauth, profiles
from garra.core.errors import Conflict, Failure, FailureKind, GarraError, NotFound, RunFailed
from garra.core.oauth import Issuer, Refused, Tokens
from garra.core.profiles import OWNER, REFUSED, Profile
from garra.core.value import frozen
from garra.domains.models.logins import Logins
from garra.io import lock
from garra.io.lock import Lock
from garra.sdk.ports import Clock, Spawn, Via

log = logging.getLogger(__name__)

LOCK_S: Final = 45.0
"""So long one waits for another process that renews."""
REST_MS: Final = 30_000
"""A renewal that failed for now is not tried again before, while the old access still holds."""
TRIES: Final = 3
RENEWAL, ISSUER = "renewal", "issuer"
"""What a stored login says beside its secrets: a renewal that was begun; at which origin it was given."""
_K = FailureKind

Ask = Callable[[Issuer, Mapping[str, str], Via], Awaitable[Tokens | Refused]]
"""Asks the issuer's token address, by the way out that the provider has."""


class Refresher(Protocol):
    """What the logins are handed. Raises RunFailed where a login cannot be renewed."""

    async def fresh(self, profile: Profile) -> Profile: ...


@frozen
class Sources:
    """Where issuers and borrowed logins come from: the issuer of a login with the way out to it (raises NotFound),
    and a login of another program as it stands there now, None where it is gone.
    """

    issuer: Callable[[Profile], tuple[Issuer, Via]]
    borrowed: Callable[[Profile], Profile | None] = lambda _: None


class Renewals:
    """The refresher. `locks` is a folder for its locks. Close it before the tasks and the network are closed."""

    def __init__(self, logins: Logins, ask: Ask, clock: Clock, spawn: Spawn, *, locks: Path, sources: Sources) -> None:
        self._logins, self._ask, self._clock, self._spawn = logins, ask, clock, spawn
        self._locks, self._sources = locks, sources
        self._running: dict[tuple[str, str], asyncio.Future[Profile | RunFailed]] = {}
        self._failed: dict[tuple[str, str], int] = {}
        self._unstored: dict[tuple[str, str], Profile] = {}

    async def fresh(self, profile: Profile) -> Profile:
        """A login whose access can be used. Raises RunFailed (auth, network)."""
        key = (profile.agent, profile.id)
        running = self._running.get(key)
        if running is None:
            running = self._running[key] = asyncio.get_running_loop().create_future()
            self._spawn(self._settled(profile, running), f"renew {profile.id}")
        outcome = await asyncio.shield(running)
        if isinstance(outcome, RunFailed):
            raise RunFailed(outcome.failure)
        return outcome

    async def close(self, within_s: float = 15.0) -> None:
        """Wait for renewals that are under way: their answers would be lost."""
        if self._running:
            await asyncio.wait(self._running.values(), timeout=within_s)

    async def _settled(self, profile: Profile, future: asyncio.Future[Profile | RunFailed]) -> None:
        outcome: Profile | RunFailed = _failed(profile, _K.AUTH, f"the login {profile.id} was not renewed")
        try:
            outcome = await self._renewed(profile)
        except RunFailed as failed:
            outcome = failed
        except GarraError as error:
            outcome = _failed(profile, _K.NETWORK, f"the login {profile.id} could not be renewed: {error.message}")
        finally:
            self._running.pop((profile.agent, profile.id), None)
            if not future.done():
                future.set_result(outcome)

    async def _renewed(self, profile: Profile) -> Profile:
        if profile.extra.get(OWNER):
            return await self._looked_up(profile)
        if self._resting(profile):
            return profile
        held = await self._locked(profile)
        try:
            return await self._alone(profile)
        finally:
            await asyncio.to_thread(held.release)

    async def _looked_up(self, profile: Profile) -> Profile:
        """A login of another program: only that one may renew it."""
        now = await asyncio.to_thread(self._sources.borrowed, profile)
        if now is not None and not profiles.unfit(now, self._clock.now_ms()):
            return now
        owner = profile.extra[OWNER]
        raise _failed(profile, _K.AUTH, f"the login of {owner} has ended; use {owner} once, which renews it")

    async def _locked(self, profile: Profile) -> Lock:
        name = hashlib.sha256(profile.provider.encode()).hexdigest()[:16]
        try:
            return await asyncio.to_thread(lock.acquire, self._locks / f"login-{name}.lock", {}, LOCK_S)
        except Conflict:
            raise _failed(profile, _K.TIMEOUT, f"another process renews {profile.id} and does not end") from None

    async def _alone(self, profile: Profile) -> Profile:
        """The renewal, while nobody else makes one."""
        current = await self._logins.get(profile.agent, profile.id)
        if current is None:
            raise _failed(profile, _K.AUTH, f"the login {profile.id} was removed")
        if (kept := self._unstored.get((profile.agent, profile.id))) is not None and kept.version == current.version:
            current = await self._stored(current, kept)
        if not profiles.stale(current, self._clock.now_ms()):
            return current
        if words := refused(current):
            return self._held(current, words)
        issuer, via = self._issuer(current)
        spent = _digest(current)
        cut = _note(current, RENEWAL, spent) is not None
        current = await self._begun(current, spent)
        answer = await self._ask(issuer, oauth.refresh_form(issuer, current.refresh.reveal()), via)
        if isinstance(answer, Refused):
            return await self._not(current, answer, cut=cut)
        self._failed.pop((current.agent, current.id), None)
        return await self._stored(current, taken(current, answer))

    def _issuer(self, profile: Profile) -> tuple[Issuer, Via]:
        """Who gave it, if that is who would be asked: a refresh token goes to nobody else."""
        try:
            issuer, via = self._sources.issuer(profile)
        except NotFound as lost:
            raise _failed(profile, _K.AUTH, f"the login {profile.id} cannot be renewed: {lost.message}") from None
        own = profile.extra.get(ISSUER)
        if own and own != issuer.origin:
            raise _over(profile, f"it was given by {own}, which is not the issuer that is set now")
        return issuer, via

    async def _begun(self, profile: Profile, spent: str) -> Profile:
        """Written down before anybody is asked."""
        noted = replace(profile, extra={**profile.extra, RENEWAL: {"of": spent, "at": self._clock.now_ms()}})
        kept = await self._logins.swap(profile, noted)
        if kept is None:
            raise _failed(profile, _K.NETWORK, f"the login {profile.id} was changed meanwhile; try again")
        return kept

    async def _stored(self, old: Profile, new: Profile) -> Profile:
        """`new` in the place of `old`, and of copies of it that other agents have."""
        key = (old.agent, old.id)
        try:
            kept = await self._swapped(old, new)
            await self._copies(old, new)
        except RunFailed:
            raise
        except GarraError as error:
            log.warning("the login %s was renewed but cannot be stored: %s", old.id, error.message)
            self._unstored[key] = replace(new, version=old.version)
            return new
        self._unstored.pop(key, None)
        return kept

    async def _swapped(self, old: Profile, new: Profile) -> Profile:
        for _ in range(TRIES):
            if (kept := await self._logins.swap(old, new)) is not None:
                return kept
            current = await self._logins.get(old.agent, old.id)
            if current is None:
                raise _failed(old, _K.AUTH, f"the login {old.id} was removed")
            if current.refresh != old.refresh:  # somebody logged in anew
                return current
            new = replace(current, secret=new.secret, refresh=new.refresh, expires_ms=new.expires_ms, extra=new.extra)
            old = current
        raise _failed(old, _K.NETWORK, f"the login {old.id} changes without end; try again")

    async def _copies(self, old: Profile, new: Profile) -> None:
        for (agent, id_), each in (await self._logins.load()).profiles.items():
            same = each.kind == "oauth" and each.provider == old.provider and each.refresh == old.refresh
            if same and (agent, id_) != (old.agent, old.id):
                await self._logins.swap(
                    each, replace(each, secret=new.secret, refresh=new.refresh, expires_ms=new.expires_ms)
                )

    async def _not(self, profile: Profile, answer: Refused, *, cut: bool) -> Profile:
        """What follows when there are no tokens."""
        now = self._clock.now_ms()
        if answer.why == "passing":
            if self._holds(profile):
                log.warning("the login %s was not renewed, its access holds still: %s", profile.id, answer.words)
                self._failed[profile.agent, profile.id] = now
                return profile
            raise _failed(profile, _K.NETWORK, f"the login {profile.id} could not be renewed now: {answer.words}")
        words = answer.words
        if cut:
            words += "; a process was ended while it renewed this login, so that the answer was lost"
        if answer.why == "grant":
            noted = {**_plain(profile.extra), REFUSED: {"of": _digest(profile), "at": now, "words": words}}
            await self._logins.swap(profile, replace(profile, extra=noted))
        return self._held(profile, words)

    def _held(self, profile: Profile, words: str) -> Profile:
        """A login that is not renewed any more, while its access holds. Raises RunFailed (auth) then."""
        if self._holds(profile):
            return profile
        raise _over(profile, words)

    def _holds(self, profile: Profile) -> bool:
        ends = profile.expires_ms
        return bool(profile.secret) and ends is not None and ends > self._clock.now_ms()

    def _resting(self, profile: Profile) -> bool:
        at = self._failed.get((profile.agent, profile.id))
        return at is not None and self._holds(profile) and self._clock.now_ms() - at < REST_MS


def taken(profile: Profile, tokens: Tokens) -> Profile:
    """A login with what its issuer gave."""
    new = profiles.renewed(profile, tokens.access.reveal(), tokens.refresh.reveal(), tokens.expires_ms)
    extra = _plain(profile.extra)
    if tokens.account:
        extra["accountId"] = tokens.account
    return replace(new, email=tokens.email or profile.email, extra=extra)


def refused(profile: Profile) -> str:
    """Why it cannot be renewed any more; empty where it can."""
    if not profile.refresh:
        return "it has no refresh token"
    noted = _note(profile, REFUSED, _digest(profile))
    return "" if noted is None else str(noted.get("words", ""))


def _plain(extra: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in extra.items() if name not in (RENEWAL, REFUSED)}


def _digest(profile: Profile) -> str:
    """Names a refresh token without telling it."""
    return hashlib.sha256(profile.refresh.reveal().encode()).hexdigest()[:16]


def _note(profile: Profile, name: str, of: str) -> Mapping[str, Any] | None:
    """What was noted of this very refresh token."""
    found = profile.extra.get(name)
    return found if isinstance(found, Mapping) and found.get("of") == of else None


def _over(profile: Profile, words: str) -> RunFailed:
    how = f"garra models auth login --provider {profile.provider}"
    return _failed(profile, _K.AUTH, f"the login {profile.id} has ended: {words}; log in again with `{how}`")


def _failed(profile: Profile, kind: FailureKind, words: str) -> RunFailed:
    return RunFailed(Failure(kind, words, provider=profile.provider))
