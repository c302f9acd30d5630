"""Visits to places that a model, or a stranger, chose: every address judged, every redirect anew."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from urllib.parse import urljoin, urlsplit

from garra.core.errors import Unavailable
from garra.core.hosts import Hosts, plain
from garra.io.http.ask import Ask
from garra.io.http.bound import Binding
from garra.io.http.door import GuardedHttp
from garra.sdk.ports import DIRECT, Via
from garra.sdk.web import Visit, Visited

_HARMLESS = frozenset({"accept", "accept-encoding", "accept-language", "cache-control", "range", "user-agent"})
_TURNS = frozenset({301, 302, 303, 307, 308})


class Outside:
    """Visits by one set of hosts, which is asked for anew each time: a changed setting counts at once. `bound` are the
    secrets that may go to named hosts only.
    """

    def __init__(
        self, hosts: Callable[[], Hosts], via: Via | Callable[[], Via] = DIRECT, bound: Binding = lambda: ()
    ) -> None:
        self._hosts = hosts
        self.door = GuardedHttp(via, guard=lambda host: self._hosts().verdict(host) == "open", bound=bound)

    def check(self, url: str) -> None:
        """Raises Unavailable for what is no web address, and for a host that the owner blocks."""
        try:
            parts = urlsplit(url)
            host, _ = parts.hostname or "", parts.port
        except ValueError as error:
            raise _refused(f"{url[:200]!r} is no address: {error}") from None
        if parts.scheme not in {"http", "https"} or not plain(host):
            raise _refused(f"{url[:200]!r} is no address of the web: write it as https://host/path")
        if parts.username is not None or parts.password is not None:
            raise _refused("an address with a user name or password in it is not visited")
        if self._hosts().verdict(host) == "closed":
            raise _refused(f"{host} is among the hosts that the owner blocks")

    @asynccontextmanager
    async def open(self, visit: Visit) -> AsyncIterator[Visited]:
        """As `sdk.web.Web.open`."""
        headers = {"accept-encoding": "identity"} | {name.lower(): text for name, text in visit.headers.items()}
        ask = Ask(visit.method, visit.url, headers, visit.body, visit.wait_s, min(visit.wait_s, 10.0), self.door.way())
        pools = await self.door.pools()
        for _ in range(visit.redirects + 1):
            self.check(ask.url)
            answer = await pools.send(ask)
            try:
                location = answer.headers.get("location")
                if answer.status not in _TURNS or not location:
                    answer.url = ask.url
                    yield answer
                    return
                ask = _turned(ask, urljoin(ask.url, location), answer.status)
            finally:
                await answer.close()
        raise _refused(f"{visit.url[:200]} redirects more than {visit.redirects} times")

    async def close(self) -> None:
        await self.door.close()


def _turned(ask: Ask, target: str, status: int) -> Ask:
    """The same request to `target`; away from its origin it tells nothing, and it never goes from https to http."""
    before, after = urlsplit(ask.url), urlsplit(target)
    if before.scheme == "https" and after.scheme == "http":
        raise _refused(f"{before.netloc} redirects to http://, which is refused")
    if ask.method == "POST":
        if status not in {307, 308}:
            ask = replace(ask, method="GET", body=None)
        elif origin(ask.url) != origin(target):
            raise _refused(f"{before.netloc} sends on to {after.netloc} what was meant for it alone")
    if origin(ask.url) == origin(target):
        return replace(ask, url=target)
    return replace(ask, url=target, headers={name: text for name, text in ask.headers.items() if name in _HARMLESS})


def origin(url: str) -> tuple[str, str, int]:
    """Scheme, host and port of an address. Raises Unavailable for what is none."""
    try:
        parts = urlsplit(url)
        return parts.scheme, plain(parts.hostname or ""), parts.port or {"http": 80, "https": 443}.get(parts.scheme, 0)
    except ValueError as error:
        raise _refused(f"{url[:200]!r} is no address: {error}") from None


def _refused(line: str) -> Unavailable:
    return Unavailable(line, details={"kind": "refused"})
