"""Questions an agent asks the person of its chat: what is asked, what was answered, and how an answer is read.

A record is asked once, and ends once: answered, cancelled, or expired. Only words that the agent waits for are read
here; an answer is no permission for anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Final, Literal

from garra.core.errors import UserError
from garra.core.patterns import later
from garra.core.value import frozen

Status = Literal["pending", "answered", "cancelled", "expired"]

LEAST_S: Final = 30
MOST_S: Final = 3_600
USUAL_S: Final = 900
"""How long an answer is waited for."""
HEADER: Final = 12
LONGEST: Final = 4_000
"""Characters of one answer."""

_ID = later(r"[a-z][a-z0-9_]*\Z")


@frozen
class Option:
    """One thing to choose."""

    label: str
    description: str = ""


@frozen
class Item:
    """One question. `multi`: several options may be chosen. Words of one's own are always an answer."""

    id: str
    header: str
    question: str
    options: tuple[Option, ...] = ()
    multi: bool = False


@frozen
class Record:
    """What was asked, of whom, and what became of it. Times are milliseconds since 1970.

    `requester` is the immutable id of whoever may answer, as `channel:account:id`; empty: the owner at his screen.
    `place` is the chat it was asked in, as `(channel, account, chat, thread)`. `by` says who answered.
    """

    id: str
    items: tuple[Item, ...]
    created_at: int
    expires_at: int
    agent_id: str = ""
    session_key: str = ""
    run_id: str = ""
    requester: str = ""
    place: tuple[str, str, str, str] = ("", "", "", "")
    status: Status = "pending"
    answers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    by: str = ""

    @property
    def pending(self) -> bool:
        return self.status == "pending"


def life_s(asked: float | None) -> int:
    """How many seconds a question lives."""
    return USUAL_S if asked is None else round(min(MOST_S, max(LEAST_S, asked)))


def items(raw: Any) -> tuple[Item, ...]:
    """One to three questions from JSON. Raises UserError with what is wrong."""
    if not isinstance(raw, Sequence) or isinstance(raw, str) or not 1 <= len(raw) <= 3:
        raise UserError("questions: give one to three")
    found = tuple(_item(each, at) for at, each in enumerate(raw))
    if len({item.id for item in found}) != len(found):
        raise UserError("questions: two have the same id")
    return found


def _item(raw: Any, at: int) -> Item:
    body = raw if isinstance(raw, Mapping) else {}
    name = str(body.get("questionId") or body.get("id") or f"question_{at + 1}")
    text = str(body.get("question") or "").strip()
    if not _ID.match(name):
        raise UserError(f"questions[{at}].id: {name[:40]!r} is not a small word such as deploy_target")
    if not text:
        raise UserError(f"questions[{at}].question: say what is asked")
    options = tuple(_option(each) for each in body.get("options") or ())
    if len(options) > 4 or any(not option.label for option in options):
        raise UserError(f"questions[{at}].options: at most four, each with a label")
    return Item(name, str(body.get("header") or "")[:HEADER], text, options, body.get("multiSelect") is True)


def _option(raw: Any) -> Option:
    if isinstance(raw, Mapping):
        return Option(str(raw.get("label") or "").strip(), str(raw.get("description") or "").strip())
    return Option(str(raw).strip())


def answers(record: Record, raw: Any) -> dict[str, tuple[str, ...]]:
    """Answers as a client gives them, `{id: [words]}`. Raises UserError for one that is missing or is no answer."""
    given = raw.get("answers", raw) if isinstance(raw, Mapping) else {}
    found: dict[str, tuple[str, ...]] = {}
    for item in record.items:
        words = given.get(item.id) if isinstance(given, Mapping) else None
        rows = [words] if isinstance(words, str) else list(words or ())
        texts = tuple(str(each).strip()[:LONGEST] for each in rows if str(each).strip())
        if not texts:
            raise UserError(f"answers.{item.id}: an answer is missing")
        if len(texts) > 1 and not item.multi:
            raise UserError(f"answers.{item.id}: only one can be chosen")
        found[item.id] = texts
    return found


