"""Secrets that may go to named hosts only: looked for in every request, in whatever form, before it leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

from garra.core.blots import Blots, blots
from garra.core.errors import Unavailable
from garra.core.secret import Bound, Secret

Binding = Callable[[], tuple[Bound, ...]]


class Bounds:
    """The bindings of one door. `now` gives those in force; with none, a request costs nothing more."""

    def __init__(self, now: Binding) -> None:
        self._now = now
        self._finders = lru_cache(64)(_finder)

    def check(self, host: str, words: Iterable[str], body: bytes | tuple[bytes, ...] | None = None) -> None:
        """Raises Unavailable when a request to `host` holds a secret that is bound to others. It is not sent."""
        name = host.lower().rstrip(".")
        away = [bound for bound in self._now() if bound.hosts and bound.secret and name not in bound.hosts]
        if not away:
            return
        pieces = (body,) if isinstance(body, bytes) else body or ()
        said = "\n".join((*words, *(piece.decode("utf-8", "replace") for piece in pieces)))
        for bound in away:
            if self._finders(bound.secret).text(said) is not said:
                raise Unavailable(
                    f"not sent: the secret {bound.name} may not go to {host}, only to {', '.join(bound.hosts)}; "
                    f"`garra secrets set {bound.name} --allow-host HOST` changes that",
                    details={"kind": "refused"},
                )

    def check_request(
        self, host: str, url: str, headers: Mapping[str, str], body: bytes | tuple[bytes, ...] | None
    ) -> None:
        """As `check`, for a request."""
        self.check(host, (url, *headers.values()), body)


def _finder(secret: Secret) -> Blots:
    return blots([secret.reveal()])
