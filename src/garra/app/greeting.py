"""What a client is told when it connects, and the dispatcher that its requests go to."""

from __future__ import annotations

from garra import __version__
from garra.app.house import House
from garra.gateway.backstop import Backstop
from garra.gateway.broadcast import EMITTED
from garra.gateway.dispatch import Dispatcher
from garra.gateway.hello import Greeting, Now
from garra.gateway.hello import House as Known
from garra.gateway.host import Host
from garra.gateway.method import Registry
from garra.gateway.rows import model_of
from garra.gateway.server import Gateway


def greet(host: Host, house: House, gateway: Gateway, registry: Registry) -> None:
    """Let clients in: from now on they are greeted, and their requests carried out."""
    known = Known(__version__, gateway.me.instance_id, registry.advertised, EMITTED)
    clean, bounded = house.discretion.clean, Backstop(house.clock).check
    dispatch = Dispatcher(registry, host, house.spawn, lambda: gateway.ready, clean=clean, bounded=bounded)
    gateway.open(dispatch, Greeting(known, lambda: _now(host, house, gateway)))


def _now(host: Host, house: House, gateway: Gateway) -> Now:
    config, snapshot = host.config, host.live.snapshot
    agent = config.agents.default_id()
    session = {
        "defaultAgentId": agent,
        "mainKey": host.main,
        "mainSessionKey": f"agent:{agent}:{host.main}",
        "scope": "per-sender",
        "modelConfigured": model_of(host.models, None, agent) is not None,
        "ownership": "sole",
        "selectionRequired": False,
    }
    admin = {
        "configPath": str(house.paths.config_file),
        "stateDir": str(house.paths.state),
        "authMode": gateway.door.mode,
    }
    versions = {"presence": gateway.hub.versions.presence, "health": gateway.hub.versions.health}
    uptime = house.clock.now_ms() - host.started_at
    page = "configured" if config.gateway.control_ui.root else "bundled"
    return Now(gateway.rows(), gateway.health.raw, versions, uptime, snapshot.hash, session, admin, page)
