"""Which network addresses are public, the ones an outside link may lead to, and which are this machine's own."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

# Set apart by the registries, but taken for public by some of the Pythons we run on.
# A cloud's metadata answers at 192.0.0.192.
_SET_APART = (
    IPv4Network("192.0.0.0/24"),
    IPv4Network("192.88.99.0/24"),
    IPv6Network("fec0::/10"),
    IPv6Network("3fff::/20"),
    IPv6Network("5f00::/16"),
)
_NEAR = (".localhost", ".local", ".internal", ".lan", ".home.arpa", ".home", ".corp", ".intranet", ".private", ".test")
_NAT64 = (IPv6Network("64:ff9b::/96"), IPv6Network("64:ff9b:1::/48"))


def public(address: str) -> bool:
    """Whether `address` (an IP address in text) is one of the open internet. What is no address is not."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(found, IPv6Address):
        inner = _inside(found)
        if inner is not None:
            return _open(inner)
    return _open(found)


def loopback(address: str) -> bool:
    """Whether `address` (an IP address in text, in brackets or not) is this machine's own; no name is."""
    try:
        found = ip_address(address.strip("[]").partition("%")[0])
    except ValueError:
        return False
    return ((isinstance(found, IPv6Address) and found.ipv4_mapped) or found).is_loopback


def inner(host: str) -> bool:
    """Whether a host, as somebody writes it, is certain to be no place of the open internet: an address that is not,
    or a name that no public directory has. Of other names only their addresses tell.
    """
    name = host.strip("[]").lower().rstrip(".")
    try:
        ip_address(name.partition("%")[0])
    except ValueError:
        return "." not in name or name.endswith(_NEAR)
    return not public(name)


def own(host: str) -> bool:
    """Whether it is this very machine, or what a cloud tells its machines of themselves."""
    name = host.strip("[]").lower().rstrip(".")
    return (
        name == "localhost" or name.endswith(".localhost") or loopback(name) or name.startswith(("169.254.", "fe80:"))
    )


def _open(found: IPv4Address | IPv6Address) -> bool:
    if any(found in network for network in _SET_APART):
        return False
    return found.is_global and not (found.is_multicast or found.is_reserved or found.is_unspecified)


def _inside(found: IPv6Address) -> IPv4Address | None:
    """The IPv4 address that an IPv6 address carries: mapped, 6to4, Teredo or translated."""
    if found.ipv4_mapped is not None:
        return found.ipv4_mapped
    if found.sixtofour is not None:
        return found.sixtofour
    if found.teredo is not None:
        return found.teredo[1]
    if any(found in network for network in _NAT64):
        return IPv4Address(int(found) & 0xFFFFFFFF)
    return None