def heard(record: Record, text: str) -> dict[str, tuple[str, ...]]:
    """A person's words as answers: a number, a label, several with commas where that is asked, or words of one's own.
    Several questions are answered a line each, in their order; a line less, and the last stands for the rest.
    """
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()] or [""]
    if len(record.items) == 1:
        return {record.items[0].id: chosen(record.items[0], text.strip())}
    return {item.id: chosen(item, lines[min(at, len(lines) - 1)]) for at, item in enumerate(record.items)}


def chosen(item: Item, text: str) -> tuple[str, ...]:
    """What of one question was chosen."""
    parts = [part.strip() for part in text.split(",") if part.strip()] if item.multi else [text]
    found = [_one(item, part) for part in parts]
    if item.multi and any(word is None for word in found):
        return (text[:LONGEST],)
    return tuple(dict.fromkeys(word or part[:LONGEST] for word, part in zip(found, parts, strict=True))) or (text,)


def _one(item: Item, text: str) -> str | None:
    word = text.strip().rstrip(".)").strip()
    if word.isdecimal() and 1 <= int(word) <= len(item.options):
        return item.options[int(word) - 1].label
    return next((option.label for option in item.options if option.label.casefold() == text.strip().casefold()), None)


def shown(record: Record) -> str:
    """The questions as a message (Markdown)."""
    parts = []
    for item in record.items:
        rows = [f"**{item.question}**"]
        for at, option in enumerate(item.options, 1):
            rows.append(f"{at}. {option.label}" + (f": {option.description}" if option.description else ""))
        parts.append("\n".join(rows))
    several = any(item.multi for item in record.items)
    how = "Answer with a number, several with commas, or in your own words." if several else ""
    if len(record.items) > 1:
        how = "Answer with a line for each question: a number, or your own words."
    elif not how:
        how = "Answer with a number or in your own words." if record.items[0].options else "Answer in your own words."
    return "\n\n".join((*parts, how))


def said(record: Record) -> str:
    """What was answered, in words for the agent, where nobody waits for it any more."""
    rows = [f"{item.question} {', '.join(record.answers.get(item.id, ()))}" for item in record.items]
    return "(answer to your question) " + "\n".join(rows)


def ended(record: Record, status: Status, found: Mapping[str, tuple[str, ...]] | None = None, by: str = "") -> Record:
    """The record after its end; one that has ended stays as it is."""
    return replace(record, status=status, answers=found or {}, by=by) if record.pending else record


def body(record: Record) -> dict[str, Any]:
    """A record on the wire."""
    rows = [
        {
            "questionId": item.id,
            "header": item.header,
            "question": item.question,
            "options": [
                {"label": option.label, **({"description": option.description} if option.description else {})}
                for option in item.options
            ],
            "multiSelect": item.multi,
            "isOther": True,
        }
        for item in record.items
    ]
    about = {"agentId": record.agent_id, "sessionKey": record.session_key, "runId": record.run_id}
    end: dict[str, Any] = {"answers": {"answers": _lists(record)}} if record.status == "answered" else {}
    return {
        "id": record.id,
        "questions": rows,
        **{name: value for name, value in about.items() if value},
        "createdAtMs": record.created_at,
        "expiresAtMs": record.expires_at,
        "status": record.status,
        **end,
        **({"resolvedBy": record.by} if record.by else {}),
    }


def _lists(record: Record) -> dict[str, list[str]]:
    return {name: list(words) for name, words in record.answers.items()}


def stored(record: Record) -> dict[str, Any]:
    """A record as it is kept."""
    return {**body(record), "requester": record.requester, "place": list(record.place)}


def loaded(raw: Mapping[str, Any]) -> Record:
    """The inverse of `stored`. Raises UserError for what is none."""
    place = [str(each) for each in raw.get("place") or ()]
    four = (*place, "", "", "", "")[:4]
    given = (raw.get("answers") or {}).get("answers") or {}
    status = raw.get("status")
    return Record(
        str(raw.get("id", "")),
        items(raw.get("questions")),
        int(raw.get("createdAtMs", 0)),
        int(raw.get("expiresAtMs", 0)),
        str(raw.get("agentId", "")),
        str(raw.get("sessionKey", "")),
        str(raw.get("runId", "")),
        str(raw.get("requester", "")),
        (four[0], four[1], four[2], four[3]),
        status if status in ("pending", "answered", "cancelled", "expired") else "expired",
        {str(name): tuple(map(str, words)) for name, words in given.items()},
        str(raw.get("resolvedBy", "")),
    )
