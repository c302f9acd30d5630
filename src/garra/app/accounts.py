"""The accounts of every channel, from the plugins that are on and the configuration that serves."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from garra.config.load import Snapshot, load
from garra.config.paths import Paths
from garra.core.errors import UserError
from garra.core.secret import Secret
from garra.domains.delivery.accounts import LinkKey, Outside, Setup, setups
from garra.domains.plugins import known, packages
from garra.domains.plugins.discover import Plugin
from garra.io.env import Environment
from garra.io.files import atomic


def configured(plugins: Iterable[Plugin], snapshot: Snapshot, env: Mapping[str, str]) -> list[Setup]:
    """Every account that is configured, in any channel of `plugins`; one whose packages are not installed says so as
    its fault. Blocks: it may read files that hold tokens."""
    written = snapshot.config.channels
    outside = Outside({**env, **snapshot.env}, secret_file)
    found = []
    for plugin in plugins:
        lacking = ""
        for part in plugin.manifest.parts:
            if (channel := written.get(part.name)) is not None:
                section: Mapping[str, Any] = channel.model_dump(mode="json", by_alias=True, exclude_unset=True)
                listed = setups(part.name, section, plugin.manifest.settings, outside)
                lacking = lacking or packages.needed(plugin)
                found += [replace(each, label=plugin.manifest.name, fault=each.fault or lacking) for each in listed]
    return found


def secrets(found: Iterable[Setup]) -> tuple[str, ...]:
    """The credentials of these accounts, wherever they stand: in the configuration, the environment or a file."""
    return tuple(sorted({text for setup in found for text in _revealed(setup.account.settings)}))


def _revealed(value: Any) -> Iterator[str]:
    if isinstance(value, Secret):
        if value:
            yield value.reveal()
    elif isinstance(value, Mapping):
        for below in value.values():
            yield from _revealed(below)


def folder(paths: Paths, key: LinkKey) -> Path:
    """Where a channel keeps the keys and logins of one account."""
    names = (quote(name, safe="").replace(".", "%2E") for name in key)
    return paths.state.joinpath("channels", *names)


def furnish(paths: Paths, plugins: Iterable[Plugin], found: Iterable[Setup]) -> None:
    """Make those folders, closed to others, for the channels that ask for one. Blocks."""
    asking = {part.name for each in plugins if "state" in each.manifest.needs for part in each.manifest.parts}
    for setup in found:
        if setup.channel in asking:
            folder(paths, setup.key).mkdir(mode=0o700, parents=True, exist_ok=True)


def secret_file(path: str) -> str:
    """A file that holds a token: a plain file, no symbolic link. Raises UserError."""
    where = Path(path).expanduser()
    try:
        facts = os.lstat(where)
    except OSError as error:
        raise UserError(f"{where}: {error.strerror}") from None
    if not stat.S_ISREG(facts.st_mode):
        raise UserError(f"{where} is no plain file; name the file itself, no link to it")
    return atomic.read(where, 1 << 16)


def local(paths: Paths, env: Environment) -> tuple[list[Plugin], list[Setup]]:
    """The channels that are on and their accounts, without a gateway; no plugin's code runs. Blocks."""
    snapshot = load(paths, env)
    channels = known.channels(paths, snapshot.config)
    return channels, configured(channels, snapshot, env)
