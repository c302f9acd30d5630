"""A mailbox over IMAP. All of it blocks: call it in a thread, one call at a time."""

from __future__ import annotations

import contextlib
import imaplib
import importlib
import select
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from garra.builtin.channels.email.settings import Server
from garra.core.value import frozen
from garra.sdk.channel import LinkLost, LinkRefused

WAIT_S = 60.0
LINE_BYTES = 1 << 20
HEAD_BYTES = 256 << 10
"""So much is read of a mail that is too large."""
_LATER = ("[unavailable]", "[inuse]", "[limit]", "[serverbug]", "temporar", "try again", "too many")
_DAY = timedelta(days=1)
Trust = Callable[[], ssl.SSLContext]


@frozen
class Facts:
    """The folder as it was when entered. `next` is the number its next mail will have."""

    validity: int
    next: int
    count: int
    idles: bool


@frozen
class Raw:
    """A mail as it lies there; `whole` is false for one over the limit, of which only the beginning was read."""

    uid: int
    data: bytes
    at_ms: int
    size: int
    whole: bool = True


class _Wired(imaplib.IMAP4):
    """The standard library's protocol over a connection somebody else made, with a buffer that can be asked
    whether something waits in it: news that came with an answer would else lie there unseen.
    """

    def __init__(self, host: str, sock: socket.socket) -> None:
        self._given = self._source = sock
        self._held = bytearray()
        super().__init__(host, timeout=WAIT_S)

    def readline(self) -> bytes:
        while (at := self._held.find(b"\n")) < 0 and len(self._held) < LINE_BYTES and self._arrived():
            pass
        return self._taken(at + 1 or LINE_BYTES)

    def read(self, size: int) -> bytes:
        while len(self._held) < size and self._arrived():
            pass
        return self._taken(size)

    def _arrived(self) -> bool:
        """Wait for more. What came before TLS was agreed does not count after it."""
        if self.sock is not self._source:
            self._held.clear()
            self._source = self.sock
        data = self.sock.recv(1 << 16)
        self._held += data
        return bool(data)

    def _taken(self, size: int) -> bytes:
        data = bytes(self._held[:size])
        del self._held[:size]
        return data

    def waiting(self) -> bool:
        """Whether something has come that nobody has read."""
        under, asked = getattr(self.sock, "pending", None), select.poll()
        asked.register(self.sock, select.POLLIN)
        return bool(self._held or (under and under()) or asked.poll(0))

    def news(self) -> list[bytes]:
        """The lines that wait. Raises abort when the connection is over."""
        lines = []
        while self.waiting():
            lines.append(bytes(self._get_line()))
        return lines

    def _create_socket(self, timeout: float | None) -> socket.socket:
        self._given.settimeout(timeout)
        return self._given

    def begin(self) -> bytes:
        """IDLE. News may come before the server's word that it idles; imapclient takes them for a fault."""
        tag = bytes(self._command("IDLE"))
        while self._get_response() is not None:
            if self.tagged_commands[tag]:
                raise self.error(f"IDLE is refused: {self.tagged_commands[tag]}")
        return tag

    def end(self, tag: bytes) -> None:
        self.send(b"DONE\r\n")
        self._command_complete("IDLE", tag)


