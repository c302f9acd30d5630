"""The resident gateway: starts in named steps, serves until it is told to stop, leaves nothing half done."""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
import socket
import sys
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import uvloop

from garra import __version__
from garra.app import approvals_served as approvals
from garra.app import (
    budgets,
    engines,
    fallbacks,
    greeting,
    keeping,
    letters,
    logbook,
    nights,
    noticed,
    observe,
    page,
    recall,
    skilled,
    strange,
    switches,
    trying,
    webchat,
    weighing,
)
from garra.app.channels import Channels
from garra.app.house import Found, House, Options, new_id, opened
from garra.app.stopping import Stop
from garra.app.tidy import Tidy
from garra.config import gate
from garra.config.live import Live
from garra.config.load import load
from garra.config.paths import Paths
from garra.config.sections import Config
from garra.core.errors import Conflict, GarraError, UserError
from garra.core.value import frozen
from garra.domains.access.devices import Devices
from garra.domains.delivery.accounts import WEBCHAT
from garra.domains.models.detect import measure
from garra.gateway import door, kin, table, work
from garra.gateway import serve as port
from garra.gateway.host import Host, Parts
from garra.gateway.method import Registry
from garra.gateway.methods import pairing, questions, status
from garra.gateway.opening import Opening
from garra.gateway.server import Gateway
from garra.gateway.site import Site
from garra.io import heap, lock, passing
from garra.io.clock import SystemClock
from garra.io.env import Environment
from garra.io.files import atomic
from garra.io.files.root import Root
from garra.io.log import Log
from garra.io.store.db import Database
from garra.io.store.shelf import Shelf
from garra.io.tasks import Tasks
from garra.runs import ground
from garra.runs.toolbox import Toolbox

log = logging.getLogger(__name__)

DRAIN_S = 20.0
"""How long running work may take to end when the gateway is told to stop; a second signal cuts it short."""

HANDED = "GARRA_HANDED_OVER"
"""The variable by which the life before hands its sockets over; see `app.handover`."""

WARM_S = 2.0
"""How long after the start the model's library is loaded: who connects at once is served first."""


@frozen
class Overrides:
    """What the command line says instead of the configuration."""

    port: int | None = None
    bind: str | None = None
    token: str | None = None
    force: bool = False
    verbose: bool = False


def serve(paths: Paths, env: Environment, overrides: Overrides) -> int:
    """Run until SIGTERM or SIGINT; gives the exit code. Raises UserError when it cannot start."""
    heap.gather()
    stop = Stop()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        code = runner.run(_serve(stop, paths, env, overrides))
    if stop.anew:
        _handover().again(stop.leaving, env)
    return code


def _handover() -> Any:
    """Only where one life hands over to the next."""
    return importlib.import_module("garra.app.handover")


async def _serve(stop: Stop, paths: Paths, env: Environment, overrides: Overrides) -> int:
    async with AsyncExitStack() as stack:
        resident = _Resident(paths, env, overrides, stack, stop)
        await resident.start()
        heap.started()
        stop.listen()
        await stop.asked.wait()
        await resident.leave(stop)
    return 0


