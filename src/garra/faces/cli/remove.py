"""`garra reset` and `garra uninstall`: what is kept on this machine goes, as far as is said."""

from __future__ import annotations

import importlib
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from garra.core.errors import Conflict, UserError
from garra.faces.cli import output, parsing, place
from garra.faces.cli.place import Place

SCOPES = ("config", "config+creds+sessions", "full")


def reset(arguments: Sequence[str]) -> int:
    parser = parsing.with_json(parsing.parser("reset", "Remove configuration or state; the program stays."))
    parser.add_argument("--scope", choices=SCOPES, help="how much goes")
    _common(parser)
    asked, here = parser.parse_args(list(arguments)), _owner()
    if asked.scope is None:
        raise UserError(f"say how much: --scope {' or '.join(SCOPES)}; --dry-run shows what would go")
    gone = _scoped(here, asked.scope)
    if not _sure(asked, gone):
        return 0
    if asked.scope != "config":
        _service(here).stop_if()
    removed = _remove(here, gone, alone=asked.scope != "config")
    _told(asked, removed, "Next: garra onboard" if asked.scope != "config" else "")
    return 0


def uninstall(arguments: Sequence[str]) -> int:
    parser = parsing.with_json(
        parsing.parser("uninstall", "Remove the service, the state, the workspaces; then say how the program goes.")
    )
    parser.add_argument("--service", action="store_true", help="the service")
    parser.add_argument("--state", action="store_true", help="state and configuration; workspaces stay")
    parser.add_argument("--workspace", action="store_true", help="the agents' folders")
    parser.add_argument("--all", action="store_true", help="all of these")
    _common(parser)
    asked, here = parser.parse_args(list(arguments)), _owner()
    if not (asked.service or asked.state or asked.workspace or asked.all):
        raise UserError("say what: --service, --state, --workspace, or --all; --dry-run shows what would go")
    workspaces = _workspaces(here)
    gone = workspaces if asked.workspace or asked.all else []
    if asked.state or asked.all:
        gone = gone + _state(here, [] if asked.workspace or asked.all else workspaces)
    service = _service(here)
    first = [f"service {service.plan.name}"] if (asked.service or asked.all) and service.there else []
    if not _sure(asked, [*first, *map(str, gone)]):
        return 0
    if asked.service or asked.all:
        service.found.uninstall()
    _told(asked, first + _remove(here, gone, alone=bool(gone)), f"Last: {_program(here)}")
    return 0


def _common(parser: Any) -> None:
    parser.add_argument("--dry-run", action="store_true", help="only say what would go")
    parser.add_argument("--yes", action="store_true", help="without asking")
    parser.add_argument("--non-interactive", action="store_true", help="ask nothing; needs --yes")


def _owner() -> Place:
    here = place.here()
    if here.agents:
        raise UserError("an agent's commands may not remove the state: the owner does, in another terminal")
    return here


class _service:  # noqa: N801 - the service of this installation, as the commands here need it
    def __init__(self, here: Place) -> None:
        self.found = importlib.import_module("garra.domains.upkeep.service").Installed(here.paths, here.env)
        self.plan = self.found.plan()

    @property
    def there(self) -> bool:
        return any(Path(path).exists() for path in self.plan.gone)

    def stop_if(self) -> None:
        if self.there:
            self.found.stop()


def _scoped(here: Place, scope: str) -> list[Path]:
    paths = here.paths
    config = [paths.config_file, paths.last_good, *paths.set_aside]
    if scope == "config":
        return _there(config)
    if scope == "full":
        return _workspaces(here) + _state(here, [])  # in this order: which those are stands in the state
    keys = [paths.secrets, paths.state / "secrets.json.key", paths.state / "credentials", paths.state / "gateway.env"]
    agents = sorted(paths.agents.glob("*")) if paths.agents.is_dir() else []
    kept = [place for agent in agents for place in (agent / "sessions", agent / "agent")]
    return _there([*config, *keys, *kept, paths.db, *(paths.state / f"state.db{end}" for end in ("-wal", "-shm"))])


def _there(places: Sequence[Path]) -> list[Path]:
    return [found for found in dict.fromkeys(places) if found.exists() or found.is_symlink()]


