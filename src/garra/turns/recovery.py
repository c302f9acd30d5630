"""What a restart finds: which turns were under way, and how far each had come, as its transcript tells it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

from garra.core import reply
from garra.core.ids import SessionKey
from garra.core.messages import Assistant, Message, ToolResult, User
from garra.core.value import frozen, record
from garra.turns.answers import words


@frozen
class Found:
    """One turn. `text` is what it asked, where that is stored. `over`: it had come to its end, and said `answer`.

    `asked` are the platform's ids of the messages that its stored words are made of. `led_by` names the run that had
    taken its words, where it was not its own.
    """

    run_id: str
    key: SessionKey
    text: str = ""
    over: bool = False
    answer: tuple[str, ...] = ()
    led_by: str = ""
    asked: frozenset[str] = frozenset()

    def holds(self, event_id: str) -> bool:
        """Whether this message is one of those; where nothing is stored, all that were meant for it are."""
        return not self.asked or event_id in self.asked


@record
class _Reading:
    """How the runs stand, read from the first message to the last."""

    ids: frozenset[str]
    open: list[str] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    answers: dict[str, list[str]] = field(default_factory=dict)
    leaders: dict[str, str] = field(default_factory=dict)
    asked: dict[str, frozenset[str]] = field(default_factory=dict)
    last: tuple[str, str] = ("", "")

    def hear(self, message: Message) -> None:
        match message:
            case User():
                run_id = str(message.meta.get("idempotencyKey", "")).removesuffix(":user")
                if run_id in self.ids:
                    self.texts[run_id] = message.text
                    self.asked[run_id] = _asked(message)
                    if run_id not in self.open:
                        self.open.append(run_id)
            case Assistant() if self.open:
                own = message.meta.get("__openclaw")
                named = str(own.get("runId", "")) if isinstance(own, Mapping) else ""
                self.last = named or self.open[0], words(message)
                if ends(message):
                    self._end()
            case ToolResult(name="sessions_yield", is_error=False) if self.open:
                self._end()
            case _:
                pass

    def _end(self) -> None:
        """The turn is over: it answered, or it waits for its sub-agents with its last words."""
        leader, text = self.last
        self.answers.setdefault(leader, []).append(text)
        for run_id in self.open:
            self.leaders[run_id] = leader
        self.open.clear()


def standing(messages: Iterable[Message], key: SessionKey, runs: Sequence[str]) -> list[Found]:
    """How each of `runs` stands in its session: first those that had begun, in the order they did, then the others."""
    reading = _Reading(frozenset(runs))
    for message in messages:
        reading.hear(message)
    for run_id in reading.open[1:]:
        reading.leaders[run_id] = reading.open[0]
    begun = list(reading.texts)
    return [_found(reading, key, run_id) for run_id in (*begun, *(each for each in runs if each not in begun))]


def _found(reading: _Reading, key: SessionKey, run_id: str) -> Found:
    leader = reading.leaders.get(run_id, run_id)
    over = run_id not in reading.open and run_id in reading.answers
    answer = tuple(text for text in reading.answers.get(run_id, ()) if text) if over else ()
    asked = reading.asked.get(run_id, frozenset())
    return Found(run_id, key, reading.texts.get(run_id, ""), over, answer, "" if leader == run_id else leader, asked)


def _asked(message: User) -> frozenset[str]:
    """The messages that made a prompt, as its provenance names them."""
    told = message.meta.get("provenance")
    rows = told.get("messages") if isinstance(told, Mapping) else None
    return frozenset(str(row["id"]) for row in rows or () if isinstance(row, Mapping) and "id" in row)


def ends(message: Assistant) -> bool:
    """Whether it is an answer: words or a declared silence, whole, and no tool to wait for."""
    whole = message.stop in ("stop", "length") and not message.calls
    return whole and not isinstance(reply.answer(message.text, "group"), reply.Nothing)
