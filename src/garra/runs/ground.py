"""A first run: what people and programs look for in an installation is there before the first turn."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from garra.config.paths import Paths
from garra.config.sections import Config
from garra.core.errors import UserError
from garra.domains.context.workspace import Workspace
from garra.io.files import atomic
from garra.io.files.root import Root
from garra.sdk.ports import Clock

EMPTY = b"{}\n"


def lay(paths: Paths, env: Mapping[str, str]) -> None:
    """Make the state folder, that of extensions, and an empty configuration where there is none. Blocks.

    Raises OSError when the state folder cannot be made; the rest can wait.
    """
    atomic.folder(paths.state)
    with suppress(OSError):
        atomic.folder(paths.extensions)
        managed = paths.variable(env, "CONFIG_READONLY") == "1"
        ours = paths.config_file.parent == paths.state  # elsewhere it is somebody else's affair
        if ours and not managed and not paths.last_good.exists():  # it would be displaced by nothing
            atomic.create(paths.config_file, EMPTY)


def furnish(paths: Paths, config: Config, clock: Clock) -> Path:
    """Make the default agent's workspace with its files, unless it is there, and give its folder. Blocks.

    Raises UserError as a turn would, WorkspaceVanished among them.
    """
    agent = config.agents.default_id()
    folder = paths.workspace(agent, config)
    if not (marker(paths, agent).exists() and folder.is_dir()):
        workspace(paths, agent, folder, clock=clock, seed=not config.agents.defaults.skip_bootstrap).read()
    return folder


def workspace(paths: Paths, agent_id: str, folder: Path, *, clock: Clock, seed: bool) -> Workspace:
    """An agent's workspace in a folder. Raises UserError where the agent would find the gateway's own files. Blocks."""
    _refuse_own(folder, paths)
    return Workspace(Root(str(folder), paths.private), marker(paths, agent_id), clock, seed=seed)


def marker(paths: Paths, agent_id: str) -> Path:
    """What remembers that an agent's workspace was alive."""
    return paths.agents / agent_id / "workspace.json"


def _refuse_own(folder: Path, paths: Paths) -> None:
    if "\0" in str(folder):
        raise UserError("the workspace's path holds a NUL character; see agents.defaults.workspace")
    real, state = folder.resolve(), paths.state.resolve()
    if real != state and not (real.is_relative_to(state) and real.relative_to(state).parts[0] in paths.reserved):
        return
    raise UserError(f"{folder} is the gateway's own and no workspace; set agents.defaults.workspace to another folder")
