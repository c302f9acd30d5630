"""Which sessions have their commands shut in, how far, and whose folder they get."""

from __future__ import annotations

import hashlib
from typing import Literal

from garra.core.containers import Bind, Container, Ground
from garra.core.patterns import later
from garra.core.value import frozen
from garra.core.ways import CLOSED, Ways

Host = Literal["auto", "sandbox", "gateway", "node"]
Mode = Literal["off", "non-main", "all"]
Access = Literal["none", "ro", "rw"]
Sharing = Literal["session", "agent", "shared"]
OWN = frozenset({"local", "operator", "channel"})
"""Where a turn of the main session comes from that the owner, or somebody he talks as, has asked for himself."""
_ODD = later(r"[^a-z0-9._-]+")


@frozen
class Fence:
    """What the owner set under `agents.….sandbox`, for one session.

    `shut_in` false: its commands run on the machine itself unless they ask for the sandbox. `backend` names the one
    sandbox to use; empty: the best that works. `access` is what commands may do in the workspace. `binds` and
    `container` are judged on `ground` before anything runs. `fault` is why it cannot be as it was set: then nothing
    runs in it. `ways` lead out of its network.
    """

    shut_in: bool = True
    backend: str = ""
    access: Access = "rw"
    binds: tuple[Bind, ...] = ()
    container: Container | None = None
    ground: Ground = Ground("/")
    fault: str = ""
    ways: Ways = CLOSED


CLOSE = Fence()


def shut_in(mode: Mode | None, *, main: bool, origin: str, guest: bool) -> bool:
    """Whether the commands of a session are shut in. Without a setting all are.

    With `non-main`, only what the owner asks for in the agent's own conversation (`main`) runs on the machine: no
    `guest` there, no job, no sub-agent.
    """
    match mode:
        case "off":
            return False
        case "non-main":
            return not main or guest or origin not in OWN
        case _:
            return True


def host(configured: Host, fence: Fence) -> Host:
    """`tools.exec.host` as it holds behind a fence: where nothing is shut in, `auto` is the machine itself."""
    return "gateway" if configured == "auto" and not fence.shut_in else configured


def folder(sharing: Sharing, agent_id: str, session_key: str) -> str:
    """The name of the folder that stands in for the workspace where that is not to be seen."""
    if sharing == "shared":
        return "shared"
    whole = session_key if sharing == "session" else f"agent:{agent_id}"
    plain = _ODD.sub("-", whole.lower()).strip("-.")[:48]
    return f"{plain}-{hashlib.sha256(whole.encode()).hexdigest()[:12]}"
