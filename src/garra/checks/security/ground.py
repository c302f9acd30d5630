"""One installation as the security audit sees it: gathered once, then judged by functions of these values alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any, Literal

from garra.config.gate import Gate
from garra.config.sections import Config
from garra.core.addresses import loopback
from garra.core.execrules import Rules
from garra.core.secret import Secret
from garra.core.value import frozen

What = Literal[
    "state_dir",
    "config",
    "config_include",
    "auth_profiles",
    "credentials_dir",
    "database",
    "sessions_store",
    "log_file",
]


@frozen
class Spot:
    """A folder or file of the installation. `mode` are its nine bits, `link`: its name is a symbolic link."""

    what: What
    path: str
    mode: int
    folder: bool = False
    link: bool = False


@frozen
class Installed:
    """A plugin that is not in the box. `fault`: why its manifest cannot be read."""

    id: str
    folder: str
    fault: str = ""


@frozen
class Escape:
    """A skill in a workspace whose real place is outside of it."""

    path: str
    real: str


@frozen
class Code:
    """What a look at the files of a plugin or skill came to: each hit is `(severity, file:line, what)`."""

    kind: Literal["plugins", "skills"]
    id: str
    folder: str
    hits: tuple[tuple[Literal["warn", "critical"], str, str], ...] = ()
    escapes: tuple[str, ...] = ()
    fault: str = ""


@frozen
class Deep:
    """What only `--deep` looks at. `probe` is empty where the gateway answered, else why not."""

    url: str = ""
    running: bool = False
    probe: str = ""
    naked: bool = False
    code: tuple[Code, ...] = ()
    engine: str = ""
    engine_fault: str = ""


@frozen
class Ground:
    """Everything that is judged. `tree` is the configuration as the file and its includes have it, after variables,
    `written` before them. `hosts` are empty where the settings name none. `people` counts those let in by a code, by
    channel. `rules` None: the document of approvals cannot be read.
    """

    config: Config
    tree: Mapping[str, Any] = field(default_factory=dict)
    written: Mapping[str, Any] = field(default_factory=dict)
    gate: Gate = field(default_factory=Gate)
    hosts: tuple[str, ...] = ("127.0.0.1", "::1")
    state: str = ""
    home: str = ""
    fault: str = ""
    spots: tuple[Spot, ...] = ()
    plugins: tuple[Installed, ...] = ()
    known_plugins: frozenset[str] = frozenset()
    escapes: tuple[Escape, ...] = ()
    skills_cut: str = ""
    mounts: tuple[str, ...] = ()
    loose: tuple[str, ...] = ()
    people: Mapping[str, int] = field(default_factory=dict)
    rules: Rules | None = field(default_factory=Rules)
    deep: Deep | None = None

    @property
    def exposed(self) -> bool:
        """Whether the gateway is reachable from other machines: by its own address, or because something forwards."""
        return not all(loopback(host) for host in self.hosts) or self.config.gateway.tailscale.mode != "off"

    def said(self, path: str) -> Any:
        """What the file says at a dotted path; None where it says nothing."""
        return at(self.tree, path)


def at(tree: Any, path: str) -> Any:
    """The value at a dotted path of plain values; None where there is none."""
    for key in path.split("."):
        if not isinstance(tree, Mapping):
            return None
        tree = tree.get(key)
    return tree


def listed(value: Any) -> tuple[str, ...]:
    """A list of texts, whatever stands there."""
    return tuple(str(each) for each in value) if isinstance(value, list | tuple) else ()


def weak(secret: Secret) -> bool:
    """Whether a secret is blank or what a broken script leaves: `undefined`, `null`."""
    return not secret.missing and secret.reveal().strip().lower() in {"", "undefined", "null", "none"}


def named(values: Iterable[str], most: int = 5) -> str:
    """Some of them in words."""
    every = list(values)
    more = len(every) - most
    return ", ".join(every[:most]) + (f" and {more} more" if more > 0 else "")
