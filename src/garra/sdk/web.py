"""What tools of the web are granted: visits through the guarded door, the owner's settings, and who can search."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import field
from typing import Literal, Protocol

from garra.core.value import frozen
from garra.sdk.ports import Body
from garra.sdk.searcher import Searcher


@frozen
class Visit:
    """One request out. `redirects` are followed at most; `wait_s` bounds each wait for bytes, in seconds.

    `key` names a header and its form, `{key}` in it, that the door fills in with the secret of the searcher in
    question, and only for a request to that searcher's own origin.
    """

    url: str
    method: Literal["GET", "POST"] = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    redirects: int = 3
    wait_s: float = 30.0
    key: tuple[str, str] | None = None


class Visited(Body, Protocol):
    """An answer that is being read; `url` is where it came from, after all redirects."""

    url: str


@frozen
class Fetching:
    """`tools.web.fetch` as it is now. Sizes are bytes and characters, times seconds as named."""

    max_chars: int = 20_000
    max_chars_cap: int = 20_000
    max_response_bytes: int = 750_000
    timeout_s: float = 30.0
    cache_ttl_s: float = 900.0
    max_redirects: int = 3
    readability: bool = True
    user_agent: str = ""


@frozen
class Searching:
    """`tools.web.search` as it is now. `chosen` is the searcher to ask, `others` may be asked when that one fails.

    `explicit`: the owner named it, so that nobody else is asked instead.
    """

    chosen: Searcher | None = None
    others: tuple[Searcher, ...] = ()
    explicit: bool = False
    known: tuple[str, ...] = ()
    max_results: int = 5
    timeout_s: float = 30.0
    cache_ttl_s: float = 900.0


class Web(Protocol):
    """The web as a tool reaches it. Every address, that of each redirect too, is resolved once and checked before it
    is connected to: what is not public is refused unless the owner listed the host.
    """

    def fetching(self) -> Fetching: ...

    def searching(self) -> Searching: ...

    def open(self, visit: Visit, searcher: str = "") -> AbstractAsyncContextManager[Visited]:
        """One request, redirects and all; the answer's head has arrived when the context is entered. What the owner
        adds to the headers of `web_fetch` is added here.

        `searcher` is the id of the one that is asked, which may stand on a host that is not public. On the way to
        another origin only headers that tell nothing are kept. Raises Unavailable, with `{"kind": "refused"}` for
        what may not be reached.
        """
        ...


class Bounded(Protocol):
    """Runs a module of ours once, over bytes that nobody vouches for, in a process with little time and memory."""

    async def run(self, module: str, given: bytes, *, timeout_s: float = 20.0, limit: int = 8 << 20) -> bytes:
        """What `python -m module` says when it is given `given` as its input; at most `limit` bytes.

        Raises Unavailable when it took too long, or too much, or failed.
        """
        ...
