"""What a sandbox implements: it turns a command into one that is shut in.

A sandbox starts nothing itself. It says whether it works on this machine, and writes the argv that the one process
door then runs. What every sandbox must give: nothing of the machine can be written outside the workspace and the
command's own temporary folder, the owner's files cannot be read, the network is off unless the plan allows it, no
capability is held, and nothing inside outlives the program that is started.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from typing import Protocol, runtime_checkable

from garra.core.containers import Bind, Container
from garra.core.value import frozen


@frozen
class Exit:
    """The one way out of a closed network: a socket that listens on `port` of the sandbox's own loopback.

    The sandbox makes it and hands it out over the descriptor `handover` (one byte, with SCM_RIGHTS), which it inherits
    and which the command does not.
    """

    port: int
    handover: int


@frozen
class Plan:
    """One command to shut in.

    `argv` starts with an absolute path. `workspace` is a real path, seen inside at that same path; `workdir` is it or
    below it. `env` is the whole environment of the command. `terminal` is true when it gets a terminal of its own.
    `closed` are real paths below the workspace of what exists there and must not be seen inside; a folder's ends in /.
    `fixed` are real paths of what exists there, may be read and cannot be changed.
    `read_only`: nothing in the workspace can be changed. `limits` are those of `resource`, by name without RLIMIT_.
    `way_out` and `container` are for sandboxes that say they know them. `name` is unlike that of any other command.
    """

    argv: tuple[str, ...]
    workspace: str
    workdir: str
    env: Mapping[str, str] = field(default_factory=dict)
    network: bool = False
    terminal: bool = False
    closed: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()
    read_only: bool = False
    limits: Mapping[str, int] = field(default_factory=dict)
    binds: tuple[Bind, ...] = ()
    way_out: Exit | None = None
    container: Container | None = None
    name: str = ""


@frozen
class Wrapped:
    """What the process door is to run.

    `env` and `cwd` are those of the wrapper. `closed` is true when the end of the wrapper is the end, by the kernel,
    of everything inside, and our own end is the wrapper's; else the process door watches over what is left behind.
    `limited` is true when the limits of the plan are put on inside. `undo` is an argv to run once the command has
    ended, however it did: it ends what the wrapper may have left. So many arguments behind the program as `apart` says
    can be read by it from a descriptor (`--args FD`): what is inside may see its command line, and not those.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str
    closed: bool
    limited: bool = False
    undo: tuple[str, ...] = ()
    apart: int = 0


@frozen
class Availability:
    """Whether a sandbox works here; when not, `reason` says why and `remedy` what a person can do, one line each."""

    ok: bool
    reason: str = ""
    remedy: str = ""


@frozen
class Probed:
    """How a trial run ended: `code` None when it could not start or took too long."""

    code: int | None
    output: str


Probe = Callable[[Sequence[str]], Awaitable[Probed]]
"""Runs an argv to its end with a bare environment, at most five seconds, and gives back what it said."""


Chore = Callable[[Sequence[str], float], Awaitable[Probed]]
"""The same for what may take longer: at most so many seconds."""


class Sandbox(Protocol):
    """One way to shut a command in. It is made with the keyword argument `probe` (a `Probe`).

    `hides`: it can close places of the workspace (`Plan.closed`), and hold others fast (`Plan.fixed`); a plan that
    needs this is not given to another.
    """

    name: str
    hides: bool

    async def available(self) -> Availability:
        """Try it for real, once; the host keeps the answer."""
        ...

    def wrap(self, plan: Plan) -> Wrapped:
        """The command, shut in. Pure: it touches nothing."""
        ...


@runtime_checkable
class Opens(Protocol):
    """A sandbox that can make `Plan.way_out`; asked after `available`."""

    opens: bool


@runtime_checkable
class Named(Protocol):
    """A sandbox that is used only where `sandbox.backend` names it."""

    named: bool


@runtime_checkable
class Prepares(Protocol):
    """A sandbox that has something to do before its first command: `prepare` is awaited before each `wrap`."""

    async def prepare(self, plan: Plan) -> Plan:
        """The plan as it can be wrapped now. Raises ToolFailed with why nothing runs."""
        ...
