"""Several agents on one message: one after the other, in rounds, under their names; also when the process dies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from garra.config.sections import Config
from garra.core.crowds import ASKED, HEARD
from garra.core.errors import Failure, FailureKind
from garra.core.events import TextDelta
from garra.core.messages import Message
from garra.testing.model import Says, says
from tests.turns.house import House, config, house

HANG = Says(hangs=True)
REVIEWER, WRITER = "agent:reviewer:test:group:-5", "agent:writer:test:group:-5"


def crowd(strategy: str = "parallel", **more: Any) -> Config:
    agents = [{"id": "main"}, {"id": "writer", "name": "Writer"}, {"id": "reviewer", "identity": {"name": "Rita"}}]
    told = {"agents": ["writer", "reviewer"], **more}
    return config({"agents": {"list": agents}, "broadcast": {"strategy": strategy, "test:-5": told}})


async def said(h: House, text: str = "look") -> str:
    return await h.channel.say(text, "1", "-5", mentioned=True)


def keys(h: House) -> list[str]:
    return [turn.session_key for turn in h.turns]


def speak(h: House, at: int) -> None:
    h.model.streams[at].push(TextDelta(1, "so it is"))
    h.model.streams[at].done("stop")


def once(messages: tuple[Message, ...]) -> Says:
    """An answer to people, silence to the other agents."""
    return says("NO_REPLY") if HEARD in messages[-1].text else says("fine")


async def test_one_after_the_other_in_their_order(tmp_path: Path) -> None:
    async with house(tmp_path, [HANG], crowd("sequential")) as h:
        first, second = await said(h), await said(h, "and this")
        await h.until(lambda: h.model.streams)
        assert keys(h) == [WRITER]
        speak(h, 0)
        await h.until(lambda: len(h.model.streams) == 2)
        assert keys(h) == [WRITER, REVIEWER]
        speak(h, 1)
        await h.until(lambda: len(h.model.streams) == 3)
        assert keys(h) == [WRITER, REVIEWER, WRITER]
        speak(h, 2)
        await h.until(lambda: len(h.model.streams) == 4)
        speak(h, 3)
        await h.idle()
        assert [(await h.row(each)).why for each in (first, second)] == ["answered", "answered"]


async def test_answers_begin_with_the_agents_names(tmp_path: Path) -> None:
    async with house(tmp_path, once, crowd("sequential")) as h:
        await said(h)
        await h.idle()
        assert h.channel.words() == ["Writer: fine", "Rita: fine"]
        await said(h, "@Rita alone")
        await said(h, "Rita is a name in a sentence")
        await h.idle()
        assert keys(h)[2:] == [REVIEWER, WRITER, REVIEWER]


async def test_in_a_second_round_each_hears_the_others_and_silence_ends_it(tmp_path: Path) -> None:
    async with house(tmp_path, once, crowd(maxRounds=3, maxTurns=9)) as h:
        row = await said(h)
        await h.idle()
        assert sorted(keys(h)) == [REVIEWER] * 2 + [WRITER] * 2
        assert sorted(h.channel.words()) == ["Rita: fine", "Writer: fine"]
        heard = next(turn.text for turn in h.turns if turn.run_id == f"{row}.reviewer.2")
        assert heard.startswith(f"{HEARD}\nWriter: fine\n")
        assert heard.endswith(ASKED)
        assert (await h.row(row)).why == "answered"


async def test_rounds_end_with_their_turns(tmp_path: Path) -> None:
    async with house(tmp_path, [says("more")], crowd(maxRounds=4, maxTurns=3)) as h:
        await said(h)
        await h.idle()
        assert [turn.run_id.partition(".")[2] for turn in h.turns] == ["writer", "reviewer", "writer.2"]
        assert len(h.channel.words()) == 3


async def test_one_who_fails_keeps_nobody_from_answering(tmp_path: Path) -> None:
    async with house(tmp_path, [HANG], crowd("sequential")) as h:
        row = await said(h)
        await h.until(lambda: h.model.streams)
        h.model.streams[0].fail(Failure(FailureKind.REFUSED, "refused"))
        await h.until(lambda: len(h.model.streams) == 2)
        speak(h, 1)
        await h.idle()
        assert (await h.row(row)).why == "answered"


async def test_a_stop_ends_all_rounds(tmp_path: Path) -> None:
    async with house(tmp_path, [HANG], crowd("sequential", maxRounds=2)) as h:
        row = await said(h)
        await h.until(lambda: h.model.streams)
        await said(h, "/stop")
        await h.idle()
        assert len(h.turns) == 1
        assert (await h.row(row)).why == "stopped"


async def test_a_restart_goes_through_the_same_rounds(tmp_path: Path) -> None:
    """The first agent had answered, the second was at work; then a second round was."""
    settings = crowd("sequential", maxRounds=2, maxTurns=4)
    async with house(tmp_path, [says("fine"), HANG], settings) as h:
        row = await said(h)
        await h.until(lambda: len(h.model.streams) == 2)
        assert h.channel.words() == ["Writer: fine"]
    async with house(tmp_path, [says("good"), HANG], settings) as h:
        await h.until(lambda: len(h.model.streams) == 2)
        assert h.channel.words()[-1:] == ["Rita: good"]
        assert [turn.run_id for turn in h.turns] == [f"{row}.reviewer", f"{row}.writer.2"]
    async with house(tmp_path, [says("NO_REPLY")], settings) as h:
        await h.idle()
        assert [turn.run_id for turn in h.turns] == [f"{row}.writer.2", f"{row}.reviewer.2"]
        assert (await h.row(row)).why == "answered"
        stored = await h.db.read(lambda db: db.execute("SELECT count(*) FROM outbox").fetchone()[0])
        assert stored == 2