def _all(here: Place) -> list[Path]:
    """The agents' folders."""
    load = importlib.import_module("garra.config.load")
    config = load.load(here.paths, here.env).config
    return _there([here.paths.workspace(agent, config) for agent in config.agents.ids()])


def elsewhere(here: Place) -> list[Path]:
    """The agents' folders that do not stand in the state folder."""
    state = here.paths.state.resolve()
    return [path for path in _all(here) if path.is_dir() and not path.resolve().is_relative_to(state)]


def _workspaces(here: Place) -> list[Path]:
    """Those that may be removed: one that holds the home, the state, or this program is somebody's mistake."""
    held = [here.paths.home, here.paths.state, Path(sys.prefix), Path(sys.executable)]

    def risky(path: Path) -> bool:
        real = path.resolve()
        return len(real.parts) < 3 or any(each.resolve().is_relative_to(real) for each in held)

    found = _all(here)
    for path in found:
        if risky(path):
            output.note(f"left alone: the workspace {path} holds more than a workspace")
    return [path for path in found if not risky(path)]


def _state(here: Place, spared: Sequence[Path]) -> list[Path]:
    """The state folder, or all in it but `spared`."""
    paths = here.paths
    beside = _there([paths.config_file]) if not paths.config_file.is_relative_to(paths.state) else []
    inside = [path for path in spared if path.resolve().is_relative_to(paths.state.resolve())]
    if not inside:
        real = [paths.state.resolve()] if paths.state.is_symlink() else []
        return beside + _there([*real, paths.state])
    top = {paths.state / path.resolve().relative_to(paths.state.resolve()).parts[0] for path in inside}
    return beside + sorted(path for path in paths.state.glob("*") if path not in top)


def _sure(asked: Any, gone: Sequence[Any]) -> bool:
    if asked.dry_run or not gone:
        if asked.json:
            output.say_json({"ok": True, "dryRun": asked.dry_run, "removes": list(map(str, gone))})
        else:
            output.say("\n".join([f"would remove {each}" for each in gone] or ["There is nothing to remove."]))
        return False
    if not asked.yes:
        if asked.non_interactive or asked.json:
            raise UserError("--non-interactive needs --yes")
        for each in gone:
            output.note(f"  {each}")
        importlib.import_module("garra.faces.cli.backup").agreed("Remove these? There is no way back.")
    return True


def _remove(here: Place, gone: Sequence[Path], *, alone: bool) -> list[str]:
    """Raises Conflict while a gateway runs, where it must not."""
    lock = importlib.import_module("garra.io.lock")
    held = None
    if alone and here.paths.state.is_dir():
        try:
            held = lock.acquire(here.paths.lock, {"for": "removal"}, wait_s=5.0)
        except Conflict as busy:
            pid = ((busy.details or {}).get("holder") or {}).get("pid", "?")
            raise Conflict(f"a gateway runs on {here.paths.state} (process {pid}): stop it first") from None
    try:
        for path in gone:
            _removed(path)
    finally:
        if held is not None:
            held.release()
    return list(map(str, gone))


def _removed(path: Path) -> None:
    """Of a link only the link, of a folder where a volume hangs its content. Raises OSError with the first that cannot
    be removed.
    """
    if path.is_symlink():
        path.unlink()
    elif os.path.ismount(path):
        for each in path.iterdir():
            _removed(each)
    elif path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _told(asked: Any, removed: Sequence[str], more: str) -> None:
    if asked.json:
        output.say_json({"ok": True, "removed": list(removed), "next": more or None})
    else:
        output.say("\n".join([*(f"removed {each}" for each in removed), *([more] if more else [])]))


def _program(here: Place) -> str:
    installs = importlib.import_module("garra.domains.upkeep.installs")
    ways = {
        "pipx": "pipx uninstall garra",
        "uv": "uv tool uninstall garra",
        "versions": f"rm -r {installs.base(here.paths)} ~/.local/bin/garra",
        "container": "remove the container and its volume",
    }
    return f"the program itself goes with: {ways.get(installs.detect(here.paths).kind, 'pip uninstall garra')}"
