"""Which login a call to a provider takes, and what becomes of those that fail.

A provider's key in the configuration or the environment is a login without a name of its own; it counts where no other
is kept. All calls are made on the event loop's thread; what is kept is read again now and then in the background, so
that a login made by another process is found.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Final

from garra.core import cooldowns, profiles
from garra.core.cooldowns import Fault, Health, Rest, Rules
from garra.core.errors import Failure, FailureKind, GarraError, RunFailed
from garra.core.profiles import Profile
from garra.core.value import frozen, record
from garra.domains.models.catalog import Entry
from garra.domains.models.given import bypassed
from garra.domains.models.given import implicit as implicit  # who asks for logins asks here
from garra.domains.models.logins import Kept, Logins
from garra.sdk.ports import Clock, Spawn

if TYPE_CHECKING:
    from garra.config.sections import Config

log = logging.getLogger(__name__)

FRESH_S: Final = 10.0
"""How old what was read may be before it is read again, beside a call."""
PATIENCE_MS: Final = 10_000
"""So long a call waits for a login that is free soon, or for a probe of another call."""
PINS: Final = 4_096
SHARED: Final = ("", "main")
"""Whose logins serve every agent that has none of its own for a provider."""
NONE: Final = Kept({}, {}, {})

Fresh = Callable[[Profile], Awaitable[Profile]]
"""Renews an oauth login; one call to the provider however many ask. Raises RunFailed where it cannot be."""


@frozen
class Asked:
    """For what a login is asked. `prefer` is the one a person chose for this conversation. `patient`: nobody else
    could answer, so that a short wait is better than none.
    """

    entry: Entry
    model: str
    env: Mapping[str, str]
    session: str = ""
    agent: str = ""
    prefer: str = ""
    patient: bool = True


@frozen
class Line:
    """The logins that a call may take, in their order. `named` are in the store; `pins` says that the conversation
    stays with the one that answers. `probe`: it is the one try of a provider whose logins all rest.
    """

    profiles: tuple[Profile, ...]
    named: bool = False
    pins: bool = False
    probe: bool = False


@frozen
class Credential:
    """What one call takes."""

    profile_id: str
    secret: str | None
    kind: profiles.Kind = "api_key"


@record
class _Pins:
    """Which login each conversation stays with."""

    known: OrderedDict[tuple[str, str], str] = field(default_factory=OrderedDict)

    def set(self, session: str, provider: str, id_: str) -> None:
        self.known[session, provider] = id_
        self.known.move_to_end((session, provider))
        if len(self.known) > PINS:
            self.known.popitem(last=False)


class Profiles:
    """`logins` None: nothing is kept. `fresh` None: oauth logins are used until they end. `learn` hears of secrets."""

    def __init__(
        self, config: Callable[[], Config], clock: Clock, spawn: Spawn, *, logins: Logins | None = None,
        fresh: Fresh | None = None, learn: Callable[[str], None] = lambda _: None,
    ) -> None:  # fmt: skip
        self._config, self._clock, self._spawn, self._fresh = config, clock, spawn, fresh
        self._learn = learn
        self.logins = logins
        self._kept = NONE
        self._read_at: float | None = None
        self._reading = False
        self._health: dict[tuple[str, str, int], Health] = {}
        self._pins = _Pins()
        self._last = 0
        self._probed: dict[str, int] = {}
        self._probing: dict[str, asyncio.Event] = {}

    # ---- which

    async def line(self, asked: Asked) -> Line:
        """Who may be asked for, first to last. Raises RunFailed: no key, or all rest, and until when."""
        line = await self._found(asked)
        now = self._clock.now_ms()
        chosen = self._awake(asked, line, now)
        if chosen is None and asked.patient and (wait := self._soon(asked, line, now)) is not None:
            await wait
            now = self._clock.now_ms()
            chosen = self._awake(asked, line, now)
        if chosen is None:
            raise RunFailed(self._resting(asked, line, now))
        if chosen.pins:
            self._taken(chosen.profiles[0], now)
        return chosen

    def _taken(self, profile: Profile, now: int) -> None:
        """It counts as used from now on, so that whoever comes before it has answered takes another."""
        self._last = max(self._last + 1, now)
        self._health[_key(profile)] = replace(self._of(profile), used_ms=self._last)

    async def credential(self, asked: Asked) -> Credential:
        """The first login in line, with its secret. Raises RunFailed."""
        line = await self.line(asked)
        if line.probe:
            self.left(asked.entry)
        first = line.profiles[0]
        return Credential(first.id, await self.secret(first), first.kind)

    async def secret(self, profile: Profile) -> str | None:
        """What a call by this login takes, renewed where it has to be. Raises RunFailed (missing_key, auth)."""
        if self._fresh is not None and profiles.stale(profile, self._clock.now_ms()):
            profile = await self._fresh(profile)
            self._learn(profile.secret.reveal())
            self._kept = replace(self._kept, profiles={**self._kept.profiles, (profile.agent, profile.id): profile})
        return profile.secret.reveal() if profile.secret else None

    def has(self, provider: str) -> bool:
        """Whether a login for it is kept, as far as is known without waiting."""
        now = self._clock.now_ms()
        return any(each.provider == provider and not profiles.unfit(each, now) for each in self._kept.profiles.values())

    def key(self, provider: str) -> str:
        """A key or token that is kept for a provider, as far as is known without waiting; empty where none is."""
        now = self._clock.now_ms()
        fit = (each for each in self._kept.profiles.values() if each.provider == provider and each.kind != "oauth")
        found = next((each for each in fit if each.agent in SHARED and not profiles.unfit(each, now)), None)
        return found.secret.reveal() if found is not None else ""

    @property
    def known(self) -> Kept:
        """What is kept, as it was last read."""
        return self._kept

    async def read(self) -> Kept:
        """Read what is kept. A store that cannot be read has nothing."""
        if self.logins is not None:
            self._reading = True
            try:
                self._take(await self.logins.load())
            except GarraError as error:
                log.warning("the logins of model providers cannot be read: %s", error.message)
            finally:
                self._reading = False
        self._read_at = self._clock.monotonic()
        return self._kept

    def _take(self, kept: Kept) -> None:
        for problem in set(kept.problems) - set(self._kept.problems):
            log.warning("%s", problem)
        for owned, profile in kept.profiles.items():
            if owned in kept.health:
                self._health.setdefault(_key(profile), kept.health[owned])
            for secret in (profile.secret, profile.refresh):
                if secret:
                    self._learn(secret.reveal())
        self._kept = kept

    async def _found(self, asked: Asked) -> Line:
        """All logins of a provider in their order, those at rest among them."""
        if self.logins is not None:
            await self._current()
        line = self._named(asked)
        if line is not None:
            return await self._pinned(asked, line)
        try:
            given = implicit(asked.entry, asked.env)
            for each in given[1:] and given:
                self._learn(each.secret.reveal())
            return Line(given)
        except RunFailed:
            line = self._named(asked, borrowed=True)
            if line is None and self.logins is not None and self._read_at != self._clock.monotonic():
                await self.read()
                line = self._named(asked, borrowed=True)
            if line is None:
                raise
            return await self._pinned(asked, line)

    async def _current(self) -> None:
        now = self._clock.monotonic()
        if self._read_at is None:
            await self.read()
        elif now - self._read_at > FRESH_S and not self._reading:
            self._reading = True
            self._spawn(self._again(), "logins")

    async def _again(self) -> None:
        await self.read()

    def _named(self, asked: Asked, *, borrowed: bool = False) -> Line | None:
        """The logins that are kept for a provider; None where none can be used. Another program's login, which nobody
        asked to use, counts only where there is nothing else (`borrowed`).
        """
        if not self._kept.profiles:
            return None
        provider = asked.entry.provider.id
        mine = [each for each in self._kept.profiles.values() if each.provider == provider]
        own = [each for each in mine if asked.agent and each.agent == asked.agent]
        mine = own or [each for each in mine if each.agent in SHARED]
        if not mine:
            return None
        auth = self._config().auth
        owners = (asked.agent, *SHARED)
        stored = (self._kept.orders.get((owner, provider)) for owner in owners)
        wanted = next((each for each in stored if each is not None), auth.order.get(provider))
        if wanted is None:
            allowed = {name for name, each in auth.profiles.items() if each.provider.lower() == provider}
            mine = [each for each in mine if each.id in allowed] if allowed else mine
            if not borrowed:
                mine = [each for each in mine if not each.extra.get(profiles.OWNER) or each.id == asked.prefer]
        now = self._clock.now_ms()
        used = {each.id: self._of(each).used_ms for each in mine}
        line = profiles.ordered(mine, wanted, used.__getitem__, now)
        if not line:
            return None
        return Line(line, named=True, pins=wanted is None and len(line) > 1)

    async def _pinned(self, asked: Asked, line: Line) -> Line:
        if any(each.id == asked.prefer for each in line.profiles):
            return replace(line, profiles=profiles.pinned(line.profiles, asked.prefer), pins=False)
        if not line.pins or not asked.session:
            return line
        provider = asked.entry.provider.id
        pin = self._pins.known.get((asked.session, provider))
        if pin is None and self.logins is not None:
            pin = await self.logins.pin(asked.session, provider)
            self._pins.set(asked.session, provider, pin)
        return replace(line, profiles=profiles.pinned(line.profiles, pin)) if pin else line

    # ---- who rests

    def _awake(self, asked: Asked, line: Line, now: int) -> Line | None:
        """Those that do not rest; where all do, those that may be called in spite of it, or one as a probe."""
        if bypassed(asked.entry):
            return line
        rests = [(each, self.rest(each, asked.model, now)) for each in line.profiles]
        ready = tuple(each for each, rest in rests if rest is None)
        if ready:
            return replace(line, profiles=ready)
        resting = sorted(((each, rest) for each, rest in rests if rest), key=lambda pair: pair[1].until_ms)
        faint = tuple(each for each, rest in resting if not cooldowns.closed(rest))
        if faint:
            return replace(line, profiles=faint)
        provider = asked.entry.provider.id
        if provider in self._probing or not cooldowns.may_probe(self._probed.get(provider), now):
            return None
        self._probed[provider] = now
        self._probing[provider] = asyncio.Event()
        return replace(line, profiles=(resting[0][0],), probe=True)

    def _soon(self, asked: Asked, line: Line, now: int) -> Awaitable[Any] | None:
        """What to wait for, where that is not long."""
        probe = self._probing.get(asked.entry.provider.id)
        if probe is not None:
            return _until(probe, PATIENCE_MS / 1_000)
        until = self._until(asked, line, now)
        return self._clock.sleep((until - now) / 1_000) if until - now <= PATIENCE_MS else None

    def _until(self, asked: Asked, line: Line, now: int) -> int:
        rests = (self.rest(each, asked.model, now) for each in line.profiles)
        return min((rest.until_ms for rest in rests if rest is not None), default=now)

    def _resting(self, asked: Asked, line: Line, now: int) -> Failure:
        """Why nobody is asked now, and until when. A probe may be sooner than the end of the rest."""
        rests = [rest for each in line.profiles if (rest := self.rest(each, asked.model, now)) is not None]
        soonest = min(rests, key=lambda each: each.until_ms)
        kind = FailureKind.AUTH if soonest.reason == "auth_permanent" else FailureKind(soonest.reason)
        probe = self._probed.get(asked.entry.provider.id, now) + cooldowns.PROBE_MS
        wait = max(1_000, min(soonest.until_ms, probe) - now)
        return Failure(kind, WORDS[kind], None, wait, asked.entry.provider.id, asked.model)

    def rest(self, profile: Profile, model: str, now_ms: int) -> Rest | None:
        """Until when a login rests for a model, and why; None where it does not."""
        health = self._health.get(_key(profile))
        return None if health is None else cooldowns.rest(health, model, now_ms)

    def resting(self, entry: Entry, model: str, env: Mapping[str, str], agent: str = "") -> bool:
        """Whether all logins for a model rest, as far as is known without waiting."""
        if not self._health or bypassed(entry):
            return False
        asked = Asked(entry, model, env, agent=agent)
        try:
            line = self._named(asked) or Line(implicit(entry, env))
        except RunFailed:
            return False
        now = self._clock.now_ms()
        return all(self.rest(each, model, now) is not None for each in line.profiles)

    def free_ms(self, asked: Asked, line: Line) -> int | None:
        """In how many milliseconds the first of the line that rests is free; None where one does not rest."""
        now = self._clock.now_ms()
        rests = [self.rest(each, asked.model, now) for each in line.profiles]
        ends = [rest.until_ms for rest in rests if rest is not None]
        return min(ends) - now if ends and len(ends) == len(rests) else None

    # ---- how it went

    def report(self, asked: Asked, line: Line, profile: Profile, fault: Fault | None) -> None:
        """A call by `profile` ended: with an answer (None), or with a fault."""
        provider, now = asked.entry.provider.id, self._clock.now_ms()
        if line.probe and (probe := self._probing.pop(provider, None)) is not None:
            probe.set()
        before = self._health.get(_key(profile), Health())
        if fault is None:
            after = cooldowns.answered(before, asked.model, now)
            self._stay(asked, line, profile)
        else:
            after = before if bypassed(asked.entry) else cooldowns.failed(before, fault, self._rules(provider))
        if after is before or (not line.named and fault is None and before == Health()):
            return
        self._health[_key(profile)] = after
        if line.named and self.logins is not None and (len(line.profiles) > 1 or _news(before, after)):
            self.logins.note((profile.agent, profile.id), after)

    def left(self, entry: Entry) -> None:
        """A probe was given up before it ended."""
        if (probe := self._probing.pop(entry.provider.id, None)) is not None:
            probe.set()

    def _stay(self, asked: Asked, line: Line, profile: Profile) -> None:
        provider = asked.entry.provider.id
        if line.pins and asked.session and self._pins.known.get((asked.session, provider)) != profile.id:
            self._pins.set(asked.session, provider, profile.id)
            if self.logins is not None:
                self.logins.keep_pin(asked.session, provider, profile.id)

    def _rules(self, provider: str) -> Rules:
        told = self._config().auth.cooldowns
        first = told.billing_backoff_hours_by_provider.get(provider, told.billing_backoff_hours)
        return Rules(first, max(first, told.billing_max_hours))

    def _of(self, profile: Profile) -> Health:
        return self._health.get(_key(profile), Health())


WORDS: Final = {
    FailureKind.RATE_LIMIT: "too many requests; try again later or choose another model",
    FailureKind.BILLING: "the account has no credit left; top it up or choose another model, and try again later",
    FailureKind.AUTH: "the key was refused; check it, and try again later",
}
"""What is said while a provider is not asked."""


def _key(profile: Profile) -> tuple[str, str, int]:
    """A login by what it is; another key under the same name is another one."""
    return profile.agent, profile.id, 0 if profile.kind == "oauth" else hash(profile.secret)


def _news(before: Health, after: Health) -> bool:
    """Whether more than the last use changed."""
    return (before.whole, before.models) != (after.whole, after.models)


async def _until(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return
