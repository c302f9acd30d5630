"""One call to a model: by which login, its second tries, its patience and its price."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

from garra.core import failover, failures, resuming
from garra.core.blots import NONE, Blots
from garra.core.cooldowns import Fault
from garra.core.errors import Failure, FailureKind, GarraError, RunFailed
from garra.core.events import CallDelta, Done, Failed, StreamEvent
from garra.core.failover import Again, Attempt, Level, NextProfile, State, Suspend
from garra.core.failures import timed
from garra.core.messages import Assistant, Usage
from garra.core.profiles import Profile
from garra.core.trace import Request
from garra.core.value import frozen, replace
from garra.domains.models import keys, route
from garra.domains.models.catalog import Entry
from garra.domains.models.discreet import Discreet
from garra.domains.models.logins import Logins
from garra.domains.models.mending import mended
from garra.domains.models.patience import patient
from garra.domains.models.profiles import Asked, Fresh, Line, Profiles
from garra.sdk.model import Api, Cost, ModelRequest
from garra.sdk.ports import Clock, Spawn
from garra.sdk.stream import Stream


def _uncounted(_request: ModelRequest, _answer: Assistant, _priced: bool) -> None:  # noqa: FBT001 - as it is called
    return None


@frozen
class Ports:
    """What the registry is handed: where families come from, the environment, time, tasks, and what is kept secret.
    `spent` hears of each call that used something: its request, its answer as far as it came, and whether the model's
    price is known. `logins` are those that are kept, `fresh` renews one that ends, `learn`
    hears of their secrets.
    """

    apis: Callable[[str], Api]
    env: Callable[[], Mapping[str, str]]
    spawn: Spawn
    clock: Clock
    blots: Callable[[], Blots] = lambda: NONE
    spent: Callable[[ModelRequest, Assistant, bool], None] = _uncounted
    logins: Logins | None = None
    fresh: Fresh | None = None
    learn: Callable[[str], None] = lambda _: None


@frozen
class Way:
    """How a call stands among others. `note` hears of each attempt, `timed` when it was made; `behind` counts the
    models that could answer instead; `agent` and `prefer` are whose logins are used, and which one a person chose.
    """

    note: Callable[[Attempt], None] = lambda _: None
    behind: int = 0
    agent: str = ""
    prefer: str = ""
    timed: Callable[[Request], None] = lambda _: None


PLAIN: Final = Way()


class Call:
    """One call with what belongs to it: the same call again, and the provider's other logins."""

    def __init__(
        self, api: Api, ports: Ports, profiles: Profiles, *, entry: Entry, stream: Stream, way: Way, state: State
    ) -> None:
        self._api, self._ports, self._profiles = api, ports, profiles
        self._entry, self._stream, self._way, self._state = entry, stream, way, state
        self._calls = 0
        self._said = ""
        self._level: Level = "first"
        self._waited = 0
        self._began = self._first = 0
        self._usage = Usage()

    async def run(self, request: ModelRequest) -> None:
        """Fill the stream. Raises RunFailed where there is no key, or every login rests."""
        way, model = self._way, request.model
        asked = Asked(
            self._entry, model.id, self._ports.env(), request.session, way.agent, way.prefer, patient=not way.behind
        )
        try:
            line = await self._profiles.line(asked)
            try:
                await self._tried(self._readied(request), asked, line)
            finally:
                if line.probe:
                    self._profiles.left(self._entry)
        except RunFailed as failed:
            self._level = "session" if failed.failure.retry_after_ms else self._level
            self._tell(request, "", failed.failure)
            raise RunFailed(timed(failures.of(failed.failure, model.provider, model.id))) from None

    async def _tried(self, request: ModelRequest, asked: Asked, line: Line) -> None:
        self._state, at, first = replace(self._state, profiles=len(line.profiles) - 1), 0, request
        while True:
            profile, began = line.profiles[at], self._ports.clock.now_ms()
            failed = await self._once(request, profile)
            self._tell(request, profile.id, failed.failure if failed is not None else None)
            if failed is None:
                self._profiles.report(asked, line, profile, None)
                return
            effect: failover.Effect = Again(0, "operation")
            repaired = mended(first, failed.failure) if not self._calls else None
            if repaired is not None:
                first = repaired
            else:
                effect, failed = self._next(failed, asked, line, profile, began=began)
            match effect:
                case Again(wait, level):
                    self._level, self._waited = level, wait
                    await self._ports.clock.sleep(wait / 1_000)
                case NextProfile():
                    at, self._level, self._waited = at + 1, "profile", 0
                case _:
                    self._push(failed)
                    return
            self._calls += 1
            request = self._behind(first, began)

    def _next(
        self, failed: Failed, asked: Asked, line: Line, profile: Profile, *, began: int
    ) -> tuple[failover.Effect, Failed]:
        """What comes after a failed call; the failure says when another try makes sense, where that is known.

        A login is judged when its tries are over, not by each of them.
        """
        failure = failed.failure
        state, effect = failover.step(self._state, failover.Failed(failure))
        if not isinstance(effect, Again):
            now = self._ports.clock.now_ms()
            self._profiles.report(asked, line, profile, Fault(asked.model, failure, began, now))
            free = self._profiles.free_ms(asked, line)
            state, effect = failover.step(self._state, failover.Failed(failure, free_ms=free))
            if free is not None and failure.kind in failover.LIMITS:
                failure = replace(failure, retry_after_ms=failure.retry_after_ms or free)
                failed = replace(failed, failure=timed(failure) if isinstance(effect, Suspend) else failure)
        self._state = state
        return effect, failed

    def _behind(self, request: ModelRequest, now_ms: int) -> ModelRequest:
        """The request that goes on behind what was shown."""
        self._said = resuming.shown(self._stream.draft.parts())
        if not self._said:
            return request
        return replace(request, messages=resuming.continued(request.messages, self._said, now_ms), session="")

    def _push(self, event: StreamEvent) -> None:
        if isinstance(event, Done | Failed):
            event = resuming.whole(event, self._said)
        self._stream.push(resuming.moved(event, self._calls))

    def _tell(self, request: ModelRequest, profile: str, failure: Failure | None) -> None:
        model = request.model
        result = "success" if failure is None else failure.kind.value
        status, reason = (None, "") if failure is None else (failure.status, failure.message)
        self._way.note(Attempt(model.provider, model.id, result, profile, self._level, status, self._waited, reason))
        now = self._ports.clock.now_ms()
        self._way.timed(
            Request(
                self._began or now, now, model.provider, model.id, result, first=self._first, level=self._level,
                status=status, waited=self._waited, usage=self._usage,
            )
        )  # fmt: skip

    async def _once(self, request: ModelRequest, profile: Profile) -> Failed | None:
        """One attempt; its failure is given back, everything else goes on to the listener.

        Calls of tools go on when the answer is whole: nobody acts on a half one, and an answer that broke can be asked
        for again.
        """
        try:
            secret = await self._profiles.secret(profile)
            request = route.routed(request, profile, self._entry)
            api = await self._family(request)
        except RunFailed as failed:
            model = request.model
            blank = Assistant((), self._ports.clock.now_ms(), model.api, model.provider, model.id, stop="error")
            return Failed(replace(blank, error=failed.failure.message), failed.failure)
        self._began, self._first, self._usage = self._ports.clock.now_ms(), 0, Usage()
        inner = api.stream(request, secret)
        calls: list[CallDelta] = []
        out = Discreet(self._push, self._ports.blots())
        try:
            async for event in inner:
                self._first = self._first or self._ports.clock.now_ms()
                match event:
                    case Failed():
                        event = replace(event, message=self._counted(request, event.message))
                        return _without(secret, out.failed(event))
                    case CallDelta():
                        calls.append(event)
                    case Done():
                        for call in calls:
                            out.push(call)
                        out.push(Done(self._counted(request, event.message)))
                    case _:
                        out.push(event)
        finally:
            inner.abort()
        return None

    async def _family(self, request: ModelRequest) -> Api:
        """Who speaks what the request goes by. Raises RunFailed where nobody does."""
        family = request.model.api
        if family == self._api.family:
            return self._api
        try:
            return await asyncio.to_thread(self._ports.apis, family)
        except GarraError as error:
            line = f"this login needs the family {family}, which cannot be used: {error.message}"
            raise RunFailed(Failure(FailureKind.NOT_FOUND, line, provider=request.model.provider)) from None

    def _counted(self, request: ModelRequest, answer: Assistant) -> Assistant:
        """The answer, or what came of it, at the price of the model that was asked."""
        if not answer.usage.total and answer.stop in ("error", "aborted"):
            return answer
        model = request.model
        answer = replace(answer, usage=replace(answer.usage, cost=price(answer.usage, model.cost)))
        self._usage = answer.usage
        self._ports.spent(request, answer, model.cost != Cost() or model.api == "local")
        return answer

    def _readied(self, request: ModelRequest) -> ModelRequest:
        """With the headers and the patience that the owner set."""
        model, entry = request.model, self._entry
        secret = keys.headers(entry)
        if secret:
            request = replace(request, model=replace(model, headers={**model.headers, **secret}))
        return patient(request, entry, self._way.behind)


def _without(secret: str | None, failed: Failed) -> Failed:
    """The same with the key blotted out: servers repeat it in what they say is wrong with it. A short one is none."""
    if not secret or len(secret) < 8 or secret not in failed.failure.message + (failed.message.error or ""):
        return failed
    error = failed.message.error and failed.message.error.replace(secret, "[key]")
    told = failed.failure.message.replace(secret, "[key]")
    return Failed(replace(failed.message, error=error), replace(failed.failure, message=told))


def price(usage: Usage, cost: Cost) -> float:
    """What a call cost, in US dollars."""
    counted = (
        usage.input * cost.input
        + usage.output * cost.output
        + usage.cache_read * cost.cache_read
        + usage.cache_write * cost.cache_write
    )
    return counted / 1_000_000
