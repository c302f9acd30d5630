"""What is kept out of everything that leaves: the secrets of configuration, environment, stores and accounts."""

from __future__ import annotations

from collections.abc import Iterable

from garra.config import view
from garra.config.live import Live
from garra.config.load import Snapshot
from garra.core.blots import Blots, blots
from garra.core.secret import Bound
from garra.io.http.door import GuardedHttp
from garra.sdk.ports import Via


class Discretion:
    """Knows the secrets in force. Cheap to ask: they are gathered anew when the configuration is read again."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._more: tuple[str, ...] = ()
        self._old: set[str] = set()
        self._snapshot: Snapshot | None = None
        self._known: frozenset[str] = frozenset()
        self._blots = Blots()

    def also(self, secrets: Iterable[str]) -> None:
        """Beside those, what stands elsewhere: in accounts' own files of tokens."""
        self._more, self._snapshot = tuple(secrets), None

    def learn(self, secret: str) -> None:
        """One more, fetched for one use."""
        if secret not in self._old:
            self._old.add(secret)
            self._snapshot = None

    def now(self) -> Blots:
        """What finds them. One that was replaced is known until the end: it may be in use elsewhere still."""
        found = self._live.snapshot
        if found is not self._snapshot:
            self._old.update(view.known_secrets(found))
            self._snapshot = found
            if (known := frozenset((*self._old, *self._more))) != self._known:
                self._known, self._blots = known, blots(known)
        return self._blots

    def bound(self) -> tuple[Bound, ...]:
        """Those that may go to named hosts only."""
        return self._live.snapshot.bound

    def door(self) -> GuardedHttp:
        """The door to the network by the owner's way out; what is bound to other hosts is refused there."""

        def way() -> Via:
            config = self._live.config
            return Via(config.proxy_url or None, config.ca_file or None)

        return GuardedHttp(way, bound=self.bound)

    def clean(self, data: bytes) -> bytes:
        """JSON without them; the same object where there is none in it."""
        return self.now().data(data)
