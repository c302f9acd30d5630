"""A restart in place: the same process begins its program anew, and the sockets it listens on live through it, so that
nobody who knocks meanwhile is refused. Loaded only where that happens.
"""

from __future__ import annotations

import logging
import os
import socket
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NoReturn

from garra import __version__
from garra.config.paths import Paths
from garra.core.errors import GarraError
from garra.core.value import record
from garra.domains.upkeep import handoff, installs
from garra.io.clock import SystemClock
from garra.io.process import respawn

log = logging.getLogger(__name__)

SOCKETS: Final = "GARRA_HANDED_OVER"
"""The variable that names the descriptors of the sockets, for the program that begins."""


@record
class Leaving:
    """A gateway that ends to begin anew. Times are milliseconds since 1970."""

    paths: Paths
    reason: str
    began: int
    asked: int
    running: int
    sockets: list[int]
    drained: int = 0
    left: int = 0
    """How many turns were not over within the limit; the next life goes on with them."""


def leave(paths: Paths, sockets: Iterable[socket.socket], reason: str, *, began: int, running: int) -> Leaving:
    """Hold on to the sockets, whoever closes them meanwhile."""
    held = [os.dup(listening.fileno()) for listening in sockets]
    return Leaving(paths, reason, began, SystemClock().now_ms(), running, held)


def again(leaving: Leaving, env: Mapping[str, str]) -> NoReturn:
    """Write down how it went, do what was wished for, and become the program anew. Blocks; no loop runs any more."""
    clock, paths = SystemClock(), leaving.paths
    wish = handoff.wished(paths, clock.now_ms())
    told: dict[str, Any] = {
        "schemaVersion": handoff.VERSION,
        "kind": handoff.KIND,
        "pid": os.getpid(),
        "reason": str(wish.get("reason") or leaving.reason)[:200],
        "requestedAt": leaving.asked,
        "before": {
            "version": __version__,
            "startedAt": leaving.began,
            "runs": leaving.running,
            "unfinishedRuns": leaving.left,
            "drainMs": leaving.drained - leaving.asked,
            "closeMs": clock.now_ms() - leaving.drained,
            "endedAt": clock.now_ms(),
        },
    }
    try:
        if wish.get("keep"):
            told["kept"] = str(installs.keep(paths))
        handoff.write(handoff.place(paths), told)
    except (GarraError, OSError) as fault:  # a restart without its papers is better than none
        log.warning("the hand-off was not written: %s", fault)
    for number in leaving.sockets:
        os.set_inheritable(number, True)
    more = {**env, SOCKETS: ",".join(map(str, leaving.sockets))}
    program = installs.current(paths) if wish.get("switch") else None
    if program is not None:
        os.execve(program, [str(program), "-P", "-m", "garra", *sys.argv[1:]], more)
    respawn.again(more)


def taken(env: Mapping[str, str], hosts: Sequence[str], port: int) -> list[socket.socket]:
    """The sockets of the life before, where they listen as they should now; else they are closed, and none."""
    found: list[socket.socket] = []
    for number in env.get(SOCKETS, "").split(","):
        with suppress(OSError, ValueError):
            os.set_inheritable(int(number), False)
            found.append(socket.socket(fileno=int(number)))
    if [each for each in found if not _listens(each)] or not _fits(found, hosts, port):
        for each in found:
            each.close()
        return []
    return found


def _listens(each: socket.socket) -> bool:
    with suppress(OSError):
        each.setblocking(False)
        return bool(each.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))
    return False


def _fits(found: Sequence[socket.socket], hosts: Sequence[str], port: int) -> bool:
    """Whether all that can be listened on is: an address this machine lacks has no socket."""
    names = [each.getsockname() for each in found]
    wanted = [host for host in hosts if port == 0 or host]
    return (
        bool(names)
        and {name[0] for name in names} <= set(wanted)
        and names[0][0] == wanted[0]
        and all(port in (0, name[1]) for name in names)
    )


def arrived(paths: Paths, began: int, steps: Mapping[str, float]) -> None:
    """Add what the new life took to the file of the one before. Blocks."""
    told = handoff.read(handoff.place(paths))
    before = told.get("before")
    if not isinstance(before, dict) or told.get("pid") != os.getpid() or "after" in told:
        return
    now = SystemClock().now_ms()
    told["after"] = {
        "version": __version__,
        "startedAt": began,
        "readyAt": now,
        "readyMs": now - began,
        "steps": {name: round(ms, 1) for name, ms in steps.items()},
    }
    told["awayMs"] = now - int(before["endedAt"])
    told["totalMs"] = now - int(told["requestedAt"])
    with suppress(OSError):
        handoff.write(handoff.place(paths), told)
    log.info("begun anew (%s): drained in %d ms, away for %d ms", told["reason"], before["drainMs"], told["awayMs"])
