"""A real mail server: dovecot for mailboxes, postfix before it, and people who write."""

from __future__ import annotations

import asyncio
import email.policy
import re
import shutil
import smtplib
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from email.message import EmailMessage
from email.parser import BytesParser
from email.utils import make_msgid
from pathlib import Path

from tests.e2e.resident import free_port

RECEIVER = "mx.test"
PASSWORD = "pw"


async def _program(*words: str) -> asyncio.subprocess.Process:
    found = shutil.which(words[0]) or words[0]
    null = asyncio.subprocess.DEVNULL
    return await asyncio.create_subprocess_exec(found, *words[1:], stdin=null, stdout=null, stderr=null)


@contextmanager
def house() -> Iterator[Path]:
    """A folder that the servers' own users may enter, as those of pytest are not."""
    folder = Path(tempfile.mkdtemp(prefix="mail"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def listening(port: int) -> None:
    async with asyncio.timeout(15):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.05)
            else:
                writer.transport.abort()
                return


class Dovecot:
    """`dovecot` with IMAP and LMTP on free ports; any user, password `pw`. `more` are lines of its configuration."""

    def __init__(self, folder: Path, *more: str) -> None:
        self.folder, self.imap, self.lmtp = folder, free_port(), free_port()
        folder.mkdir()
        folder.chmod(0o755)
        mail = folder / "mail"
        mail.mkdir()
        with suppress(LookupError, OSError):
            shutil.chown(mail, "mail", "mail")
        lines = [
            f"base_dir={folder}/run", f"log_path={folder}/log", "protocols=imap lmtp", "listen=127.0.0.1",
            "disable_plaintext_auth=no", f"mail_location=maildir:{mail}/%u", "first_valid_uid=1",
            "passdb {", " driver=static", f" args=password={PASSWORD}", "}",
            "userdb {", " driver=static", f" args=uid=mail gid=mail home={mail}/%u", "}",
            "service imap-login {", " inet_listener imap {", f"  port={self.imap}", " }",
            " inet_listener imaps {", "  port=0", " }", "}",
            "service lmtp {", " inet_listener lmtp {", f"  port={self.lmtp}", " }", "}",
            *(more or ("ssl=no",)),
        ]  # fmt: skip
        self.file = folder / "dovecot.conf"
        self.file.write_text("\n".join(lines) + "\n")

    async def start(self) -> None:
        self.process = await _program("dovecot", "-F", "-c", str(self.file))
        await listening(self.imap)
        await listening(self.lmtp)

    async def stop(self) -> None:
        if self.process.returncode is None:
            self.process.terminate()
            await self.process.wait()

    async def deliver(self, to: str, mail: bytes, sender: str = "x@example.org") -> None:
        await asyncio.to_thread(self._deliver, to, mail, sender)

    def _deliver(self, to: str, mail: bytes, sender: str) -> None:
        with smtplib.LMTP("127.0.0.1", self.lmtp) as lmtp:
            lmtp.sendmail(sender, [to], mail)

    async def write(self, to: str, mail: EmailMessage, *, proven: bool = True) -> str:
        """A mail arrives, with what the receiving server found on top; its id."""
        domain = str(mail["From"]).rpartition("@")[2].strip("> ")
        word = "pass" if proven else "fail"
        found = f"Authentication-Results: {RECEIVER}; dmarc={word} header.from={domain}\r\n"
        raw = mail.as_bytes(policy=email.policy.SMTP)
        await self.deliver(to, found.encode() + raw, str(mail["Return-Path"] or "x@example.org").strip("<>"))
        return str(mail["Message-ID"]).strip("<>")

    def mails(self, user: str) -> list[EmailMessage]:
        """What lies in a mailbox, oldest first. Blocks."""
        found = [path for part in ("new", "cur") for path in (self.folder / "mail" / user / part).glob("*")]
        parser: BytesParser[EmailMessage] = BytesParser(policy=email.policy.default)
        return [parser.parsebytes(path.read_bytes()) for path in sorted(found, key=_when)]

    async def got(self, user: str, count: int, timeout_s: float = 20.0) -> list[EmailMessage]:
        """Wait until so many mails lie in a mailbox."""
        mails: list[EmailMessage] = []
        try:
            async with asyncio.timeout(timeout_s):
                while len(mails := await asyncio.to_thread(self.mails, user)) < count:  # noqa: ASYNC110 - files
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise AssertionError([words(mail) for mail in mails]) from None
        return mails

    async def renumber(self, user: str) -> None:
        """The folder loses its numbers, as when a mailbox is moved to another server."""
        home = self.folder / "mail" / user

        def forget() -> None:
            for path in home.glob("dovecot*"):
                path.unlink()

        await asyncio.sleep(1.1)  # the numbering's name is the second it began in
        await asyncio.to_thread(forget)


class Postfix:
    """`postfix` on a free port: all mail goes to dovecot; mail to nobody@ is refused."""

    def __init__(self, folder: Path, dovecot: Dovecot) -> None:
        self.folder, self.port = folder, free_port()
        for name in ("conf", "spool", "data"):
            (folder / name).mkdir(parents=True)
        with suppress(LookupError, OSError):
            shutil.chown(folder / "data", "postfix")
        conf = folder / "conf"
        (conf / "access").write_text("")
        (conf / "main.cf").write_text(
            f"compatibility_level=3.6\nqueue_directory={folder}/spool\ndata_directory={folder}/data\n"
            "inet_interfaces=127.0.0.1\ninet_protocols=ipv4\nmyhostname=smtp.test\n"
            "mydestination=example.org, bot.example\n"
            "local_recipient_maps=\nlocal_transport=lmtp:inet:127.0.0.1:"
            f"{dovecot.lmtp}\nlmtp_destination_recipient_limit=1\nalias_maps=\nmynetworks=127.0.0.0/8\n"
            "smtpd_recipient_restrictions=check_recipient_access inline:{nobody@example.org=REJECT},"
            " permit_mynetworks, reject\n"
            f"maillog_file={folder}/log\nmaillog_file_prefixes=/\n"
        )
        master = Path("/usr/share/postfix/master.cf.dist").read_text().splitlines()
        kept = [line for line in master if line and line[0] not in "# " and not line.startswith("smtp      inet")]
        fields = [line.split() for line in kept]
        lines = [" ".join([*one[:4], "n", *one[5:]]) for one in fields]
        lines = [line for line in lines if not line.startswith("postlog ")]
        lines += [f"127.0.0.1:{self.port} inet n - n - - smtpd", "postlog unix-dgram n - n - 1 postlogd"]
        (conf / "master.cf").write_text("\n".join(lines) + "\n")

    async def _ask(self, word: str) -> None:
        process = await _program("postfix", "-c", str(self.folder / "conf"), word)
        await process.wait()

    async def start(self) -> None:
        await self._ask("start")
        await listening(self.port)

    async def stop(self) -> None:
        await self._ask("stop")


def _when(path: Path) -> tuple[int, int, str]:
    """When a mail was put there, as its name says: seconds, then microseconds without zeros before them."""
    found = re.match(r"(\d+)\.M(\d+)", path.name)
    return (int(found[1]), int(found[2]), path.name) if found else (0, 0, path.name)


def letter(sender: str, text: str, *, to: str = "bot@bot.example", subject: str = "", **heads: str) -> EmailMessage:
    """A mail as a person's program writes it. Headers are named with _ for -."""
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Message-ID"] = sender, to, make_msgid(domain="example.org")
    if subject:
        mail["Subject"] = subject
    for name, value in heads.items():
        mail[name.replace("_", "-")] = value
    mail.set_content(text)
    return mail


def words(mail: EmailMessage) -> str:
    body = mail.get_body(("plain",))
    return str(body.get_content()).strip() if body else ""


def said(mails: Sequence[EmailMessage]) -> list[str]:
    return [words(mail) for mail in mails]