@dataclass(slots=True)
class _Resident:
    """One gateway process."""

    paths: Paths
    env: Environment
    overrides: Overrides
    stack: AsyncExitStack
    stop: Stop
    clock: SystemClock = field(default_factory=SystemClock)
    house: House | None = None
    gateway: Gateway | None = None
    server: port.Server | None = None
    channels: Channels | None = None
    sockets: list[socket.socket] = field(default_factory=list)
    began: int = 0

    async def start(self) -> None:
        """Every step in its order; one that fails leaves no port bound and nothing half started."""
        began = self.began = self.clock.now_ms()
        trace = port.Trace(self.clock)
        with trace.step("lock"):
            held = await asyncio.to_thread(self._lock, began)
        with trace.step("config"):
            live = Live(self.paths, self.env, await asyncio.to_thread(load, self.paths, self.env))
            kept = self._log(live)
        with trace.step("auth"):
            spare = door.new_token()
            way_in = self._door(live.config, spare)
        with trace.step("bind"):
            sockets = self._bind(live.config, way_in)
            number = sockets[0].getsockname()[1]
            held.update({**self._info(began), "port": number})
        with trace.step("secrets"):
            for issue in live.snapshot.warnings:
                log.warning("%s: %s", issue.path, issue.message)
        with trace.step("server"):
            found, gateway, opening = await self._listen(live, way_in, sockets)
        options = Options(found=found, step=trace.step)
        house = self.house = await self.stack.enter_async_context(opened(self.paths, self.env, options))
        await self._furnish(live.config)
        with trace.step("methods"):
            await gateway.devices.load()
            host = self._host(house, gateway, number, began)
            registry = self._connect(host, house, gateway)
            opening.site = Site(host, lambda: gateway.door, lambda: gateway.ready, registry, page.FILES)
            self.stack.callback(approvals.serve(house.approvals, host, house.runs))
            await gateway.health.refresh()
        with trace.step("channels"):
            switch = host.more[work.SWITCH] = await switches.made(house)
            channels = self.channels = Channels(house, kept.also, switch)
            channels.put = webchat.putting(host)
            host.more |= {"links": channels.links, "delivery": channels.desk, "pairing": channels.pairing}
            host.more |= {"shares": channels.shares, "handles": channels.handles}
            host.more[WEBCHAT] = channels.webchat
            host.more[kin.WHERE] = house.subagents
            host.more[weighing.WHERE] = weighing.asked(house, channels.pairing.allowed)
            host.more[work.LEDGER] = house.purse.ledger
            host.more[work.LOGINS] = house.keeper
            self._watch(house, host, channels)
            await channels.start()
        live.subscribe(lambda _, new: gateway.change(self._door(new, spare)))
        found.spawn(live.watch(), "configuration watch")
        with trace.step("ready"):
            greeting.greet(host, house, gateway, registry)
        self._announce(gateway, trace, sockets[0].getsockname(), spare)
        self._behind(house, found, trace)

    def _behind(self, house: House, found: Found, trace: port.Trace) -> None:
        """What nobody waits for."""
        found.spawn(self._prepare(house), "model family")
        found.spawn(Tidy(house.runs, self.clock).run(), "memory given back")
        found.spawn(keeping.keep(house), "old conversations")
        if self.env.get(HANDED):
            steps = {step.name: step.ms for step in trace.steps}
            found.spawn(asyncio.to_thread(_handover().arrived, self.paths, self.began, steps), "hand-off")

    def _watch(self, house: House, host: Host, channels: Channels) -> None:
        """What hears of things and passes them on, until the end."""
        self.stack.callback(pairing.watch(host))
        self.stack.callback(questions.watch(host, channels.questions))
        self.stack.callback(trying.serve(host, channels, house.db, self.stop.again))
        letters.serve(host, house.db)
        self.stack.callback(strange.watch(house))
        self.stack.callback(budgets.watch(house, host, channels))
        self.stack.callback(fallbacks.watch(house, host, channels))
        self.stack.callback(noticed.watch(house, host, channels))
        nights.watch(house, host)
        self.stack.callback(engines.watch(house, channels))
        host.more[recall.WHERE] = house.recalls
        skilled.serve(house, host)
        self.stack.callback(observe.watch(house, host, channels))

    def _bind(self, config: Config, way_in: door.Door) -> list[socket.socket]:
        """The listening sockets; none where the door would stand open."""
        hosts, number = self._hosts(config), self._port(config)
        gate.check_funnel(config, gate.Gate(way_in.mode, way_in.token, way_in.password))
        door.check_secret(way_in, config)
        door.check_bind(way_in, hosts, number, self.paths.prefix)
        handed = _handover().taken(self.env, hosts, number) if self.env.get(HANDED) else []
        sockets = self.sockets = handed or port.bind(hosts, number)
        for listening in sockets:
            self.stack.callback(listening.close)
        return sockets

    async def _listen(
        self, live: Live, way_in: door.Door, sockets: list[socket.socket]
    ) -> tuple[Found, Gateway, Opening]:
        """Answer on the port, though only with `not yet` before the house stands."""
        spawn = await self.stack.enter_async_context(Tasks())
        db = Database(self.paths.db)
        self.stack.push_async_callback(db.close)
        devices = Devices(Shelf(db, "devices"), Shelf(db, "device-requests"), self.clock)
        gateway = self.gateway = Gateway(way_in, devices, self.clock, spawn, version=__version__)
        opening = Opening()
        server = self.server = port.Server(gateway, opening)
        await server.start(sockets)
        self.stack.push_async_callback(server.close)
        spawn(gateway.pulse(), "gateway pulse")
        await self._pass(gateway)
        return Found(live, db, spawn), gateway, opening

    async def _furnish(self, config: Config) -> None:
        """The default agent's workspace is there from the first start on; one that cannot be used is told each turn."""
        try:
            await asyncio.to_thread(ground.furnish, self.paths, config, self.clock)
        except GarraError as fault:
            log.warning("%s", fault.message)

    async def _prepare(self, house: House) -> None:
        """Load what the first turn would otherwise wait for, once the start is over."""
        await self.clock.sleep(WARM_S)
        await house.models.warm()
        heap.settle()
        ref = house.models.primary()
        if ref:
            await measure(house.models, house.http, ref)

    def _lock(self, began: int) -> lock.Lock:
        """The state folder is ours alone."""
        try:
            with atomic.writing(self.paths.state):
                ground.lay(self.paths, self.env)
                held = lock.acquire(self.paths.lock, self._info(began))
        except Conflict as conflict:
            holder = (conflict.details or {}).get("holder") or {}
            where = f" on port {holder['port']}" if holder.get("port") else ""
            raise Conflict(
                f"a gateway already runs on {self.paths.state} (process {holder.get('pid', '?')}{where}): "
                "use that one, stop it, or give this one another --profile",
                details=conflict.details,
            ) from None
        self.stack.callback(held.release)
        return held

    def _info(self, began: int) -> dict[str, Any]:
        return {"pid": os.getpid(), "startedAt": began, "version": __version__, "stateDir": str(self.paths.state)}

    def _log(self, live: Live) -> Log:
        kept = logbook.opened(live, stderr=True, verbose=self.overrides.verbose)
        self.stack.callback(kept.close)
        if complaint := logbook.complaint(live):
            log.error("%s", complaint)
        for issue in live.snapshot.issues[1:]:  # the first one stands in the complaint
            log.error("%s: %s", issue.path or self.paths.config_file, issue.message)
        return kept

    async def _pass(self, gateway: Gateway) -> None:
        """Hand a token that stands in no configuration to this owner's own programs; no file holds it."""
        if not (gateway.door.generated or self.overrides.token):
            return
        try:
            closed = await passing.hand_out(self.paths.key_socket, lambda: gateway.door.secret.reveal())
        except OSError as error:
            log.warning("own programs must be given the token: %s: %s", self.paths.key_socket, error.strerror or error)
            return
        self.stack.push_async_callback(closed)

    def _door(self, config: Config, spare: str) -> door.Door:
        env = dict(self.env)
        if self.overrides.token:
            env[f"{self.paths.prefix}_GATEWAY_TOKEN"] = self.overrides.token
            auth = config.gateway.auth.model_copy(update={"token": None})
            config = config.model_copy(update={"gateway": config.gateway.model_copy(update={"auth": auth})})
        return door.read(config, env, self.paths.prefix, spare)

    def _hosts(self, config: Config) -> tuple[str, ...]:
        if self.overrides.bind:
            gateway = config.gateway.model_copy(update={"bind": self.overrides.bind})
            config = config.model_copy(update={"gateway": gateway})
        return door.hosts(config)

    def _port(self, config: Config) -> int:
        """Where to listen: the command line, then the environment, then the configuration."""
        if self.overrides.port is not None:
            return self.overrides.port
        text = self.paths.variable(self.env, "GATEWAY_PORT")
        if not text:
            return config.gateway.port
        if not text.isdigit() or int(text) > 65_535:
            raise UserError(f"{self.paths.prefix}_GATEWAY_PORT is {text!r}; a port is a number from 1 to 65535")
        return int(text)

    def _host(self, house: House, gateway: Gateway, number: int, began: int) -> Host:
        loop = asyncio.get_running_loop()
        return Host(
            Parts(
                __version__,
                number,
                began,
                house.live,
                house.sessions,
                house.runs,
                house.models,
                Toolbox(house.assembler),
                gateway.hub,
                self.clock,
                house.spawn,
                loop.call_later,
                new_id,
                Root,
            )
        )

    def _connect(self, host: Host, house: House, gateway: Gateway) -> Registry:
        """Tie the house to the gateway: methods, health, and the tools' own door to the methods."""
        gateway.hub.clean = house.discretion.clean
        registry = table.of(gateway)
        gateway.health.collect = lambda: status.health(host)
        house.calls.ask_gateway = table.caller(registry, host)
        return registry

    def _announce(self, gateway: Gateway, trace: port.Trace, where: tuple[Any, ...], spare: str) -> None:
        host = f"[{where[0]}]" if ":" in where[0] else where[0]
        log.info("ready on port %d in %.0f ms: ws://%s:%d", where[1], trace.total_ms, host, where[1])
        log.debug("the steps of the start: %s", trace)
        if gateway.door.generated:
            sys.stderr.write(
                "No gateway.auth.token is set, so this run made one; this machine's own clients find it:\n"
                f"  {spare}\n"
                "Set one for good with: garra config set gateway.auth.token TEXT\n"
            )

    async def leave(self, stop: Stop) -> None:
        """Let running work end (a second signal cuts that short), say goodbye, stop listening."""
        assert self.house is not None
        assert self.gateway is not None
        assert self.server is not None
        log.info("stopping")
        self.gateway.phase = "draining"
        self.house.spawn(approvals.rest(self.house.approvals, self.house.runs), "approvals at rest")
        if self.channels is not None:
            self.channels.rest()
        running = sum(run.state != "ended" for run in self.house.runs.every())
        if stop.anew:
            stop.leaving = _handover().leave(self.paths, self.sockets, stop.reason, began=self.began, running=running)
        over = asyncio.Event()
        self.house.spawn(self._drain(over), "drain")
        self.house.spawn(self._insist(stop, over), "insist")
        await over.wait()
        if stop.leaving is not None:
            stop.leaving.drained = self.clock.now_ms()
            stop.leaving.left = sum(run.state != "ended" for run in self.house.runs.every())
        await self.house.runs.close()
        if self.channels is not None:
            await self.channels.close()
        await self.gateway.close()
        await self.server.close()

    async def _drain(self, over: asyncio.Event) -> None:
        assert self.house is not None
        await self.house.runs.drain(DRAIN_S)
        over.set()

    async def _insist(self, stop: Stop, over: asyncio.Event) -> None:
        await stop.insisted.wait()
        over.set()
