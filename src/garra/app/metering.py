"""Measures the house: counts what turns did as each ends, and looks at the rest when somebody asks.

Loaded only where `diagnostics` switches it on. It knows providers, models, tools and channels by name; it has no label
for a conversation, a person, a message or a run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final

from garra.app.channels import Channels
from garra.app.house import House
from garra.core import exposition
from garra.core.exposition import Family, Kind
from garra.core.trace import Marks, Request
from garra.domains.delivery.draft import OutboxRow
from garra.domains.metrics.meters import Meters
from garra.gateway.broadcast import Hub
from garra.gateway.host import Host
from garra.io import usage
from garra.runs.recorder import Kept
from garra.sdk.ports import Task

LAG_S: Final = 1.0
ENDS: Final = frozenset({"sent", "unsure", "dead"})
STATES: Final = ("queued", "running")
BOXES: Final = (
    *("in.pending", "in.claimed", "in.adopted", "in.dead"),
    *("out.pending", "out.sending", "out.unsure", "out.dead"),
)


class Metering:
    """`start` once; `close` ends it. `text` is what Prometheus is given, `families` the same as values."""

    def __init__(self, house: House, host: Host, channels: Channels) -> None:
        self._house, self._host, self._channels = house, host, channels
        self.meters = Meters()
        self._lag = self._worst = 0.0
        self._ends: list[Callable[[], object]] = []
        self._task: Task | None = None

    def start(self) -> None:
        house = self._house
        house.recorder.tellers.append(self.turned)
        self._ends = [
            lambda: house.recorder.tellers.remove(self.turned),
            self._channels.outbox.subscribe(self._moved),
            self._channels.inbox.subscribe(self._came),
        ]
        self._task = house.spawn(self._pulse(), "metrics")

    def close(self) -> None:
        for end in self._ends:
            end()
        self._ends = []
        if self._task is not None:
            self._task.cancel()

    async def text(self) -> str:
        return exposition.text(await self.families(), self._house.paths.prefix.lower())

    async def families(self) -> list[Family]:
        """Raises what the store raises."""
        found = [*self.meters.families(), *self._runs(), *await self._boxes(), *self._links(), *await self._process()]
        self._worst = self._lag
        return found

    # ---- what is counted

    def turned(self, kept: Kept) -> None:
        """A turn has ended."""
        marks, meters = kept.marks, self.meters
        meters.count("run_completed_total", kept.ending, kept.origin)
        meters.time("run_duration_seconds", kept.ended - kept.started, kept.ending)
        if marks.phases:
            meters.time("run_queue_wait_seconds", marks.phases[0][1] - marks.accepted)
        for request in marks.requests:
            self._requested(request)
        self._stepped(marks)

    def _requested(self, request: Request) -> None:
        meters, name = self.meters, (request.provider, request.model)
        meters.count("model_call_total", *name, request.result)
        meters.time("model_call_duration_seconds", request.ended - request.began, *name)
        if request.first and request.result == "success":
            meters.time("model_first_token_seconds", request.first - request.began, *name)
        if request.level != "first":
            meters.count("model_failover_total", request.level, request.provider)
        used = request.usage
        kinds = (("input", used.input), ("output", used.output), ("cache_read", used.cache_read))
        for kind, tokens in (*kinds, ("cache_write", used.cache_write)):
            if tokens:
                meters.count("model_tokens_total", *name, kind, by=tokens)
        if used.cost:
            meters.count("model_cost_usd_total", *name, by=used.cost)

    def _stepped(self, marks: Marks) -> None:
        meters = self.meters
        for step in marks.tools:
            meters.count("tool_execution_total", step.name, step.result or "stopped")
            meters.time("tool_execution_duration_seconds", (step.ended or marks.ended) - step.began, step.name)
        for step in marks.asked:
            meters.count("approval_total", step.result or "unanswered")
            meters.time("approval_wait_seconds", (step.ended or marks.ended) - step.began)
        for step in marks.compactions:
            meters.count("compaction_total", step.result)

    def _moved(self, row: OutboxRow) -> None:
        if row.state in ENDS:
            self.meters.count("message_delivery_total", row.draft.address.channel, row.state)

    def _came(self, row: Any) -> None:
        if row.state != "pending" or row.tries:
            return
        place = row.event.address
        self.meters.count("message_received_total", place.channel if place else "")

    # ---- what is looked at

    def _runs(self) -> list[Family]:
        assert isinstance(self._host.hub, Hub)
        peers = float(len(self._host.hub.peers))
        states = [run.state for run in self._house.runs.every()]
        pending = float(len(self._house.approvals.pending()))
        depth = [((state,), float(states.count(state))) for state in STATES]
        return [
            gauge("queue_depth", "Turns that are not over.", ("state",), depth),
            gauge("approvals_open", "Questions that wait for a person.", (), [((), pending)]),
            gauge("gateway_connections", "Clients that are connected.", (), [((), peers)]),
            gauge("gateway_build_info", "Which version runs.", ("version",), [((self._host.version,), 1.0)]),
        ]

    async def _boxes(self) -> list[Family]:
        """What is not finished, by the channel it came from or goes to."""
        sums: dict[tuple[str, ...], float] = {}
        for (channel, _), states in (await self._channels.desk.ledger.counts()).items():
            for state in BOXES:
                row = (exposition.word(channel), *state.split("."))
                sums[row] = sums.get(row, 0.0) + states.get(state, 0)
        labels = ("channel", "direction", "state")
        return [gauge("messages_unfinished", "Messages that are not at their end.", labels, sorted(sums.items()))]

    def _links(self) -> list[Family]:
        now, up, ages = self._house.clock.now_ms(), [], []
        for link in self._channels.links.status():
            name = (exposition.word(link.key.channel), exposition.word(link.key.account))
            up.append((name, float(link.state == "connected")))
            if link.alive_ms is not None:
                ages.append((name, max(0, now - link.alive_ms) / 1000))
        labels = ("channel", "account")
        return [
            gauge("channel_up", "Whether an account is connected.", labels, up),
            gauge("channel_alive_age_seconds", "Since an account last showed that it hears.", labels, ages),
        ]

    async def _process(self) -> list[Family]:
        used = await asyncio.to_thread(usage.used)
        lag = [(("last",), round(self._lag, 6)), (("max",), round(self._worst, 6))]
        return [
            gauge(
                "event_loop_lag_seconds", "How late the loop was, last and at most since the last look.", ("of",), lag
            ),
            gauge("process_resident_memory_bytes", "Resident memory in bytes.", (), [((), float(used.rss))]),
            Family("process_cpu_seconds_total", "counter", "CPU in seconds.", (), (((), round(used.cpu_s, 3)),)),
            gauge("process_open_fds", "Open descriptors.", (), [((), float(used.descriptors))]),
            gauge("process_start_time_seconds", "Since 1970.", (), [((), self._host.started_at / 1000)]),
        ]

    async def _pulse(self) -> None:
        """How late the loop wakes who asked to be woken."""
        clock = self._house.clock
        while True:
            asked = clock.monotonic()
            await clock.sleep(LAG_S)
            self._lag = max(0.0, clock.monotonic() - asked - LAG_S)
            self._worst = max(self._worst, self._lag)


def gauge(name: str, told: str, labels: tuple[str, ...], rows: Sequence[tuple[tuple[str, ...], float]]) -> Family:
    kind: Kind = "gauge"
    return Family(name, kind, told, labels, tuple(rows))
