"""Ways out of a closed network: which hosts a command may reach, by name and port."""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import Literal

from garra.core.patterns import later
from garra.core.value import frozen

WEB = (80, 443)
"""The ports that a name without one stands for."""
LONGEST = 253
_NAME = later(r"(?!-)[a-z0-9_-]{1,63}(?<!-)(\.(?!-)[a-z0-9_-]{1,63}(?<!-))*\Z")
HOUR_MS = 3_600_000


@frozen
class Target:
    """A host as it is compared (lower case, without a last dot), and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port in WEB else f"{host}:{self.port}"


@frozen
class Way:
    """One entry of the owner's list: a name, `*.` before it for all below it, `*` for every public host.

    `port` None: that of the web. A way whose host is whole (`exact`) may lead to an address that is not public.
    """

    host: str
    port: int | None = None

    @property
    def exact(self) -> bool:
        return "*" not in self.host

    def leads(self, target: Target) -> bool:
        if target.port not in ((self.port,) if self.port else WEB):
            return False
        if self.host == "*":
            return True
        return target.host.endswith(self.host[1:]) if self.host.startswith("*.") else target.host == self.host


@frozen
class Ways:
    """What an agent's commands may reach. `asks`: a person is asked about what is not listed. `open` false: nothing
    leads out, and nobody is asked.
    """

    listed: tuple[Way, ...] = ()
    asks: bool = False

    @property
    def open(self) -> bool:
        return bool(self.listed) or self.asks


CLOSED = Ways()
Leave = Literal["public", "listed", "no"]
"""How a target may be reached: where its address is public, whatever its address (the owner named it), or not."""


def leave(ways: Ways, target: Target) -> Leave:
    fitting = [way for way in ways.listed if way.leads(target)]
    if any(way.exact for way in fitting):
        return "listed"
    return "public" if fitting else "no"


def target(host: str, port: str | int) -> Target | None:
    """What a command asks for, as it is compared; None for what is no host or port.

    Names of other scripts come in their ASCII form. Odd spellings of addresses (`0x7f.1`, `127.1`, `2130706433`) are
    none, so that nothing but the plain form can be listed or asked about.
    """
    name = host.strip().lower().removesuffix(".").removeprefix("[").removesuffix("]")
    text = str(port)
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 65_536) or len(name) > LONGEST:
        return None
    try:
        return Target(str(ip_address(name)), int(text))
    except ValueError:
        pass
    last = name.rpartition(".")[2]
    if not _NAME.match(name) or last.isdigit() or last.startswith("0x"):
        return None
    return Target(name, int(text))


def way(text: str) -> Way | None:
    """An entry of the owner's list: `host`, `*.host`, `*`, each with `:port` or without; None for anything else."""
    entry = text.strip().lower()
    host, _, port = entry.rpartition(":") if re.search(r"[^:]:\d+\Z|\]:\d+\Z", entry) else (entry, "", "")
    if host == "*":
        return Way("*", int(port) if port else None) if target("a.b", port or 443) else None
    stem = host.removeprefix("*.")
    found = target(stem, port or 443)
    if found is None or (stem != host and ("." not in found.host or found.host.replace(".", "").isdigit())):
        return None
    return Way(found.host if stem == host else f"*.{found.host}", found.port if port else None)


def covers(target: Target, *, marked: bool = False) -> str:
    """The name that a person's yes is kept under; of a turn that has read text from outside, another one. The ports of
    the web are one: http leads to https and back.
    """
    return f"host:{target.host}:{'web' if target.port in WEB else target.port}" + (":marked" if marked else "")


def words(target: Target) -> str:
    """What such a yes covers, in words."""
    ports = "ports 80 and 443" if target.port in WEB else f"port {target.port} alone"
    return f"{target.host} ({ports})"


_UNREACHED = later(
    r"(could not|unable to|cannot|failed to) resolve|failure in name resolution|name or service not known|getaddrinfo"
    r"|eai_again|network is unreachable|failed to establish a new connection|no route to host"
    r"|sockets?\b.{0,200}(permission denied|not permitted)|(permission denied|not permitted).{0,200}\bsockets?\b",
    re.I | re.S,
)
TAIL = 4_000
"""Characters of what a command printed last that are looked at."""


def unreached(output: str) -> bool:
    """Whether what a command printed reads as if it had wanted a network."""
    return _UNREACHED.search(output[-TAIL:]) is not None


def no_way(sandbox: str, listed: int) -> str:
    """What the model is told of a command that wanted a network where no sandbox can lead out."""
    hosts = f"; egress.allow lists {listed} host{'' if listed == 1 else 's'}, and opens none of them" if listed else ""
    return (
        f"There is no network in this sandbox: {sandbox} alone can make no way out{hosts}. The owner gets one by "
        "installing bubblewrap on the gateway's machine (Debian, Ubuntu: apt install bubblewrap)"
    )
