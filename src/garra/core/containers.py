"""Container engines: what a command's container is made of, and what of the machine may not get into it."""

from __future__ import annotations

import hashlib
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace

from garra.core.patterns import later
from garra.core.value import frozen

SYSTEM = (
    "/etc",
    "/proc",
    "/sys",
    "/dev",
    "/root",
    "/boot",
    "/run",
    "/var/run",
    "/var/lib/docker",
    "/var/lib/containers",
)
SECRETS = (
    ".aws", ".azure", ".cargo", ".config", ".docker", ".gnupg", ".kube", ".local/share/keyrings", ".netrc", ".npm",
    ".npmrc", ".ssh", ".garra", ".openclaw",
)  # fmt: skip
"""What lies in a home folder and lets its reader be somebody."""
RESERVED = ("/", "/bin", "/etc", "/dev", "/lib", "/lib64", "/proc", "/run", "/sbin", "/sys", "/tmp", "/usr")
"""Where nothing may be bound inside, or a folder of the machine would stand in for the system's own."""
LONGEST = 20_000
"""Characters of a setup script."""
_NETWORK = later(r"[A-Za-z0-9][A-Za-z0-9_.-]*\Z")
_USER = later(r"[0-9]+(:[0-9]+)?\Z")
_NAME = later(r"[A-Za-z_][A-Za-z0-9_]*\Z")


@frozen
class Bind:
    """A folder or file of the machine that is seen inside, at a path of its own."""

    source: str
    target: str
    writable: bool = False


@frozen
class Container:
    """How a container engine is asked to run a command; sizes as the engine writes them (`1g`).

    `network` is `none`, `bridge` or the name of a network of the engine's. `user` is `uid` or `uid:gid`; empty: ours.
    `setup` is a script that is run once, for all the commands of a `scope` (`agent:<id>`, a session's key or `shared`).
    `prepared` is the image that it made. `installation` tells the containers of this gateway from those of another one
    on the same engine.
    """

    image: str = "openclaw-sandbox:bookworm-slim"
    network: str = "none"
    user: str = ""
    read_only_root: bool = True
    tmpfs: tuple[str, ...] = ("/tmp", "/var/tmp", "/run")
    cap_drop: tuple[str, ...] = ("ALL",)
    env: Mapping[str, str] = field(default_factory=dict)
    pids_limit: int = 256
    memory: str = ""
    memory_swap: str = ""
    cpus: str = ""
    ulimits: tuple[str, ...] = ()
    gpus: str = ""
    seccomp_profile: str = ""
    apparmor_profile: str = ""
    dns: tuple[str, ...] = ()
    extra_hosts: tuple[str, ...] = ()
    prefix: str = "garra-sbx-"
    setup: str = ""
    prepared: str = ""
    scope: str = ""
    session: str = ""
    installation: str = ""

    @property
    def digest(self) -> str:
        """What its containers are made of and by, in sixteen letters: another one with any other setting."""
        made = replace(self, session="", prepared="")
        text = repr(sorted((name, _settled(getattr(made, name))) for name in made.__dataclass_fields__))
        return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def _settled(value: object) -> object:
    return sorted(value.items()) if isinstance(value, Mapping) else value


@frozen
class Ground:
    """What binds are judged by: real paths. `private` are the gateway's own places, `roots` those that binds may come
    from (a workspace may lie in a private place), `home` is the owner's. His `dangerously…` settings are the last
    three.
    """

    home: str
    private: tuple[str, ...] = ()
    roots: tuple[str, ...] = ()
    external: bool = False
    reserved: bool = False
    join: bool = False


def bind(text: str) -> Bind | None:
    """`host:container[:ro|rw]`, of absolute paths; None for anything else."""
    parts = text.split(":")
    if len(parts) == 3 and parts[2] not in {"ro", "rw"}:
        return None
    if len(parts) not in {2, 3} or "\0" in text or not all(part.startswith("/") for part in parts[:2]):
        return None
    return Bind(_plain(parts[0]), _plain(parts[1]), parts[2:] == ["rw"])


def _plain(path: str) -> str:
    return "/" + posixpath.normpath(path).lstrip("/")


def bind_faults(binds: Sequence[tuple[Bind, str]], ground: Ground) -> Iterator[str]:
    """Why binds are refused; each comes with where its source really is."""
    for each, real in binds:
        for path in dict.fromkeys((each.source, real)):
            if why := _closed(path, ground):
                yield f"binds: {each.source}: {why}"
                break
        else:
            if not ground.external and not any(_within(real, root) for root in ground.roots):
                yield f"binds: {each.source} is outside the workspace (dangerouslyAllowExternalBindSources)"
        if each.target in RESERVED and not ground.reserved:
            yield f"binds: {each.target} inside is the system's own (dangerouslyAllowReservedContainerTargets)"


def _closed(path: str, ground: Ground) -> str:
    """Why a place of the machine may never be seen inside; empty where it may."""
    if path.endswith((".sock", ".socket")):
        return "it is a socket of a program of this machine"
    for closed in SYSTEM:
        if _meets(path, closed):
            return f"{closed} is the system's"
    for name in SECRETS:
        if _meets(path, f"{ground.home.rstrip('/')}/{name}"):
            return f"~/{name} holds credentials"
    for place in ground.private:
        held = any(_within(root, place) and _within(path, root) for root in ground.roots)
        if _meets(path, place) and not held:
            return f"{place} is the gateway's own"
    return ""


def _within(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")


def _meets(path: str, closed: str) -> bool:
    """Whether one lies in the other, whichever."""
    return _within(path, closed) or _within(closed, path)


def faults(container: Container, ground: Ground) -> Iterator[str]:
    """Why a container is not made so."""
    if container.network == "host":
        yield "network: host is the machine's own network"
    elif container.network.startswith("container:"):
        if not ground.join or not _NETWORK.match(container.network.partition(":")[2]):
            yield "network: another container's network (dangerouslyAllowContainerNamespaceJoin)"
    elif not _NETWORK.match(container.network):
        yield f"network: {container.network!r} is no network's name"
    if container.user and not _USER.match(container.user):
        yield f"user: {container.user!r} is no uid or uid:gid"
    if not container.image or container.image.startswith("-"):
        yield f"image: {container.image!r} is no image"
    if container.seccomp_profile == "unconfined" or container.apparmor_profile == "unconfined":
        yield "seccompProfile, apparmorProfile: unconfined is no profile"
    if "\0" in container.setup or len(container.setup) > LONGEST:
        yield f"setupCommand: a script of at most {LONGEST:,} characters"
    if odd := [name for name, value in container.env.items() if not _NAME.match(name) or set(value) & {"\n", "\0"}]:
        yield f"env: {', '.join(odd)}: a name of letters and digits, a value of one line"
