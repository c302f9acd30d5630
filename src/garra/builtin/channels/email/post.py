"""Sending one mail by SMTP, and what each answer means for it."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from garra.builtin.channels.email.settings import Settings
from garra.core.errors import Unavailable
from garra.sdk.channel import Fault, SendFailed
from garra.sdk.ports import Dial, Spawn

WAIT_S = 110.0
_STATUS = re.compile(r"\b([245]\.\d{1,3}\.\d{1,3})\b")


async def post(own: Settings, dial: Dial, spawn: Spawn, *, to: str, data: bytes) -> None:
    """Hand `data` to the server. Raises SendFailed: what fails before the mail itself was sent is surely not delivered;
    a connection that breaks after it is `unsure`.
    """
    library = await asyncio.to_thread(importlib.import_module, "aiosmtplib")
    async with _connected(own, dial, spawn, library) as smtp:
        with_words = _Judged(own, library)
        async with with_words.stage("passing"):
            await smtp.mail(own.address, options=_size(smtp, data))
        async with with_words.stage("passing", recipient=True):
            await smtp.rcpt(to)
        async with with_words.stage("unsure"):
            await smtp.data(data)


@asynccontextmanager
async def _connected(own: Settings, dial: Dial, spawn: Spawn, library: Any) -> AsyncIterator[Any]:
    server = own.smtp
    try:
        sock = await dial.plug(server.host, server.port, spawn, tls=server.security == "tls", via=own.via)
        trust = await dial.trust(own.via) if server.security == "starttls" else None
    except Unavailable as fault:
        refused = (fault.details or {}).get("kind") == "refused"
        raise SendFailed("refused" if refused else "passing", fault.message) from None
    smtp = library.SMTP(hostname=server.host, local_hostname=_ascii(own.domain), timeout=WAIT_S, start_tls=False)
    judged = _Judged(own, library)
    try:
        async with judged.stage("passing"):
            await smtp.connect(sock=sock)
            await smtp.ehlo()
            if trust is not None:
                await _secured(smtp, server.host, trust)
        if server.user:
            async with judged.stage("passing", login=True):
                await smtp.login(server.user, server.password.reveal())
        yield smtp
        with contextlib.suppress(library.SMTPException, OSError):
            await smtp.quit()
    finally:
        smtp.close()
        sock.close()


async def _secured(smtp: Any, host: str, trust: Any) -> None:
    if not smtp.supports_extension("starttls"):
        raise SendFailed("refused", f"{host} has no STARTTLS: set smtp.security to tls, or to none if you must")
    await smtp.starttls(server_hostname=host, tls_context=trust)
    await smtp.ehlo()


def _size(smtp: Any, data: bytes) -> list[str]:
    return [f"size={len(data)}"] if smtp.supports_extension("size") else []


def _ascii(domain: str) -> str:
    try:
        return domain.encode("idna").decode("ascii")
    except UnicodeError:
        return "localhost"


class _Judged:
    """Turns the library's faults into ours."""

    def __init__(self, own: Settings, library: Any) -> None:
        self._own, self._library = own, library

    @asynccontextmanager
    async def stage(self, broken: Fault, *, login: bool = False, recipient: bool = False) -> AsyncIterator[None]:
        """`broken` is what a connection that ends here means."""
        library, host = self._library, self._own.smtp.host
        try:
            yield
        except (library.SMTPResponseException, library.SMTPRecipientsRefused) as error:
            code, said = _answer(error)
            line = f"{host} says {code} {self._clean(said)}"
            raise SendFailed(fault(code, said, login=login, recipient=recipient), line) from None
        except library.SMTPNotSupported as error:
            what: Fault = "auth" if login else "refused"
            raise SendFailed(what, f"{host} cannot do this: {self._clean(str(error))}") from None
        except (library.SMTPException, OSError, EOFError) as error:
            after = " before it had confirmed the mail" if broken == "unsure" else ""
            raise SendFailed(broken, f"the connection to {host} broke{after}: {self._clean(str(error))}") from None

    def _clean(self, said: str) -> str:
        words = " ".join(said.split())[:200]
        for secret in (self._own.smtp.password, self._own.imap.password):
            if secret:
                words = words.replace(secret.reveal(), "***")
        return words


def _answer(error: Any) -> tuple[int, str]:
    first = error.recipients[0] if getattr(error, "recipients", None) else error
    return int(first.code), str(first.message)


def fault(code: int, said: str, *, login: bool = False, recipient: bool = False) -> Fault:
    """What an SMTP answer means for the mail (RFC 5321, 4.2 and 3463)."""
    found = _STATUS.search(said)
    detail = found[1][2:] if found else ""
    if 400 <= code < 500:
        return "passing"
    if login or code in {530, 535, 538}:
        return "auth"
    if code in {552, 523} or detail in {"3.4", "2.3"}:
        return "too_large"
    gone = detail in {"1.1", "1.2", "1.3", "1.6", "1.10", "2.1"} or (not detail and code in {550, 551, 553})
    return "gone" if recipient and gone else "refused"
