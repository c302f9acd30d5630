"""The door over TLS, straight and through a tunnel."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
import uvloop
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from garra.core.errors import Unavailable
from garra.io.http import GuardedHttp
from garra.sdk.ports import Via


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate that signs itself, for 127.0.0.1, with its key in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "garra test")])
    today = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(today - timedelta(days=1))
        .not_valid_after(today + timedelta(days=2))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    text = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path = tmp_path / "cert.pem"
    path.write_bytes(made.public_bytes(pem) + text)
    return path


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nsecret")
    await writer.drain()


Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]


@asynccontextmanager
async def listening(serve: Serve, context: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """A server whose every connection is over when the block ends."""
    tasks: set[asyncio.Task[None]] = set()

    async def served(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await serve(reader, writer)
        writer.transport.abort()

    server = await asyncio.start_server(served, "127.0.0.1", 0, ssl=context)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await asyncio.sleep(0.02)  # the transports say goodbye


@asynccontextmanager
async def serving(certificate: Path) -> AsyncIterator[int]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    await asyncio.to_thread(context.load_cert_chain, certificate)
    async with listening(_answer, context) as port:
        yield port


async def _tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    host, _, port = head.split()[1].rpartition(":")
    inner_reader, inner = await asyncio.open_connection(host, int(port))
    writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")

    async def pass_on(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        while data := await source.read(65_536):
            target.write(data)

    try:
        await asyncio.gather(pass_on(reader, inner), pass_on(inner_reader, writer))
    finally:
        inner.transport.abort()


async def read(certificate: Path, *, trusted: bool, proxy: str | None = None) -> bytes:
    door = GuardedHttp()
    try:
        async with serving(certificate) as port:
            via = Via(proxy, str(certificate) if trusted else None)
            async with door.stream("GET", f"https://127.0.0.1:{port}/", via=via, timeout=5.0) as body:
                return await body.read()
    finally:
        await door.close()


async def test_a_certificate_of_ones_own_is_trusted_when_told(certificate: Path) -> None:
    assert await read(certificate, trusted=True) == b"secret"


def test_the_same_on_the_gateways_loop(certificate: Path) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(read(certificate, trusted=True)) == b"secret"


async def test_an_unknown_certificate_is_refused(certificate: Path) -> None:
    with pytest.raises(Unavailable, match="certificate verify failed"):
        await read(certificate, trusted=False)


async def test_through_a_proxys_tunnel(certificate: Path) -> None:
    async with listening(_tunnel) as port:
        assert await read(certificate, trusted=True, proxy=f"http://127.0.0.1:{port}") == b"secret"
