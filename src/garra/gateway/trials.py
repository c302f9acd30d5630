"""A change of the configuration that an agent made: it begins when its turn is over, and is taken back by itself unless
its owner is heard again from where it was asked for, or confirms it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from garra.config.load import Snapshot
from garra.core.errors import Conflict, GarraError
from garra.core.events import RunEnded, RunEvent
from garra.core.value import frozen, record
from garra.gateway.host import Host
from garra.io.store.shelf import Shelf
from garra.runs.errand import Errand

log = logging.getLogger(__name__)

WHERE: Final = "trials"
"""Where they stand in `Host.more`."""

KEY: Final = "change"

Tell = Callable[[Errand | None, str], None]
"""A line for the owner: in the chat of an errand, and elsewhere where that may be cut off; None: wherever he is."""


@frozen
class Change:
    """What was agreed to. `base` is the hash of the text that was shown, `hold_s` how long it stays unconfirmed."""

    errand: Errand
    patch: Mapping[str, Any]
    paths: tuple[str, ...]
    base: str
    hold_s: float


@record
class Trials:
    """At most one change waits or is on trial; `shelf` keeps it over a restart."""

    host: Host
    tell: Tell
    shelf: Shelf
    _waiting: Change | None = None
    _trying: Change | None = None

    def start(self) -> Callable[[], None]:
        """Follow the runs; the call ends it."""
        self.host.live.on_reverted(self._reverted)
        return self.host.runs.subscribe(self._heard)

    async def load(self) -> None:
        """Know what an earlier process had on trial; tell of what it was asked for and did not come to."""
        row = await self.shelf.get(KEY)
        if not isinstance(row, Mapping):
            return
        change = msgspec.convert(row["change"], Change)
        if not row["waiting"] and await self.host.live.on_trial():
            self._trying = change
            return
        await self.shelf.remove(KEY)
        if row["waiting"]:
            self.tell(change.errand, "The configuration was not changed: the gateway ended before. Ask again.")

    async def schedule(self, change: Change) -> None:
        """It is made once the turn that asked for it is over. Raises Conflict while another one waits."""
        if self._waiting is not None or self._trying is not None:
            raise Conflict("another change waits or is on trial; config.confirm lets it stay")
        self._waiting = change
        await self._keep(change, waiting=True)

    async def _keep(self, change: Change, *, waiting: bool) -> None:
        await self.shelf.set(KEY, {"waiting": waiting, "change": msgspec.to_builtins(change)}, durable=True)

    async def confirm(self, why: str) -> bool:
        """Let the change stay; False when none is on trial."""
        self._trying = None
        stays = await self.host.live.confirm()
        if self._waiting is None:
            await self.shelf.remove(KEY)
        if stays:
            log.info("the change of the configuration stays: %s", why)
        return stays

    def _heard(self, event: RunEvent) -> None:
        waiting, trying = self._waiting, self._trying
        if waiting is not None and isinstance(event.body, RunEnded) and event.run_id == waiting.errand.run_id:
            self._waiting = None
            self.host.spawn(self._begin(waiting), "configuration change")
        elif trying is not None and event.seq == 1 and self._is_owner(event, trying):
            self.host.spawn(self.confirm("its owner was heard again"), "configuration change")

    def _is_owner(self, event: RunEvent, trying: Change) -> bool:
        """Whether whoever agreed speaks again in the same conversation: the way there and back is whole."""
        if event.session_key != trying.errand.session_key or event.run_id == trying.errand.run_id:
            return False
        run = self.host.runs.find(event.run_id)
        return run is not None and run.turn.origin in ("channel", "operator") and run.turn.place == trying.errand.place

    async def _begin(self, change: Change) -> None:
        try:
            await self._keep(change, waiting=False)
            await self.host.live.try_out(lambda writer: writer.patch(dict(change.patch), change.base), change.hold_s)
        except GarraError as error:
            self.tell(change.errand, f"The configuration was not changed: {error.message}")
            await self.shelf.remove(KEY)
            return
        self._trying = change
        named = ", ".join(change.paths)
        self.tell(
            change.errand,
            f"The configuration was changed: {named}. It is taken back in {change.hold_s:.0f} s unless you write here "
            "again or call config.confirm.",
        )

    def _reverted(self, _: Snapshot) -> None:
        change, self._trying = self._trying, None
        self.host.spawn(self.shelf.remove(KEY), "configuration change")
        named = f" ({', '.join(change.paths)})" if change else ""
        words = f"Nobody confirmed the change of the configuration{named}: it was taken back."
        self.tell(change.errand if change else None, words)


def trials(host: Host) -> Trials:
    """Raises GarraError where there are none."""
    found = host.more.get(WHERE)
    if not isinstance(found, Trials):
        raise GarraError("the configuration cannot be changed from here")
    return found
