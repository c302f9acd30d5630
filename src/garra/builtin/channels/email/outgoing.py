"""Messages of ours as mails. Pure: files are handed in, times too."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from email import policy
from email.headerregistry import Address as Mailbox
from email.message import EmailMessage
from email.utils import format_datetime

from garra.builtin.channels.email.codec import valid
from garra.core.value import frozen
from garra.sdk.channel import File, Outbound, SendFailed

_CONTROLS = re.compile(r"[\x00-\x1f\x7f\u2028\u2029]+")
_ID = re.compile(r"^[\x21-\x3b\x3d\x3f-\x7e]{1,900}$")
_AGAIN = re.compile(r"^\s*(?:re|aw|sv|antw|回复|答复)\s*(?:\[\d+\])?\s*[:：]\s*", re.IGNORECASE)
_ASCII = policy.SMTP.clone(cte_type="7bit")  # not every server on the way takes eight bits
SUBJECT = 200
FIRST_LINE = 60


@frozen
class From:
    """Who we are, and when it is."""

    address: str
    name: str
    now_ms: int


@frozen
class Thread:
    """What is known of the mails before: the subject, and the ids from the first to the one answered."""

    subject: str = ""
    references: tuple[str, ...] = ()


def message_id(key: str, address: str) -> str:
    """The id of the mail that sends `key`, without brackets: the same at each try, so that a repeat is known as one."""
    digest = hashlib.sha256(f"{address}\n{key}".encode()).hexdigest()[:40]
    return f"garra.{digest}@{address.rpartition('@')[2] or 'localhost'}"


def compose(message: Outbound, own: From, thread: Thread, files: Sequence[tuple[File, bytes]] = ()) -> EmailMessage:
    """The mail. Raises SendFailed for an address that is none, and for nothing to send."""
    to = message.address.chat
    if not valid(to) or not to.isascii():
        raise SendFailed("refused", f"{to[:80]!r} is no address that mail can be sent to")
    text = "\n".join([message.text, *_buttons(message)]).strip("\n")
    if not text.strip() and not files:
        raise SendFailed("refused", "there is nothing to send")
    mail = EmailMessage(policy=_ASCII)
    mail["From"] = Mailbox(_line(own.name), addr_spec=own.address)
    mail["To"] = Mailbox(addr_spec=to)
    answers = _answered(message, thread)
    mail["Subject"] = subject(thread.subject, text, answer=bool(answers))
    mail["Date"] = format_datetime(datetime.fromtimestamp(own.now_ms // 1000, UTC))
    mail["Message-ID"] = f"<{message_id(message.key, own.address)}>"
    if answers:
        mail["In-Reply-To"] = f"<{answers[-1]}>"
        mail["References"] = " ".join(f"<{one}>" for one in answers)
    mail["Auto-Submitted"] = "auto-replied" if answers else "auto-generated"
    mail["X-Auto-Response-Suppress"] = "All"
    mail.set_content(_CONTROLS_BUT_LINES.sub("", text) + "\n", charset="utf-8")
    for file, data in files:
        kind, _, sub = (file.mime if re.fullmatch(r"[\w.+-]+/[\w.+-]+", file.mime) else "").partition("/")
        if kind in {"text", "message", "multipart", ""}:
            kind, sub = "application", "octet-stream"
        mail.add_attachment(data, maintype=kind, subtype=sub, filename=_line(file.name) or "file")
    return mail


_CONTROLS_BUT_LINES = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def subject(before: str, text: str, *, answer: bool) -> str:
    """`Re: …` of an answer, said once; else the first words."""
    if answer:
        bare = _line(before)
        while (shorter := _AGAIN.sub("", bare)) != bare:
            bare = shorter
        return f"Re: {bare[:SUBJECT]}".strip() if bare else "Re: your message"
    first = _line(text.strip().split("\n")[0])
    return first if len(first) <= FIRST_LINE else first[: FIRST_LINE - 1].rstrip() + "…"


def _answered(message: Outbound, thread: Thread) -> list[str]:
    """The ids from the thread's first mail to the one answered."""
    known = [message.address.thread, *thread.references[-20:], message.reply_to]
    ids = [one for one in known if _ID.fullmatch(one) and "@" in one]
    return _ordered(ids)


def _ordered(ids: Sequence[str]) -> list[str]:
    """Each once; the last stays last."""
    if not ids:
        return []
    last = ids[-1]
    return [*(one for one in dict.fromkeys(ids) if one != last), last]


def _buttons(message: Outbound) -> list[str]:
    return [" ".join(f"[{button.label}]" for button in row) for row in message.buttons]


def _line(text: str) -> str:
    return _CONTROLS.sub(" ", text).strip()
