"""Names for files of conversations: who finds them, and for how long."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from garra.core.errors import ToolFailed
from garra.domains.delivery.handles import SPACE, Handles
from garra.domains.delivery.media import MediaRoot
from garra.io.store.shelf import Shelf
from tests.domains.delivery.parts import clock
from tests.stored import stored

SHE, HE = "agent:main:telegram:direct:7", "agent:main:telegram:direct:8"


async def test_a_file_is_found_by_its_own_conversations_alone_after_a_restart_too(tmp_path: Path) -> None:
    media = MediaRoot(tmp_path / "media", clock())
    async with stored(tmp_path) as db:
        kept = await media.add("telegram", "a.pdf", b"%PDF-1.7", mime="application/pdf")
        handle = await Handles(Shelf(db, SPACE), media).give("in", (SHE, "agent:work:x"), kept)
        assert handle.startswith("media://in/")
        assert handle != await Handles(Shelf(db, SPACE), media).give("in", (HE,), kept)
    async with stored(tmp_path) as db:
        handles = Handles(Shelf(db, SPACE), media)
        for session in (SHE, "agent:work:x"):
            held = await handles.read(session, handle, 100)
            assert (held.name, held.mime, held.data) == ("a.pdf", "application/pdf", b"%PDF-1.7")
        for session, named in ((HE, handle), (SHE, "media://in/0"), (SHE, f"{handle}/../../x")):
            with pytest.raises(ToolFailed, match="no file media://"):
                await handles.read(session, named, 100)
        with pytest.raises(ToolFailed, match="larger than 3 bytes"):
            await handles.read(SHE, handle, 3)


async def test_names_go_with_their_files(tmp_path: Path) -> None:
    media = MediaRoot(tmp_path / "media", clock())
    async with stored(tmp_path) as db:
        handles = Handles(Shelf(db, SPACE), media)
        gone, stays = [
            (kept, await handles.give("in", (SHE,), kept))
            for kept in [await media.add("x", name, b"x") for name in ("a", "b")]
        ]
        await asyncio.to_thread((tmp_path / "media" / gone[0].path).unlink)
        with pytest.raises(ToolFailed, match="no longer kept"):
            await handles.read(SHE, gone[1], 9)
        assert await handles.sweep() == 1
        assert list(await Shelf(db, SPACE).items()) == [stays[1]]
