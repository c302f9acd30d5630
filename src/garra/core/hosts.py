"""Which hosts an owner names, as reachable though they are not public, or as closed whatever they are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from garra.core.value import frozen

Verdict = Literal["check", "open", "closed"]


def plain(host: str) -> str:
    """A host as it is compared: lower case, without the dot at its end or the brackets of an IPv6 address."""
    return host.strip().lower().removeprefix("[").removesuffix("]").removesuffix(".")


@frozen
class Hosts:
    """`allowed` are exact names or addresses, `blocked` too, or `*.example.com` for what is below it.

    `private` opens every address; `blocked` closes all the same.
    """

    allowed: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()
    private: bool = False

    def verdict(self, host: str) -> Verdict:
        """Whether `host` is closed, open, or open where all its addresses are public."""
        name = plain(host)
        if _among(name, self.blocked):
            return "closed"
        return "open" if self.private or name in map(plain, self.allowed) else "check"


def _among(name: str, patterns: Iterable[str]) -> bool:
    return any(_means(plain(pattern), name) for pattern in patterns)


def _means(pattern: str, name: str) -> bool:
    return name.endswith(pattern[1:]) if pattern.startswith("*.") else name == pattern
