"""Composition root: the only place that knows every concrete class. Each way to run the house loads what it needs."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from garra.config.paths import Paths
from garra.io.env import Environment

UNUSED = {"importlib.metadata": {}, "uvicorn": {"Config": "uvicorn.config"}}
"""What comes along with what the gateway uses of websockets and uvicorn: a reader of packages, which nobody asks, and a
command line with its processes.
"""


def embedded(
    paths: Paths,
    env: Environment,
    *,
    workspace: Path | None = None,
    consent: Any = None,
    tell: Callable[[str], None] | None = None,
) -> AbstractAsyncContextManager[Any]:
    """The house for one command or one terminal (`app.house.House`). Raises Conflict while a gateway owns the state.

    `tell` shows the owner a line that is no answer; without it such lines go to standard error.
    """
    house = importlib.import_module("garra.app.house")
    made: AbstractAsyncContextManager[Any] = house.embedded(paths, env, workspace=workspace, consent=consent, tell=tell)
    return made


def serve(paths: Paths, env: Environment, **overrides: Any) -> int:
    """The resident gateway, in the foreground until it is told to stop; gives the exit code.

    `overrides`: port, bind, token, force, verbose. Raises UserError when it cannot start.
    """
    heap = importlib.import_module("garra.io.heap")
    heap.start()
    importlib.import_module("garra.io.later").later(UNUSED)
    resident = importlib.import_module("garra.app.resident")
    code: int = resident.serve(paths, env, resident.Overrides(**overrides))
    return code
