"""Whatever breaks on the way, a message is answered, or told why not, once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from garra.core.errors import NotFound, Unavailable
from garra.domains.delivery.draft import Draft
from garra.domains.delivery.engine import Embedded, Job
from garra.domains.delivery.inbox import InboxRow
from garra.io.clock import SystemClock
from garra.runs.run import Run, Turn
from garra.sdk.channel import Media
from garra.turns.parts import Gathered, Outbox, Ports, Runs
from garra.turns.pump import Hand
from tests.turns.house import config, echo, house, message


@dataclass
class FullDisk:
    """An outbox whose disk refuses so many times."""

    inner: Outbox
    refusals: int

    async def put(
        self, messages: Sequence[Draft], *, inbox_id: str | None = None, also: Sequence[str] = (), why: str = "answered"
    ) -> Any:
        if self.refusals:
            self.refusals -= 1
            raise Unavailable("the disk is full", retryable=True)
        return await self.inner.put(messages, inbox_id=inbox_id, also=also, why=why)

    async def retry(self, key: str) -> Any:
        return await self.inner.retry(key)


async def test_an_answer_waits_for_the_disk(tmp_path: Path) -> None:
    async with house(tmp_path, echo, change=lambda p: replace(p, outbox=FullDisk(p.outbox, 1))) as h:
        await h.channel.say("hello")
        await h.idle()
        assert h.channel.words() == ["re: hello"]
        assert len(h.model.requests) == 1


@dataclass
class Broken:
    """Runs that cannot begin, so many times."""

    inner: Runs
    error: Exception
    times: int = 1
    tried: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.active, self.every, self.abort = self.inner.active, self.inner.every, self.inner.abort
        self.subscribe = self.inner.subscribe

    async def submit(self, turn: Turn) -> Run:
        self.tried.append(turn.text)
        if len(self.tried) <= self.times:
            raise self.error
        return await self.inner.submit(turn)


async def test_a_fault_of_ours_is_tried_again_and_then_told(tmp_path: Path) -> None:
    async with house(tmp_path, echo, change=lambda p: replace(p, runs=Broken(p.runs, RuntimeError("bug"), 1))) as h:
        await h.channel.say("hello")
        await h.idle()
        assert h.channel.words() == ["re: hello"]


async def test_what_cannot_be_run_is_one_line(tmp_path: Path) -> None:
    error = NotFound("There is no agent ghost.")
    async with house(tmp_path, echo, change=lambda p: replace(p, runs=Broken(p.runs, error, 99))) as h:
        row = await h.channel.say("hello")
        await h.idle()
        assert h.channel.words() == ["There is no agent ghost."]
        assert (await h.row(row)).why == "failed"


async def test_who_joined_a_burst_that_failed_is_answered_for_itself(tmp_path: Path) -> None:
    settings = config({"messages": {"inbound": {"debounceMs": 100}}})
    error = NotFound("not now")
    async with house(tmp_path, echo, settings, change=lambda p: replace(p, runs=Broken(p.runs, error, 1))) as h:
        for text in ("one", "two", "three"):
            await h.channel.say(text)
        await h.idle()
        assert h.channel.words() == ["not now", "re: two\nthree"]


@dataclass
class Seeing:
    """Attachments that take their time, and one that breaks."""

    async def gather(self, event: Any, *keys: str) -> Gathered:
        if event.text == "broken":
            raise Unavailable("no such file")
        return Gathered(lines=("[a picture of a cat]",))


async def test_what_is_attached_is_part_of_the_words(tmp_path: Path) -> None:
    def change(ports: Ports) -> Ports:
        return replace(ports, attachments=Seeing())

    async with house(tmp_path, echo, change=change) as h:
        await h.channel.hear(message("look", media=(Media("image", "r"),)))
        await h.channel.hear(message("broken", user="2", media=(Media("image", "r"),)))
        await h.idle()
        assert sorted(h.channel.words()) == ["no such file", "re: look\n[a picture of a cat]"]


async def test_a_message_whose_chat_is_gone_from_the_file_meanwhile(tmp_path: Path) -> None:
    async with house(tmp_path, echo, started=False) as h:
        row = await h.channel.say("hello")
    async with house(tmp_path, echo, config(enabled=True).model_copy(update={"channels": {}})) as h:
        await h.idle()
        assert (await h.row(row)).why == "dm-disabled"
        assert not h.channel.sent


async def test_answers_keep_their_order_where_the_disk_refuses_one(tmp_path: Path) -> None:
    settings = config({"messages": {"inbound": {"debounceMs": 0}, "queue": {"mode": "followup", "debounceMs": 0}}})
    async with house(tmp_path, echo, settings, change=lambda p: replace(p, outbox=FullDisk(p.outbox, 1))) as h:
        for text in ("one", "two", "three"):
            await h.channel.say(text)
        await h.idle()
        assert h.channel.words() == ["re: one", "re: two", "re: three"]


@pytest.mark.req("SEC-02")
async def test_a_code_that_could_not_be_written_is_told_with_the_next_try_and_once(tmp_path: Path) -> None:
    settings = config(dmPolicy="pairing", allowFrom=[])
    async with house(tmp_path, echo, settings, change=lambda p: replace(p, outbox=FullDisk(p.outbox, 1))) as h:
        await h.channel.say("let me in", user="66")
        await h.idle()
        await h.channel.say("please", user="66")
        await h.idle()
        assert len(h.channel.words()) == 1
        assert not h.model.requests


class Refusing(Embedded):
    """An engine whose store refuses so many times."""

    refusals = 1

    async def adopted(self, job: Job, run_id: str, session_key: str) -> InboxRow:
        self._refuse()
        return await super().adopted(job, run_id, session_key)

    async def done(self, job: Job, why: str) -> InboxRow:
        self._refuse()
        return await super().done(job, why)

    async def retry(self, job: Job, delay_s: float) -> InboxRow:
        self._refuse()
        return await super().retry(job, delay_s)

    def _refuse(self) -> None:
        if self.refusals:
            self.refusals -= 1
            raise Unavailable("the disk is full", retryable=True)


@pytest.mark.req("MSG-02")
@pytest.mark.parametrize("word", ["adopt", "done", "release"])
async def test_a_store_that_refuses_does_not_hold_a_chat_for_ever(tmp_path: Path, word: str) -> None:
    async with house(tmp_path, echo, started=False) as h:
        await h.channel.say("one")
        second = await h.channel.say("two")
        hand = Hand(h.inbox, Refusing(h.inbox, SystemClock(), h.spawn), {})
        await hand.engine.start()
        job = await hand.engine.next()
        row_id = hand.jobs.setdefault(job.row.id, job).row.id
        steps = {
            "adopt": lambda: hand.adopt(row_id, "run", "key"),
            "done": lambda: hand.done(row_id, "done"),
            "release": lambda: hand.release(row_id),
        }
        with pytest.raises(Unavailable):
            await steps[word]()
        assert row_id in hand.jobs
        await steps[word]()
        assert row_id not in hand.jobs
        assert (await hand.engine.next()).row.id == (row_id if word == "release" else second)
