"""The background commands of one session: followed, talked to, ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from garra.core.errors import ToolFailed, Unavailable
from garra.core.ids import SessionKey
from garra.core.value import frozen
from garra.domains.exec.job import Job
from garra.domains.exec.records import CUT_OFF, Records
from garra.sdk.ports import Clock, Ran


@frozen
class Behind:
    """As the second half of `sdk.ports.Exec`. `records` has those of earlier processes."""

    jobs: dict[str, Job]
    records: Records | None
    session_key: SessionKey

    def _before(self, session: str) -> Ran | None:
        return self.records.find(self.session_key, session) if self.records else None

    def _job(self, session: str) -> Job:
        job = self.jobs.get(session)
        if job is None and self._before(session) is not None:
            raise ToolFailed(f"{session} has ended: {CUT_OFF}")
        if job is None or not job.background:
            raise ToolFailed(f"there is no command {session} here; action list shows them")
        return job

    async def record(self, job: Job, records: Callable[[], Records | None]) -> None:
        """Write down that it runs, and how it ended, unless the gateway ends first."""
        if (kept := records()) is not None:
            await kept.keep(self.session_key, job.ran(""))
        await job.ended.wait()
        if (kept := records()) is not None:
            await kept.keep(self.session_key, job.whole())

    def running(self) -> Sequence[Ran]:
        before = self.records.of(self.session_key) if self.records else ()
        return [*(job.ran(job.output.last(200)) for job in reversed(self.jobs.values()) if job.background), *before]

    async def poll(self, session: str, wait_ms: int) -> Ran:
        if (ended := self._before(session)) is not None:
            return ended
        job = self._job(session)
        if wait_ms > 0 and not job.ended.is_set() and job.polled == job.output.total:
            job.news.clear()
            try:
                async with asyncio.timeout(wait_ms / 1000):
                    await job.news.wait()
            except TimeoutError:
                pass
        return job.fresh()

    def log(self, session: str, offset: int, limit: int) -> str:
        ran = self._before(session) or self._job(session).whole()
        lines = ran.output.split("\n")
        start = offset if offset >= 0 else max(0, len(lines) + offset)
        return "\n".join(lines[start : start + limit])

    async def send(self, session: str, data: bytes, clock: Clock) -> Ran:
        job = self._job(session)
        try:
            async with asyncio.timeout(10):
                await job.child.stdin.write(data)
        except TimeoutError:
            raise ToolFailed(f"{session} does not read its input") from None
        except Unavailable as error:
            raise ToolFailed(f"{session}: {error.message}; start it with background or pty to give it input") from None
        await clock.sleep(0.1)
        return job.fresh()

    async def kill(self, session: str) -> Ran:
        job = self._job(session)
        await job.kill()
        return job.fresh()
