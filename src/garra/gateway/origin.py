"""Where a connection comes from: the real peer, what a trusted proxy says, and whether Host and Origin are ours.

"Local" is the parsed address of the socket's peer with nothing in between; no name, header or prefix makes it so.
Browsers send Host and Origin of the page they show, so a page of someone else's that was talked into calling this
machine is told by them and refused before anything is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

from garra.core.value import frozen

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


FORWARDED: Final = (
    "forwarded",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-forwarded-port",
    "x-forwarded-server",
    "x-forwarded-user",
    "x-real-ip",
)
_HOST: Final = re.compile(r"^(?P<name>\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::(?P<port>\d{1,5}))?$")


@frozen
class Approach:
    """One connection's origin. `address` is the client's, told by a trusted proxy when there is one.

    `loopback`: the client is on this machine, directly. `foreign` is an Origin that is not ours; `origin` is as sent.
    `port` is the peer's own, whoever stands behind it.
    `proxy_user` is set for nobody here: `auth` reads it where that mode is on.
    """

    address: str
    loopback: bool
    forwarded: bool = False
    host: str = ""
    origin: str | None = None
    foreign: bool = False
    port: int = 0


@frozen
class Barred:
    """Refused before any of it is read: HTTP status and text."""

    status: int
    text: str


@frozen
class Grounds:
    """What counts as ours. `local_only`: the gateway listens on loopback only, so only its names may be asked for."""

    proxies: tuple[Network, ...] = ()
    origins: tuple[str, ...] = ()
    local_only: bool = True


def networks(texts: Iterable[str]) -> tuple[Network, ...]:
    """Addresses and networks as configured; what is none is left out, so it admits nobody."""
    found = []
    for text in texts:
        try:
            found.append(ip_network(text.strip(), strict=False))
        except ValueError:
            continue
    return tuple(found)


def parsed(text: str) -> Address | None:
    """An address, an IPv4 one mapped into IPv6 as IPv4; None when it is none."""
    try:
        address = ip_address(text.strip("[]").split("%", 1)[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def is_loopback(text: str) -> bool:
    address = parsed(text)
    return address is not None and address.is_loopback


def approach(peer: str, headers: Mapping[str, str], grounds: Grounds) -> Approach | Barred:
    """Judge one request by its peer and headers (lower-case names)."""
    forwarded = any(name in headers for name in FORWARDED)
    address = parsed(peer)
    if forwarded and not _within(address, grounds.proxies):
        return Barred(403, "Forwarded headers are accepted from gateway.trustedProxies only")
    host = headers.get("host", "").strip().lower()
    shown = headers.get("x-forwarded-host", host).strip().lower() if forwarded else host
    if not forwarded and not _ours(host, grounds):
        return Barred(403, "Host is not a name of this gateway")
    origin = headers.get("origin")
    return Approach(
        _client(headers, grounds.proxies) or peer if forwarded else peer,
        not forwarded and address is not None and address.is_loopback,
        forwarded,
        shown,
        origin,
        origin is not None and not _allowed(origin, shown, grounds.origins),
    )


def _within(address: Address | None, nets: Sequence[Network]) -> bool:
    return address is not None and any(address.version == net.version and address in net for net in nets)


def _client(headers: Mapping[str, str], proxies: Sequence[Network]) -> str | None:
    """The last hop that is no proxy of ours; what stands before it may be invented."""
    hops = [hop.strip() for hop in headers.get("x-forwarded-for", headers.get("x-real-ip", "")).split(",")]
    for hop in reversed(hops):
        address = parsed(hop)
        if address is None:
            return None
        if not _within(address, proxies):
            return str(address)
    return None


def _ours(host: str, grounds: Grounds) -> bool:
    match = _HOST.match(host)
    if match is None:
        return False
    if not grounds.local_only:
        return True
    name = match["name"]
    return name == "localhost" or is_loopback(name) or any(_netloc(origin) == host for origin in grounds.origins)


def _netloc(origin: str) -> str:
    return origin.strip().lower().rstrip("/").partition("://")[2]


def _allowed(origin: str, host: str, origins: Sequence[str]) -> bool:
    shown = origin.strip().lower()
    if any(kept == "*" or kept.strip().lower().rstrip("/") == shown for kept in origins):
        return True
    scheme, _, netloc = shown.partition("://")
    if scheme not in ("http", "https"):
        return False
    return _with_port(netloc, scheme) == _with_port(host, scheme) != ""


def _with_port(netloc: str, scheme: str) -> str:
    match = _HOST.match(netloc)
    if match is None:
        return ""
    return f"{match['name']}:{match['port'] or {'http': '80', 'https': '443'}[scheme]}"
