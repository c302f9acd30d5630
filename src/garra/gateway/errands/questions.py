"""The errand of `ask_user`: the person of the turn's chat is asked, or the owner at his screen, and waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from garra.core import questions
from garra.core.errors import Forbidden, GarraError
from garra.core.questions import Record
from garra.domains.delivery.accounts import WEBCHAT
from garra.domains.delivery.draft import Draft
from garra.gateway.errands.sight import Run, parsed
from garra.gateway.host import Host
from garra.gateway.methods.messages import desk
from garra.gateway.methods.questions import register
from garra.gateway.params import Params
from garra.runs.errand import Errand
from garra.sdk.channel import Address, Button


class Asking(Params, frozen=True):
    questions: Sequence[Any]
    timeout_seconds: float | None = None


async def ask(host: Host, errand: Errand, raw: Mapping[str, Any]) -> dict[str, Any]:
    params = parsed(raw, Asking)
    if errand.origin in ("subagent", "job"):
        raise Forbidden("Nobody can be asked from here: decide yourself, and say in your report what you decided.")
    known, life = register(host), questions.life_s(params.timeout_seconds)
    record = Record(
        "", questions.items(params.questions), 0, 0, errand.agent_id, errand.session_key, errand.run_id,
        errand.requester, _place(errand.address),
    )  # fmt: skip
    asked = await known.ask(record, life)
    try:
        with known.awaited(asked.id):
            await _card(host, errand.address, asked)
            over = await known.wait(asked.id)
    except asyncio.CancelledError:
        run = host.runs.find(errand.run_id)
        if run is not None and run.cancel.is_set and run.cancel.reason != "shutdown":
            host.spawn(_cancelled(host, asked.id), f"question {asked.id}")
        raise
    if over.status != "answered":
        return {"status": "no_answer", "reason": over.status}
    return {"status": "answered", "answers": {"answers": {name: list(words) for name, words in over.answers.items()}}}


async def _cancelled(host: Host, id_: str) -> None:
    try:
        await register(host).end(id_, "cancelled")
    except GarraError:
        return


def _place(address: Address | None) -> tuple[str, str, str, str]:
    if address is None or address.channel == WEBCHAT:
        return "", "", "", ""
    return address.channel, address.account, address.chat, address.thread


async def _card(host: Host, address: Address | None, record: Record) -> None:
    """The question in the chat, with buttons where there is one thing to choose."""
    if address is None or address.channel == WEBCHAT:
        return
    room = desk(host)
    drafts: list[Draft] = list(room.drafting(f"question:{record.id}", address, questions.shown(record)))
    first = record.items[0]
    if len(record.items) == 1 and first.options and not first.multi:
        rows = tuple(
            (Button(option.label[:40], f"/answer {record.id} {at}"),) for at, option in enumerate(first.options, 1)
        )
        drafts[-1] = replace(drafts[-1], buttons=rows)
    await room.outbox.put(drafts)


ERRANDS: Mapping[str, Run] = {"question.ask": ask}
