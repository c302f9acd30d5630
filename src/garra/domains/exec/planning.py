"""A command's plan: its real folders, the shell, its whole environment."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

from garra.core import execplan
from garra.core.containers import Bind
from garra.core.errors import ToolFailed
from garra.core.execplan import Settings
from garra.core.value import frozen
from garra.domains.exec import guard
from garra.io.process.door import Limits
from garra.sdk.ports import Launch
from garra.sdk.sandbox import Plan

SHELLS: Final = ("/bin/bash", "/usr/bin/bash", "/run/current-system/sw/bin/bash", "/bin/sh")
LIMITS: Final = Limits()


@frozen
class Host:
    """The machine: what commands on it are given (the owner's home, where programs are), and the `private` places of
    the gateway's own that no command in a sandbox may see.
    """

    home: str = "/"
    path: tuple[str, ...] = ()
    private: tuple[str, ...] = ()


@frozen
class Ground:
    """Where a session's commands stand."""

    workspace: str
    settings: Settings
    host: Host


def planned(launch: Launch, ground: Ground, *, shut_in: bool) -> Plan:
    """The command as a plan: its real folders, the one to start in below the workspace when shut in. Blocks."""
    root, asked = os.path.realpath(ground.workspace), launch.workdir
    if not os.path.isdir(root):  # noqa: PTH112
        raise ToolFailed(f"the workspace {ground.workspace} is gone")
    if "\0" in asked or asked.startswith("~"):
        raise ToolFailed(f"workdir: {asked!r} is no plain path; ~ is not expanded")
    real = os.path.realpath(os.path.join(root, asked))  # noqa: PTH118
    if shut_in and real != root and not real.startswith(root.rstrip("/") + "/"):
        raise ToolFailed(f"workdir: {asked} is outside the workspace {root}")
    if not os.path.isdir(real):  # noqa: PTH112
        raise ToolFailed(f"workdir: {asked} is no folder")
    shell = next((path for path in SHELLS if os.access(path, os.X_OK)), SHELLS[-1])
    host = ground.host
    lead = ground.settings.path if shut_in else (*ground.settings.path, *host.path)
    env = execplan.environment(root if shut_in else host.home, launch.env, lead, terminal=launch.pty)
    closed = tuple(guard.closed(root, host.private)) if shut_in else ()
    return Plan(
        (shell, "-c", launch.command),
        root,
        real,
        env,
        ground.settings.network,
        launch.pty,
        closed,
        limits=LIMITS.named(),
        binds=tuple(_seen(ground.settings, root)) if shut_in else (),
    )


def _seen(settings: Settings, root: str) -> Iterator[Bind]:
    """The further folders, to be read only; what the workspace holds is there already."""
    for folder in settings.seen():
        real = os.path.realpath(folder)
        if os.path.isdir(real) and not f"{real}/".startswith(f"{root.rstrip('/')}/"):  # noqa: PTH112
            yield Bind(real, folder)
