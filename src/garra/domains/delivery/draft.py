"""One message on its way out, as it is written to the outbox."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec

from garra.core.blots import Blots
from garra.core.chunking import chunks
from garra.core.spool import OutboxState, Sending
from garra.core.value import frozen
from garra.sdk.channel import Address, Button, File, Outbound


@frozen
class Form:
    """One rendering of a message: `text` as the platform takes it in `format`."""

    format: str
    text: str


@frozen
class Draft:
    """What to send, and where; the address is the inbound message's own.

    `key` is the same whenever the same message is written again; the second writing changes nothing. `forms` is the
    ladder of renderings, best first, the plain one last. `position` orders the parts of one answer. `purpose`:
    `reply`, `send` (somebody asked for it), `notice` (a word to the owner) or `preview` (what shows while a run works);
    what becomes of the last two is told to nobody. `edits` is the platform's id of a message that is there already and
    becomes this one; where it is gone, this one is sent anew.
    """

    key: str
    address: Address
    forms: tuple[Form, ...]
    reply_to: str = ""
    buttons: tuple[tuple[Button, ...], ...] = ()
    files: tuple[File, ...] = ()
    silent: bool = False
    position: int = 0
    purpose: str = "reply"
    run_id: str = ""
    edits: str = ""

    @property
    def text(self) -> str:
        """Its plainest form."""
        return self.forms[-1].text if self.forms else ""


def plain_draft(key: str, address: Address, text: str, *, purpose: str = "reply", reply_to: str = "") -> Draft:
    """A draft of plain text."""
    return Draft(key, address, (Form("plain", text),), reply_to=reply_to, purpose=purpose)


def discreet(draft: Draft, blots: Blots) -> Draft:
    """The same without the secrets that are known in any form."""
    if not blots:
        return draft
    forms = tuple(Form(form.format, blots.text(form.text)) for form in draft.forms)
    return replace(draft, forms=forms) if forms != draft.forms else draft


@frozen
class OutboxRow:
    """One row. `place` orders the messages of a chat; `platform_id` is the proof that it arrived."""

    place: int
    key: str
    draft: Draft
    state: OutboxState
    created_at: int = 0
    updated_at: int = 0
    due_at: int = 0
    tries: int = 0
    stage: int = 0
    inbox_id: str = ""
    platform_id: str = ""
    reason: str = ""

    @property
    def lane(self) -> tuple[str, str]:
        """Messages of one lane go out one after the other."""
        return self.draft.address.chat, self.draft.address.thread

    def outbound(self) -> Outbound:
        draft = self.draft
        form = draft.forms[self.stage] if draft.forms else Form("plain", "")
        return Outbound(
            self.key, draft.address, form.text, form.format, draft.reply_to, draft.buttons, draft.files, draft.silent
        )

    def sending(self, *, idempotent: bool) -> Sending:
        draft = self.draft
        pieces = len(divided(draft.text)) > 1
        return Sending(self.tries, self.stage, len(draft.forms), len(draft.files), idempotent, pieces)


def divided(text: str) -> tuple[str, ...]:
    """`text` in two parts or a little more; in one where it is too short for that."""
    return chunks(text, (len(text) + 1) // 2) or (text,)


COLUMNS = "place, key, body, state, created, updated, due, tries, stage, inbox_id, platform_id, reason"
_DRAFT = msgspec.json.Decoder(Draft)


def read(row: Sequence[Any]) -> OutboxRow:
    """A row of `COLUMNS`."""
    place, key, body, *rest = row
    return OutboxRow(place, key, _DRAFT.decode(body), *rest)
