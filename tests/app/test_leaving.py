"""What a sub-agent leaves its parent: found there by a name, and by nobody else."""

from __future__ import annotations

import base64
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from garra.app.leaving import Leaving
from garra.core.errors import ToolFailed
from garra.core.lineage import Child, Home
from garra.core.messages import Image
from garra.core.reports import Made
from garra.domains.delivery.handles import SPACE, Handles
from garra.domains.delivery.media import MediaRoot
from garra.io.files.root import Root
from garra.io.store.db import Database
from garra.io.store.shelf import Shelf
from garra.runs.assemble import Assembler
from garra.testing.clock import ManualClock

PARENT = "agent:main:main"
CHILD = Child("r1", "agent:main:subagent:u1", "main", "draw", Home(PARENT, "r0", "main"), "t", 1)


def assembler(folder: Path) -> Assembler:
    """One whose agents all work in `folder`."""

    async def prepare(agent: str) -> None:
        assert agent == "main"

    found: Any = SimpleNamespace(
        prepare=prepare, context=lambda agent, key, run, origin: SimpleNamespace(files=Root(str(folder)))
    )
    return cast(Assembler, found)


async def test_files_names_and_pictures(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "plan.pdf").write_bytes(b"%PDF")
    db = Database(tmp_path / "state.db")
    media = MediaRoot(tmp_path / "media", ManualClock())
    handles = Handles(Shelf(db, SPACE), media)
    try:
        mine = await handles.give("tools", (CHILD.key,), await media.add("tools", "shot.png", b"PNG", mime="image/png"))
        theirs = await handles.give("tools", ("agent:main:other",), await media.add("tools", "x", b"X"))
        leaving = Leaving(assembler(folder), media, handles)
        picture = Image("image/png", base64.b64encode(b"drawn").decode())
        made = Made((mine, theirs, "plan.pdf", "none.txt", "../state.db"), (picture, Image("image/png", "no base64")))
        found = await leaving.share(CHILD, made)
        assert [(each.name, each.mime) for each in found] == [
            ("shot.png", "image/png"),
            ("plan.pdf", "application/pdf"),
            ("picture-1.png", "image/png"),
        ]
        (folder / "plan.pdf").write_bytes(b"changed since")
        data = [(await handles.read(PARENT, each.where, 99)).data for each in found]
        assert data == [b"PNG", b"%PDF", b"drawn"]
        assert (await handles.read(CHILD.key, mine, 99)).data == b"PNG"
        for session, handle in ((PARENT, theirs), ("agent:main:other", found[1].where)):
            with pytest.raises(ToolFailed):
                await handles.read(session, handle, 99)
        again = await leaving.share(replace(CHILD, files=found), made)
        assert again == ()
        assert (await handles.share(mine, CHILD.key, PARENT)) == found[0]
    finally:
        await db.close()
