"""`/approve` and `/deny`: an owner answers in a chat what a run has asked."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from garra.core.approvals import Approval, Choice, said, short
from garra.core.errors import NotFound, UserError
from garra.core.patterns import later
from garra.core.showing import shown
from garra.core.value import frozen
from garra.domains.exec.approvals import Approvals, Verdict
from garra.sdk.channel import Address
from garra.sdk.ports import Clock
from garra.turns.parts import Ports

WAIT_S: Final = 2.0
STEP_S: Final = 0.1
"""How long an answer waits for a question that is just being asked, and how often it looks."""
LISTED: Final = 10
REASON: Final = 500

WORDS: Final[dict[str, Choice]] = {
    "allow-once": "allow-once",
    "once": "allow-once",
    "allow": "allow-once",
    "yes": "allow-once",
    "allow-always": "allow-always",
    "always": "allow-always",
    "deny": "deny",
    "no": "deny",
}


@frozen
class Asked:
    """What was written: an id or its beginning (empty: the only question of this chat), the answer, and why not."""

    name: str
    choice: Choice
    reason: str = ""


_NAME = later(r"(?:exec:|plugin:)?([0-9a-f][0-9a-f-]{2,35})", re.IGNORECASE)


def writable(name: str) -> bool:
    """Whether an id can be given in a chat, whole by a button and by its beginning in words."""
    return all(
        found is not None and found[1] == each for each in (name, short(name)) for found in [_NAME.fullmatch(each)]
    )


def parse(words: str, *, deny: bool) -> Asked:
    """`/approve ID allow-once` as an answer; behind a no stands why. Raises UserError with how it reads."""
    parts = words.replace("`", "").split()
    found = _NAME.fullmatch(parts[0]) if parts else None
    name = found[1].lower() if found else ""
    rest = parts[1:] if found else parts
    said = WORDS.get(rest[0].lower()) if rest else None
    choice: Choice = "deny" if deny else said or "allow-once"
    rest = rest[1:] if said else rest
    if rest and choice != "deny":
        raise UserError("It reads: /approve ID allow-once, /approve ID allow-always, or /deny ID.")
    return Asked(name, choice, " ".join(rest)[:REASON])


@frozen
class Answering:
    """Where an answer is given. `here` says whether a question was asked in this very place; `by` who answers, and
    `may` what.
    """

    approvals: Approvals
    clock: Clock
    by: str
    here: Callable[[Approval], bool]
    may: Callable[[Approval], bool] = lambda _: True


@frozen
class Speaker:
    """Who answers, where. `owner`: he may answer everything; an account's approver what is asked in it."""

    address: Address
    sender: str
    owner: bool


async def given(ports: Ports, words: str, who: Speaker, *, deny: bool = False) -> str:
    """An answer that was written in a chat. Raises UserError."""
    approvals, address = ports.approvals, who.address
    if approvals is None:
        raise UserError("Nothing waits for an approval.")
    asked = parse(words, deny=deny)

    def places(approval: Approval) -> list[tuple[str, str, str, str]]:
        source = approval.source
        shown = [(each.channel, each.account, each.chat, each.thread) for each in ports.cards(approval.id)]
        return [(source.channel, source.account, source.chat, source.thread), *shown]

    def here(approval: Approval) -> bool:
        return (address.channel, address.account, address.chat, address.thread) in places(approval)

    def may(approval: Approval) -> bool:
        return who.owner or any(each[:2] == (address.channel, address.account) for each in places(approval))

    by = f"{address.channel}:{address.account}:{who.sender}"
    return await answer(Answering(approvals, ports.clock, by, here, may), asked)


async def answer(place: Answering, asked: Asked) -> str:
    """Give the answer; the words for the chat. Raises UserError with such words."""
    found = await _found(place, asked.name)
    here = place.here(found)  # the end of it takes its cards away
    made = await place.approvals.decide(found.id, Verdict(asked.choice, place.by, asked.reason))
    ended = made.approval
    standing = ended.answer or ended.early
    if made.again and standing is not None:
        return f"It was handled already: {said(standing)}."
    question = ended.question
    what = f": {_first(question.subject)}" if here else "."  # what was asked in private stays there
    gone = "" if ended.waited else "\nThe turn that asked was interrupted; the answer is for when it asks again."
    match asked.choice:
        case "deny":
            return f"Denied{what}{gone}"
        case "allow-always":
            return f"Allowed from now on{f': {question.remembers}' if here else '.'}{gone}"
        case _:
            return f"Allowed once{what}{gone}"


async def _found(place: Answering, name: str) -> Approval:
    """The question that is meant; one that is just being registered is waited for."""
    approvals, clock = place.approvals, place.clock
    until = clock.monotonic() + WAIT_S
    while True:
        try:
            return await _named(place, name) if name else _only(approvals.pending(), place.here)
        except NotFound as error:
            if clock.monotonic() >= until:
                words = f"No question {name[:40]} waits: it is unknown, or has expired." if name else error.message
                raise NotFound(words) from None
        await clock.sleep(STEP_S)


async def _named(place: Answering, name: str) -> Approval:
    """What somebody may not answer is as unknown to him as what there is not."""
    found = await place.approvals.find(name)
    if not place.may(found):
        raise NotFound("")
    return found


def _only(pending: Sequence[Approval], asked_here: Callable[[Approval], bool]) -> Approval:
    """The question that was asked in this chat, where there is only one."""
    here = [each for each in pending if asked_here(each)]
    if len(here) == 1:
        return here[0]
    if not here:
        raise NotFound("Nothing asked in this chat waits for an answer.")
    rows = "\n".join(f"/approve {short(each.id)} allow-once: {_first(each.question.subject)}" for each in here[:LISTED])
    raise UserError(f"Which one?\n{rows}")


def _first(text: str) -> str:
    line = shown(text).strip().partition("\n")[0]
    return line if len(line) <= 80 else f"{line[:79]}…"
