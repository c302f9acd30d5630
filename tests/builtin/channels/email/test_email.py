"""The channel on a real mailbox: numbering, waiting, TLS, attachments, large mails, what the host is told."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from garra.builtin.channels.email.channel import Email
from garra.core.errors import NotFound
from garra.core.secret import Secret
from garra.io.clock import SystemClock
from garra.io.files.root import Root
from garra.io.http import GuardedHttp
from garra.io.tasks import Tasks
from garra.sdk.channel import Account, Address, File, Inbound, LinkLost, LinkRefused, Ports, SendFailed
from garra.testing.channels import Heard, MemoryCursor, outbound
from garra.testing.smtp import SmtpServer
from tests.contracts.channel.email_platform import BOT, EmailPlatform
from tests.e2e.maild import PASSWORD, RECEIVER, Dovecot, house, letter, said
from tests.io.test_http_tls import certificate

__all__ = ["certificate"]

pytestmark = pytest.mark.needs("dovecot")
ANN = "ann@example.org"


@pytest.fixture
async def post() -> AsyncIterator[EmailPlatform]:
    async with EmailPlatform() as platform:
        yield platform


@asynccontextmanager
async def link(channel: Email, heard: Heard) -> AsyncIterator[None]:
    task = asyncio.ensure_future(channel.run(heard.receive, heard))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_a_folder_numbered_anew_loses_and_doubles_nothing(post: EmailPlatform) -> None:
    old, heard, cursor = letter(ANN, "years ago"), Heard(), MemoryCursor()
    await post.dovecot.write(BOT, old)
    for path in (post.dovecot.folder / "mail" / BOT).glob("*/*.*"):
        os.utime(path, (1_500_000_000, 1_500_000_000))
    channel = post.channel(cursor)
    async with link(channel, heard):
        await post.say("ann", "first")
        await heard.until(lambda h: h.said == ["first"])
    assert cursor.value is not None
    before = cursor.value.split(":")
    await post.dovecot.renumber(BOT)
    await post.dovecot.write(BOT, letter(ANN, "while away"))
    again = Heard()
    async with link(post.channel(cursor), again):
        await again.until(lambda h: "while away" in h.said)
        await post.say("ann", "after")
        await again.until(lambda h: h.said[-1] == "after")
    assert cursor.value.split(":")[0] != before[0]
    assert "years ago" not in again.said
    ids = [event.id for event in again.events]
    assert len(set(ids)) == len(ids)
    assert any("numbered anew" in note for note in again.notes)


async def test_a_first_start_leaves_old_mail_alone_and_marks_nothing(post: EmailPlatform) -> None:
    for number in range(3):
        await post.dovecot.write(BOT, letter(ANN, f"old {number}"))
    heard, cursor = Heard(), MemoryCursor()
    async with link(post.channel(cursor), heard):
        await post.say("ann", "new")
        await heard.until(lambda h: h.said == ["new"])
    names = [path.name for path in (post.dovecot.folder / "mail" / BOT).glob("*/*:2,*")]
    assert not any("S" in name.partition(":2,")[2] for name in names)


async def test_read_mail_is_marked_where_the_owner_wants_it(post: EmailPlatform) -> None:
    post.settings["markSeen"] = True
    heard = Heard()
    async with link(post.channel(MemoryCursor()), heard):
        await post.say("ann", "one")
        await heard.until(lambda h: h.beats >= 3)
    names = [path.name for path in (post.dovecot.folder / "mail" / BOT / "cur").iterdir()]
    assert ["S" in name.partition(":2,")[2] for name in names] == [True]


async def test_idle_is_renewed_and_each_renewal_is_life(post: EmailPlatform) -> None:
    post.settings["idleMinutes"] = 0.005
    heard = Heard()
    async with link(post.channel(MemoryCursor()), heard):
        await heard.until(lambda h: h.beats > 6)
        await post.say("ann", "still there?")
        await heard.until(lambda h: bool(h.said))
    assert heard.said == ["still there?"]


async def test_a_server_without_idle_is_asked_again_and_again() -> None:
    with house() as folder:
        dovecot = Dovecot(folder / "d", "ssl=no", "imap_capability=IMAP4rev1 AUTH=PLAIN")
        await dovecot.start()
        async with GuardedHttp_() as http, Tasks() as tasks:
            own = settings(dovecot.imap) | {"pollSeconds": 0.2}
            heard = Heard()
            channel = Email(Account("default", own), Ports(http, SystemClock(), tasks, MemoryCursor(), dial=http))
            async with link(channel, heard):
                await heard.until(lambda h: h.beats > 1)
                await dovecot.write(BOT, letter(ANN, "polled"))
                await heard.until(lambda h: h.said == ["polled"])
            assert any("no IDLE" in note for note in heard.notes)
        await dovecot.stop()


@asynccontextmanager
async def GuardedHttp_() -> AsyncIterator[GuardedHttp]:  # noqa: N802 - the class, closed at the end
    http = GuardedHttp()
    yield http
    await http.close()


def settings(imap: int, smtp: int = 1, security: str = "none") -> dict[str, Any]:
    return {
        "address": BOT,
        "password": Secret(PASSWORD),
        "authservId": [RECEIVER],
        "imap": {"host": "127.0.0.1", "port": imap, "security": security},
        "smtp": {"host": "127.0.0.1", "port": smtp, "security": security},
    }


async def test_tls_agreed_midway_both_ways(certificate: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with house() as folder:
        pem = f"<{certificate}"
        dovecot = Dovecot(
            folder / "d", "ssl=required", f"ssl_cert={pem}", f"ssl_key={pem}", "disable_plaintext_auth=yes"
        )
        await dovecot.start()
        async with GuardedHttp_() as http, Tasks() as tasks, SmtpServer(PASSWORD, tls=context) as smtp:
            own = settings(dovecot.imap, smtp.port, "starttls")
            trusting = own | {"caFile": str(certificate)}
            heard = Heard()
            channel = Email(Account("default", trusting), Ports(http, SystemClock(), tasks, MemoryCursor(), dial=http))
            async with link(channel, heard):
                await heard.until(lambda h: h.beats > 0)
                await dovecot.write(BOT, letter(ANN, "under TLS"))
                await heard.until(lambda h: h.said == ["under TLS"])
                await channel.send(outbound(Address("email", "default", ANN, "direct"), "too"))
            assert len(smtp.taken) == 1
            assert not any(PASSWORD in line for line in smtp.words)
            doubting = Email(Account("default", own), Ports(http, SystemClock(), tasks, MemoryCursor(), dial=http))
            with pytest.raises(LinkLost, match=r"(?i)certificate"):
                await doubting.run(heard.receive, heard)
            with pytest.raises(SendFailed, match=r"(?i)certificate") as failed:
                await doubting.send(outbound(Address("email", "default", ANN, "direct"), "no"))
            assert failed.value.fault == "passing"
        await dovecot.stop()


async def test_a_server_without_starttls_gets_no_password(post: EmailPlatform) -> None:
    for part in ("imap", "smtp"):
        post.settings[part] = {**post.settings[part], "security": "starttls"}
    channel, heard = post.channel(MemoryCursor()), Heard()
    with pytest.raises(LinkRefused, match="STARTTLS"):
        await channel.run(heard.receive, heard)
    with pytest.raises(SendFailed, match="STARTTLS"):
        await channel.send(outbound(post.address("ann"), "hi"))
    assert not any(line.startswith("AUTH") for line in post.smtp.words)


async def test_attachments_come_in_when_they_are_wanted_and_go_out(post: EmailPlatform, tmp_path: Path) -> None:
    data = bytes(range(256)) * 3000
    (tmp_path / "out.bin").write_bytes(data)
    ports = Ports(post.http, SystemClock(), post.tasks, MemoryCursor(), media=Root(str(tmp_path)), dial=post.http)
    channel = post.bot = Email(Account("default", post.settings), ports)
    heard = Heard()
    mail = letter(ANN, "look")
    mail.add_attachment(data, maintype="application", subtype="x-thing", filename="thing.bin")
    async with link(channel, heard):
        await post._reading()
        await post.dovecot.write(BOT, mail)
        await heard.until(lambda h: h.said == ["look"])
        event = heard.events[0]
        assert isinstance(event, Inbound)
        media = event.media[0]
        assert (media.name, media.size) == ("thing.bin", len(data))
        got = b"".join([chunk async for chunk in channel.fetch(media, 1 << 20)])
        assert got == data
        with pytest.raises(SendFailed) as failed:
            _ = [chunk async for chunk in channel.fetch(media, 1000)]
        assert failed.value.fault == "too_large"
        file = File("file", "out.bin", "out.bin", "application/x-thing", len(data))
        await channel.send(outbound(post.address("ann"), "here", files=(file,)))
    await post.dovecot.renumber(BOT)
    answer = (await post.dovecot.got(ANN, 1))[0]
    assert [part.get_content() for part in answer.iter_attachments()] == [data]
    with pytest.raises(SendFailed) as failed:
        _ = [chunk async for chunk in channel.fetch(media, 1 << 20)]
    assert failed.value.fault == "gone"


async def test_of_a_mail_over_the_limit_the_beginning_is_read(post: EmailPlatform) -> None:
    post.settings["mediaMaxMb"] = 0.3
    heard = Heard()
    mail = letter(ANN, "the words come first")
    mail.add_attachment(b"x" * 600_000, maintype="application", subtype="zip", filename="large.zip")
    async with link(post.channel(MemoryCursor()), heard):
        await post._reading()
        await post.dovecot.write(BOT, mail)
        await heard.until(lambda h: len(h.said) == 1)
    event = heard.events[0]
    assert isinstance(event, Inbound)
    assert event.text.startswith("the words come first")
    assert "only the beginning is read" in event.text
    assert event.media == ()


async def test_an_answer_after_a_restart_finds_its_subject(post: EmailPlatform) -> None:
    mail = letter(ANN, "question", subject="What I wanted")
    heard, cursor = Heard(), MemoryCursor()
    async with link(post.channel(cursor), heard):
        await post._reading()
        await post.dovecot.write(BOT, mail)
        await heard.until(lambda h: len(h.said) == 1)
    event = heard.events[0]
    assert isinstance(event, Inbound)
    await post.channel(cursor).send(outbound(event.address, "answer", reply_to=event.id))
    await post.channel(cursor).send(outbound(event.address, "answer"))
    answers = await post.dovecot.got(ANN, 2)
    assert said(answers) == ["answer"] * 2
    assert [str(one["Subject"]) for one in answers] == ["Re: What I wanted"] * 2
    assert answers[0]["Message-ID"] == answers[1]["Message-ID"]  # the same key: known as a repeat
    assert str(answers[0]["In-Reply-To"]) == f"<{event.id}>"


async def test_a_mail_that_is_not_proven_has_no_sender_and_the_owner_is_told_why(post: EmailPlatform) -> None:
    heard = Heard()
    async with link(post.channel(MemoryCursor()), heard):
        await post._reading()
        await post.dovecot.write(BOT, letter(ANN, "trust me"), proven=False)
        await heard.until(lambda h: len(h.said) == 1)
    event = heard.events[0]
    assert isinstance(event, Inbound)
    assert event.sender.id == ""
    assert any("not proven: DMARC did not pass" in note for note in heard.notes)


async def test_what_is_missing_is_said(post: EmailPlatform) -> None:
    heard = Heard()
    for own, words in (
        ({"address": "bot"}, "address"),
        ({"password": Secret("")}, "password"),
        ({"password": Secret("x", missing="EMAIL_PASSWORD is not set")}, "is not set"),
        ({"imap": {**post.settings["imap"], "folder": "Nowhere"}}, "Nowhere"),
    ):
        bot = Email(
            Account("default", post.settings | own),
            Ports(post.http, SystemClock(), post.tasks, MemoryCursor(), dial=post.http),
        )
        with pytest.raises((LinkRefused, NotFound), match=words):
            await bot.run(heard.receive, heard)
    unplugged = Email(Account("default", post.settings), Ports(post.http, SystemClock(), post.tasks, MemoryCursor()))
    with pytest.raises(LinkRefused, match="HTTP"):
        await unplugged.run(heard.receive, heard)
    assert await unplugged.open_direct(" Ann@Example.org ") == Address("email", "default", ANN, "direct")
    with pytest.raises(SendFailed):
        await unplugged.open_direct("ann")