class Mailbox:
    """One connection, in one folder."""

    def __init__(self, server: Server, sock: socket.socket) -> None:
        self._server, self._sock = server, sock
        self._turn = threading.Lock()
        self._wire: _Wired | None = None
        self._client: Any = None
        self._tag = b""
        self._over = False
        self.more = False

    def enter(self, folder: str, trust: ssl.SSLContext | None, *, readonly: bool) -> Facts:
        """Greet, agree on TLS where it comes midway, log in, open the folder. Raises LinkLost and LinkRefused."""
        with self._call():
            wire = self._wire = _Wired(self._server.host, self._sock)
            library = importlib.import_module("imapclient")
            kind = type("Client", (library.IMAPClient,), {"_create_IMAP4": lambda _: wire})
            self._client = client = kind(self._server.host, ssl=False, timeout=WAIT_S)
            wire.debug = 0  # the library would have every line written for its log, the password's among them
            if trust is not None:
                self._secure(trust)
            self._log_in()
            try:
                told = client.select_folder(folder, readonly=readonly)
            except client.Error as error:
                if isinstance(error, client.AbortError):
                    raise
                raise LinkRefused(f"the folder {folder} cannot be opened: {str(error)[:200]}") from None
            count, top = int(told.get(b"EXISTS", 0)), int(told.get(b"UIDNEXT", 0))
            if not top:
                top = max(client.search("ALL"), default=0) + 1
            return Facts(int(told.get(b"UIDVALIDITY", 0)), top, count, client.has_capability("IDLE"))

    def _secure(self, trust: ssl.SSLContext) -> None:
        if not self._client.has_capability("STARTTLS"):
            raise LinkRefused(f"{self._server.host} has no STARTTLS: set imap.security to tls, or to none if you must")
        self._client.starttls(trust)

    def _log_in(self) -> None:
        client, user, word = self._client, self._server.user, self._server.password.reveal()
        try:
            if client.has_capability("AUTH=PLAIN"):
                client.plain_login(user, word)
            else:
                client.login(user, word)
        except client.AbortError:
            raise
        except client.Error as error:
            said = " ".join(str(error).split())[:200].replace(word or "\0", "***")
            if any(mark in said.lower() for mark in _LATER):
                raise LinkLost(f"{self._server.host} does not let us in now: {said}") from None
            raise LinkRefused(f"{self._server.host} refuses the user {user} or the password: {said}") from None
        except UnicodeError:
            raise LinkRefused("this server takes no password with such letters") from None

    def last(self) -> tuple[int, str]:
        """When the newest mail came, in milliseconds, and its id; zero and nothing in an empty folder."""
        with self._call():
            found = self._client.fetch(self._client.search("*"), ["INTERNALDATE", "ENVELOPE"])
            for one in found.values():
                envelope = one.get(b"ENVELOPE")
                named = (envelope.message_id or b"").decode("ascii", "replace") if envelope else ""
                return _ms(one.get(b"INTERNALDATE")), named.strip().strip("<>")
            return 0, ""

    def after(self, uid: int) -> list[int]:
        """The numbers above `uid`. `more` tells whether others came while this was asked."""
        with self._call():
            self._news()
            found = sorted(one for one in self._client.search(["UID", f"{uid + 1}:*"]) if one > uid)
            self.more = self._news()
            return found

    def since(self, at_ms: int) -> list[int]:
        """The numbers of what came at `at_ms` or later, by the server's own time."""
        with self._call():
            day = (datetime.fromtimestamp(at_ms / 1000, UTC) - _DAY).date()
            uids = self._client.search(["SINCE", day])
            times = self._client.fetch(uids, ["INTERNALDATE"]) if uids else {}
            return sorted(uid for uid, one in times.items() if _ms(one.get(b"INTERNALDATE")) >= at_ms // 1000 * 1000)

    def mail(self, uid: int, room: int) -> Raw | None:
        """A mail, at most `room` bytes of it; None when it is gone."""
        with self._call():
            facts: Mapping[bytes, Any] = self._client.fetch([uid], ["RFC822.SIZE", "INTERNALDATE"]).get(uid, {})
            size = int(facts.get(b"RFC822.SIZE", 0))
            part = "BODY.PEEK[]" if size <= room else f"BODY.PEEK[]<0.{HEAD_BYTES}>"
            data = _body(self._client.fetch([uid], [part]).get(uid, {})) if facts else None
            return None if data is None else Raw(uid, data, _ms(facts.get(b"INTERNALDATE")), size, size <= room)

    def part(self, uid: int, section: str) -> bytes | None:
        """An attachment as it is packed; None when the mail is gone."""
        with self._call():
            return _body(self._client.fetch([uid], [f"BODY.PEEK[{section}]"]).get(uid, {}))

    def heads(self, ids: Sequence[str]) -> bytes:
        """The headers of the newest mail with one of these ids; empty when none is here."""
        with self._call():
            for one in ids:
                for uid in self._client.search(["HEADER", "Message-ID", f"<{one}>"])[-1:]:
                    return _body(self._client.fetch([uid], ["BODY.PEEK[HEADER]"]).get(uid, {})) or b""
            return b""

    def seen(self, uid: int) -> None:
        with self._call():
            self._client.add_flags([uid], [rb"\Seen"], silent=True)

    # ---- waiting

    def socket(self) -> Any:
        return self._client.socket()

    def idle(self) -> bool:
        """Begin to wait; false when there is news already."""
        with self._call():
            self._tag = self._imap.begin()
            return "EXISTS" not in self._imap.untagged_responses

    def told(self) -> list[bytes]:
        """The lines the server has said meanwhile."""
        with self._call():
            return self._imap.news()

    def awake(self) -> None:
        """End the wait."""
        with self._call():
            self._imap.end(self._tag)

    def noop(self) -> None:
        with self._call():
            self._client.noop()

    def close(self) -> None:
        """Hang up, without waiting: a call that still runs in a thread ends by it, and lets the connection go."""
        self._over = True
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)
        if self._turn.acquire(blocking=False):
            self._let_go()
            self._turn.release()

    def _let_go(self) -> None:
        with contextlib.suppress(OSError):
            if self._wire is not None and hasattr(self._wire, "sock"):
                self._wire.shutdown()
            self._sock.close()

    @contextmanager
    def _call(self) -> Iterator[None]:
        """One call: the library's faults as LinkLost, with the server's own words."""
        host = self._server.host
        with self._turn:
            try:
                if self._over:
                    raise EOFError("hung up")
                yield
            except (imaplib.IMAP4.error, OSError, EOFError) as error:
                said = " ".join(str(error).split())[:200]
                told = f"fails: {said}" if said else "broke the connection"
                raise LinkLost(f"the mail server {host} {told}") from None
            finally:
                if self._over:
                    self._let_go()

    def _news(self) -> bool:
        return self._imap.untagged_responses.pop("EXISTS", None) is not None

    @property
    def _imap(self) -> _Wired:
        if self._wire is None:
            raise LinkLost("the mailbox is not open")
        return self._wire


def _body(fetched: Mapping[bytes, Any]) -> bytes | None:
    return next((bytes(value or b"") for key, value in fetched.items() if key.startswith(b"BODY[")), None)


def _ms(when: Any) -> int:
    """The library gives local time without a zone."""
    return int(when.timestamp() * 1000) if isinstance(when, datetime) else 0
