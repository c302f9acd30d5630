"""What must hold when a schedule has come to its end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from garra.core import transcript
from garra.core.messages import Assistant, Message, Text, ToolResult, User
from garra.domains.delivery.draft import OutboxRow
from garra.domains.delivery.inbox import InboxRow
from garra.domains.delivery.ledger import Query
from garra.sdk.channel import Inbound
from tests.core import strict
from tests.simulation.mind import WORD
from tests.simulation.process import Process, World
from tests.simulation.world import AGENTS, STRANGER, Plan, Platform

ALWAYS = {"received", "admitted", "routed", "done"}
"""The stations of whatever was let in."""

TURN = ALWAYS | {"adopted", "written"}


class Broken(AssertionError):
    """A schedule that broke a promise."""


@dataclass(frozen=True)
class Outcome:
    """What was seen of a schedule. `ends` counts how messages ended; `unsure` the answers whose arrival nobody knows;
    `at` is when the last message was shown.
    """

    plan: Plan
    ends: tuple[tuple[str, int], ...]
    unsure: int
    calls: int
    at: float

    @property
    def answers(self) -> int:
        return dict(self.ends).get("answered", 0)


@dataclass
class Judge:
    """Everything that can be looked at."""

    world: World
    came: list[InboxRow]
    went: list[OutboxRow]
    stories: dict[str, Counter[str]]

    @classmethod
    async def of(cls, world: World, process: Process) -> Judge:
        rows = await process.ledger.rows(Query(limit=10_000))
        came = sorted((row for row in rows if isinstance(row, InboxRow)), key=lambda row: row.seq)
        went = [row for row in rows if isinstance(row, OutboxRow)]
        stories = {row.id: Counter(each.station for each in await process.timeline.timeline(row.id)) for row in came}
        return cls(world, came, went, stories)

    def judge(self) -> Outcome:
        """Raises Broken."""
        self._everything_came_once()
        for row in self.came:
            self._came_to_an_end(row)
        for out in self.went:
            _shown_once(self.world.platform, out)
        self._in_order()
        self._owner_was_told()
        self._strangers_got_nowhere()
        self._transcripts_are_whole()
        platform = self.world.platform
        if platform.early and not (platform.plan.kills or platform.plan.slips):
            raise Broken(f"sent before the platform's time: {platform.early}")
        ends = Counter(row.why for row in self.came if _spoke(row) and not _strange(row))
        unsure = sum(row.state == "unsure" for row in self.replies)
        at = max((each.at for each in platform.shown), default=0.0)
        return Outcome(self.world.plan, tuple(sorted(ends.items())), unsure, self.world.provider.calls, at)

    @property
    def replies(self) -> list[OutboxRow]:
        return [row for row in self.went if row.draft.purpose == "reply"]

    @property
    def _dies(self) -> bool:
        return bool(self.world.plan.kills or self.world.plan.slips)

    def _everything_came_once(self) -> None:
        if sorted(row.event.id for row in self.came) != sorted(event.id for event in self.world.platform.updates):
            raise Broken("a message was lost or taken twice")
        if any(row.state != "done" for row in self.came):
            raise Broken(f"not done: {[(_text(row), row.state, row.why) for row in self.came if row.state != 'done']}")

    def _came_to_an_end(self, row: InboxRow) -> None:
        text, named = _text(row), self._answers_to(row)
        if _strange(row) or text.startswith("o"):
            if named or self.stories[row.id]["adopted"]:
                raise Broken(f"{text} started a turn")
            return
        if text == "/stop":
            self._commanded(row)
            return
        needed, least, most = self._expected(row)
        if gaps := needed - self.stories[row.id].keys():
            raise Broken(f"{text} ({row.why}) has a story with gaps: no {sorted(gaps)}")
        if not least <= named <= most:
            raise Broken(f"{text} ended {row.why!r} and is answered {named} times")

    def _answers_to(self, row: InboxRow) -> int:
        return sum(_text(row) in WORD.findall(out.draft.text) for out in self.replies)

    def _expected(self, row: InboxRow) -> tuple[set[str], int, int]:
        """(stations, fewest and most answers that name it): who was told that a run failed may be answered by the next
        run, which reads the same conversation.
        """
        plan, whys = self.world.plan, {each.why for each in self.came}
        crowded = plan.crowded(_place(row)[0])
        most = len(AGENTS) if crowded else 1
        match row.why:
            case "answered" if crowded:
                refusing = plan.mode in ("drop", "interrupt") or plan.cap < plan.messages
                troubled = self._dies or plan.fails or plan.full or plan.stops or refusing
                return ALWAYS | {"adopted"}, 0 if troubled else most, most
            case "answered":
                return TURN, 1, 1
            case "failed":  # of several agents one may have said so before its process died
                return {"received", "done"} | (set() if crowded else {"written"}), 0, most
            case "joined" if self._dies:
                led_on = whys.isdisjoint(("failed", "stopped", "interrupted"))
                return ALWAYS | {"adopted"}, 1 if led_on else 0, most
            case "stopped" if any(_text(each) == "/stop" for each in self.came):
                return ALWAYS, 0, most
            case "interrupted" if plan.mode == "interrupt":
                return ALWAYS | {"adopted"}, 0, most
            case _:
                raise Broken(f"{_text(row)} ended {row.why!r}")

    def _commanded(self, row: InboxRow) -> None:
        if isinstance(row.event, Inbound) and row.why == "not-mentioned":
            return
        said = [out.key for out in self.replies if out.key.startswith(f"out:{row.id}:")]
        needed = ALWAYS | {"written"} if row.why != "failed" else {"received", "written", "done"}
        if len(said) != 1 or not needed <= self.stories[row.id].keys():
            raise Broken(f"/stop {row.id} ({row.why}) was answered by {said}: {sorted(self.stories[row.id])}")

    def _in_order(self) -> None:
        place = {row.key: row.place for row in self.went}
        seq = {_text(row): (_place(row), row.seq) for row in self.came if self._kept_its_place(row)}
        lanes: dict[tuple[str, str], list[str]] = {}
        words: dict[tuple[str, str, str], list[int]] = {}
        for each in self.world.platform.shown:
            lane = each.chat, each.thread
            if not each.key.startswith("notice:"):  # one that was being sent at a crash is sent again, behind others
                lanes.setdefault(lane, []).append(each.key)
            agent = each.text.partition(":")[0] if self.world.plan.crowded(each.chat) else ""
            own = [
                seq[word] for word in WORD.findall(each.text) if word in seq
            ]  # a conversation may be shared with other chats
            words.setdefault((*lane, agent), []).extend(number for place, number in own if place == lane)
        for lane, keys in lanes.items():
            if [place[key] for key in keys] != sorted(place[key] for key in keys):
                raise Broken(f"{lane} got its messages in another order than they were written")
        for of, numbers in words.items():
            if numbers != sorted(numbers):
                raise Broken(f"{of} got its answers in another order than its messages came: {numbers}")

    def _kept_its_place(self, row: InboxRow) -> bool:
        """Not so what the store refused for long, and a run that had failed when its process died before it said so."""
        return not row.tries and self.stories[row.id]["answered"] <= 1

    def _owner_was_told(self) -> None:
        unsure = [row.key for row in self.replies if row.state == "unsure"]
        told = any(row.draft.purpose == "notice" for row in self.went)
        if unsure and not told:
            raise Broken(f"{unsure} are unsure, and the owner was not told")

    def _strangers_got_nowhere(self) -> None:
        """One code for each who wrote directly; for a group, nothing."""
        wrote = {_place(row)[0] for row in self.came if _strange(row) and _direct(row)}
        told = Counter(out.draft.address.chat for out in self.replies if out.key.startswith("out:pairing:"))
        if told != Counter(wrote):
            raise Broken(f"of the strangers {sorted(wrote)} these got codes: {dict(told)}")
        for out in self.went:
            if STRANGER in out.draft.text:
                raise Broken(f"{out.key} has a stranger's words")

    def _transcripts_are_whole(self) -> None:
        if self.world.provider.faults:
            raise Broken(f"a strict provider refuses: {self.world.provider.faults}")
        for path, file in self.world.disk.files.items():
            if STRANGER.encode() in file.data:
                raise Broken(f"{path.name} has a stranger's words")
            loaded = transcript.load(file.data)
            branch = transcript.branch({each.id: each for each in loaded.entries}, transcript.tip(loaded.entries))
            messages = tuple(transcript.visible(branch))
            _said_once(path.name, messages)
            paired = tuple(_interrupted(messages)) if self._dies or self.world.plan.full else messages
            if (fault := strict.fault(strict.openai(_whole(paired)), signatures="")) is not None:
                raise Broken(f"{path.name}: {fault}")


def _said_once(name: str, messages: Iterable[Message]) -> None:
    users = [message for message in messages if isinstance(message, User)]
    keys = Counter(message.meta["idempotencyKey"] for message in users if "idempotencyKey" in message.meta)
    words = Counter(
        word
        for message in users
        if "idempotencyKey" in message.meta
        for word in WORD.findall(message.text.rpartition("[Current message")[2])
    )
    twice = [each for each, count in (keys + words).items() if count > 1]
    if twice:
        raise Broken(f"{name} has {twice} twice")


def _interrupted(messages: Sequence[Message]) -> Iterable[Message]:
    """With a result for each call that a kill has left without one."""
    open_calls: dict[str, str] = {}
    for message in messages:
        if isinstance(message, ToolResult):
            open_calls.pop(message.call_id, None)
        else:
            yield from (ToolResult(id_, name, (Text("interrupted"),), 0) for id_, name in open_calls.items())
            open_calls = {call.id: call.name for call in message.calls} if isinstance(message, Assistant) else {}
        yield message
    yield from (ToolResult(id_, name, (Text("interrupted"),), 0) for id_, name in open_calls.items())


def _whole(messages: Iterable[Message]) -> list[Message]:
    """Without answers that came to nothing: a request leaves them out."""
    return [each for each in messages if not (isinstance(each, Assistant) and not each.content)]


def _shown_once(platform: Platform, row: OutboxRow) -> None:
    shown = [each for each in platform.shown if each.key == row.key]
    if row.draft.purpose == "notice" and row.state in ("sent", "unsure") and shown:
        return  # a word to the owner is rather told twice than not at all
    if len(shown) > 1:
        raise Broken(f"{row.key} was shown {len(shown)} times ({row.state})")
    if row.state == "dead" or (row.state == "unsure" and platform.plan.idempotent):
        raise Broken(f"{row.key} is {row.state}: {row.reason}")
    if row.state == "sent" and (len(shown) != 1 or shown[0].id != row.platform_id):
        raise Broken(f"{row.key} is said to be sent and is not there")
    for each in shown:
        if (each.chat, each.thread) != row.lane or each.text not in [form.text for form in row.draft.forms]:
            raise Broken(f"{row.key} went to {each.chat}/{each.thread}")


def name(row: InboxRow | OutboxRow) -> str:
    """How a row is told of."""
    return f"{_text(row)} ({row.id})" if isinstance(row, InboxRow) else row.key


def _text(row: InboxRow) -> str:
    assert isinstance(row.event, Inbound)
    return row.event.text


def _spoke(row: InboxRow) -> bool:
    return _text(row).startswith("q")


def _strange(row: InboxRow) -> bool:
    return isinstance(row.event, Inbound) and row.event.sender.id.startswith("x")


def _place(row: InboxRow) -> tuple[str, str]:
    assert row.event.address is not None
    return row.event.address.chat, row.event.address.thread


def _direct(row: InboxRow) -> bool:
    return row.event.address is not None and row.event.address.kind == "direct"
