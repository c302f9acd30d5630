"""One call to a model: its key, its second try, its patience and its price."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from garra.core import failures
from garra.core.blots import NONE, Blots
from garra.core.errors import RunFailed
from garra.core.events import CallDelta, Done, Failed
from garra.core.messages import Assistant, Usage
from garra.core.value import frozen
from garra.domains.models import keys
from garra.domains.models.catalog import Entry
from garra.domains.models.discreet import Discreet
from garra.domains.models.mending import mended
from garra.sdk.model import Api, Cost, ModelRequest
from garra.sdk.ports import Clock, Spawn
from garra.sdk.stream import Stream

_SLOW_S = 300.0
"""How long the first sign may take of a model that thinks first, or of one that runs on this machine."""
_PAUSE_S = 120.0
"""How long such a one may pause between two signs."""


def _uncounted(_request: ModelRequest, _answer: Assistant, _priced: bool) -> None:  # noqa: FBT001 - as it is called
    return None


@frozen
class Ports:
    """What the registry is handed: where families come from, the environment, time, tasks, and what is kept secret.
    `spent` hears of each call that used something: its request, its answer as far as it came, and whether the model's
    price is known.
    """

    apis: Callable[[str], Api]
    env: Callable[[], Mapping[str, str]]
    spawn: Spawn
    clock: Clock
    blots: Callable[[], Blots] = lambda: NONE
    spent: Callable[[ModelRequest, Assistant, bool], None] = _uncounted


class Call:
    """One call with what belongs to it."""

    def __init__(self, api: Api, ports: Ports, entry: Entry | None, stream: Stream) -> None:
        self._api = api
        self._ports = ports
        self._entry = entry
        self._stream = stream

    async def run(self, request: ModelRequest) -> None:
        """Fill the stream. Raises RunFailed where there is no key."""
        try:
            await self._tried(request)
        except RunFailed as failed:
            failure = replace(failed.failure, provider=request.model.provider, model=request.model.id)
            raise RunFailed(failure) from None

    async def _tried(self, request: ModelRequest) -> None:
        attempt = 0
        while True:
            attempt += 1
            failed = await self._once(self._readied(request))
            if failed is None:
                return
            shown = bool(self._stream.draft.parts())
            repaired = mended(request, failed.failure) if attempt == 1 and not shown else None
            wait = 0 if repaired is not None else failures.again(failed.failure, attempt, shown=shown)
            if wait is None:
                self._stream.push(failed)
                return
            request = repaired or request
            await self._ports.clock.sleep(wait / 1_000)

    async def _once(self, request: ModelRequest) -> Failed | None:
        """One attempt; its failure is given back, everything else goes on to the listener.

        Calls of tools go on when the answer is whole: nobody acts on a half one, and an answer that broke before any
        word was shown can be asked for again.
        """
        secret = keys.found(self._entry, self._ports.env()) if self._entry is not None else None
        inner = self._api.stream(request, secret)
        calls: list[CallDelta] = []
        out = Discreet(self._stream.push, self._ports.blots())
        try:
            async for event in inner:
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

    def _counted(self, request: ModelRequest, answer: Assistant) -> Assistant:
        """The answer, or what came of it, at the price of the model that was asked."""
        if not answer.usage.total and answer.stop in ("error", "aborted"):
            return answer
        model = request.model
        answer = replace(answer, usage=replace(answer.usage, cost=price(answer.usage, model.cost)))
        self._ports.spent(request, answer, model.cost != Cost() or model.api == "local")
        return answer

    def _readied(self, request: ModelRequest) -> ModelRequest:
        """With the headers and the patience that the owner set."""
        model, entry = request.model, self._entry
        if entry is None:
            return request
        secret = keys.headers(entry)
        if secret:
            request = replace(request, model=replace(model, headers={**model.headers, **secret}))
        if entry.timeout_s is not None:
            return replace(request, timeout_first_s=entry.timeout_s, timeout_between_s=entry.timeout_s)
        slow = model.api == "local" or entry.provider.auth != "key" or (model.reasoning and request.thinking != "off")
        if not slow:
            return request
        first, between = max(request.timeout_first_s, _SLOW_S), max(request.timeout_between_s, _PAUSE_S)
        return replace(request, timeout_first_s=first, timeout_between_s=between)


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
