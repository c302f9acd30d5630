"""An SMTP server with no network behind it: loopback, log-in, STARTTLS, refusals on demand.

async with SmtpServer(password="pw") as server:     # host 127.0.0.1, port `server.port`
    server.fail = ("rcpt", "550 5.1.1 nobody of that name")   # the next mail is refused so; or ("data", "cut")
    server.taken                                    # (from, to, bytes) of each mail taken
"""

from __future__ import annotations

import asyncio
import base64
import re
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field

Deliver = Callable[[str, str, bytes], Awaitable[None]]


@dataclass
class SmtpServer:
    """`deliver` is given each mail before it is confirmed. `password` is asked for where it is set. `fail` is a stage
    (greet, auth, mail, rcpt, data, end) and the answer to give there once; `cut` closes the connection instead.
    """

    password: str = ""
    tls: ssl.SSLContext | None = None
    deliver: Deliver | None = None
    fail: tuple[str, str] | None = None
    port: int = 0
    taken: list[tuple[str, str, bytes]] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    _open: set[asyncio.StreamWriter] = field(default_factory=set)

    async def __aenter__(self) -> SmtpServer:
        self._server = await asyncio.start_server(self._client, "127.0.0.1", self.port, limit=64 << 20)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for writer in tuple(self._open):
            writer.transport.abort()
        await asyncio.sleep(0)

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        plain = writer.transport
        try:
            with suppress(OSError, asyncio.IncompleteReadError):
                await _Session(self, reader, writer).run()
        finally:
            self._open.discard(writer)
            (vars(writer)["_transport"] or plain).close()
            vars(writer)["_transport"] = plain  # when it is collected it asks, and one under TLS has no answer any more

    def failure(self, stage: str) -> str:
        """The answer that was asked for here; it is given once."""
        if self.fail is None or self.fail[0] != stage:
            return ""
        answer, self.fail = self.fail[1], None
        return answer


class _Session:
    def __init__(self, server: SmtpServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.server, self.reader, self.writer = server, reader, writer
        self.known = not server.password
        self.secure = False
        self.sender = self.to = ""

    async def say(self, line: str) -> None:
        self.writer.write(line.encode() + b"\r\n")
        await self.writer.drain()

    async def run(self) -> None:
        await self.say(self.server.failure("greet") or "220 smtp.test")
        while line := (await self.reader.readline()).decode("utf-8", "replace").strip():
            self.server.words.append(line)
            verb = line.split(" ")[0].upper()
            failed = self.server.failure(verb.lower())
            answer = failed or await self.answer(verb, line)
            if answer == "cut":
                return
            if answer:
                await self.say(answer)
            if verb == "QUIT":
                return

    async def answer(self, verb: str, line: str) -> str:
        match verb:
            case "EHLO":
                extras = ["250-smtp.test", "250-SIZE 36700160", "250-8BITMIME", "250-AUTH PLAIN LOGIN"]
                extras += ["250-STARTTLS"] if self.server.tls and not self.secure else []
                return "\r\n".join([*extras, "250 ENHANCEDSTATUSCODES"])
            case "STARTTLS":
                await self.say("220 go on")
                await self.writer.start_tls(self.server.tls or ssl.create_default_context())
                if vars(self.writer)["_transport"] is None:
                    raise ConnectionResetError
                self.secure = True
                return ""
            case "AUTH":
                return await self.log_in(line)
            case "MAIL" if not self.known:
                return "530 5.7.0 authentication required"
            case "MAIL" | "RCPT":
                found = re.search(r"<([^>]*)>", line)
                setattr(self, "sender" if verb == "MAIL" else "to", found[1] if found else "")
                return "250 2.1.0 ok"
            case "DATA":
                return await self.data()
            case "QUIT":
                return "221 2.0.0 bye"
        return "250 ok" if verb in {"RSET", "NOOP"} else "500 5.5.2 what?"

    async def log_in(self, line: str) -> str:
        _, way, *rest = line.split(" ")
        if way.upper() == "LOGIN":
            await self.say("334 VXNlcm5hbWU6")
            await self.reader.readline()
            await self.say("334 UGFzc3dvcmQ6")
            given = base64.b64decode(await self.reader.readline()).decode()
        else:
            given = base64.b64decode(rest[0]).decode().split("\0")[-1]
        self.known = given == self.server.password
        return "235 2.7.0 welcome" if self.known else "535 5.7.8 authentication failed"

    async def data(self) -> str:
        await self.say("354 go on")
        raw = await self.reader.readuntil(b"\r\n.\r\n")
        mail = raw[:-3].replace(b"\r\n..", b"\r\n.")
        failed = self.server.failure("end")
        if failed:
            return failed
        if self.server.deliver is not None:
            await self.server.deliver(self.sender, self.to, mail)
        self.server.taken.append((self.sender, self.to, mail))
        return "250 2.0.0 taken"
