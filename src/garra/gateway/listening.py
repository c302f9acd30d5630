"""One run's words for one HTTP caller: each piece as it comes, then how it ended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from garra.core.errors import FailureKind
from garra.core.events import MessageStarted, MessageUpdated, RunEnded, RunEvent, TextDelta
from garra.core.messages import Assistant
from garra.core.value import record
from garra.gateway.host import Host
from garra.gateway.openai import Ask, start
from garra.runs.run import Run


@record
class Heard:
    """A run that is listened to."""

    run: Run
    ended: RunEnded | None = None

    @property
    def finish(self) -> str:
        message = self.ended.message if self.ended else None
        return "length" if message is not None and message.stop == "length" else "stop"


def wrong(ended: RunEnded) -> tuple[str, int] | None:
    """(line, HTTP status) of a run that failed; None when it did not."""
    if ended.ending == "ok":
        return None
    line = ended.failure.message if ended.failure else ended.reply or ended.ending
    if ended.failure and ended.failure.kind is FailureKind.RATE_LIMIT:
        return line, 429
    return line, 504 if ended.ending == "timeout" else 500


class Listener:
    """Starts a run and hears it; leaving early stops the run, for nobody would read it."""

    def __init__(self, host: Host, ask: Ask, run_id: str) -> None:
        self._host, self._ask, self._run_id = host, ask, run_id
        self._queue: asyncio.Queue[str | None] = asyncio.Queue()
        self._spoken = self._joint = False

    async def __aenter__(self) -> Heard:
        self._end = self._host.show.tap(self._run_id, self._hear)
        try:
            self.heard = Heard(await start(self._host, self._ask, self._run_id))
        except BaseException:
            self._end()
            raise
        return self.heard

    async def __aexit__(self, *_: object) -> None:
        self._end()
        if self.heard.run.ended is None:
            stop = self._host.runs.abort(self._ask.session_key, self._run_id, "client-gone")
            self._host.spawn(stop, "abort after the caller left")

    def _hear(self, event: RunEvent) -> None:
        match event.body:
            case MessageStarted(message=Assistant()):
                self._joint = self._spoken
            case MessageUpdated(delta=TextDelta(delta=words)) if words:
                self._queue.put_nowait(f"\n\n{words}" if self._joint else words)
                self._spoken, self._joint = True, False
            case RunEnded():
                self._queue.put_nowait(None)

    async def words(self) -> AsyncIterator[str]:
        """The pieces; when they are over `heard.ended` is set. What was only told at the end comes as one piece."""
        while (piece := await self._queue.get()) is not None:
            yield piece
        self.heard.ended = await self.heard.run.wait()
        if not self._spoken and self.heard.ended.ending == "ok" and self.heard.ended.reply:
            yield self.heard.ended.reply
