"""The whole program: a file that a platform does not take is had by a link, and by nothing like it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.e2e.test_webhook import World, world

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(60)]


def link(here: World) -> str:
    found = re.search(r"https://gateway\.example\.com(/files/\S+)", " ".join(here.peer.shown("ann")))
    assert found is not None, here.peer.shown("ann")
    return found[1]


@pytest.mark.req("ONE-14")
async def test_too_large_a_file_is_sent_as_a_link(tmp_path: Path) -> None:
    film = tmp_path / "film.bin"
    film.write_bytes(b"film" * 500_000)
    origin = "https://gateway.example.com"
    async with world(tmp_path, mediaMaxMb=1, dmPolicy="open", allowFrom=["*"]) as here:
        send = ("message", "send", "--channel", "webhook", "--to", "ann", "--media", str(film))
        await here.program.run(*send)
        await here.heard("film.bin (2.0 MB) is over the limit")
        assert "https://" not in here.peer.shown("ann")[-1]
        done, out, err = await here.program.run("config", "set", "gateway.publicOrigin", origin)
        assert done == 0, out + err
        await here.program.stop()
        await here.program.start()
        await here.taken()
        await here.program.run(*send)
        await here.heard(f"{origin}/files/")
        path = link(here)
        status, body = await here.program.get(path)
        assert (status, body) == (200, film.read_bytes())
        await here.program.stop()
        await here.program.start()
        assert (await here.program.get(path))[0] == 200
        bent = path.replace(path.split("/")[2], path.split("/")[2][:-6] + "AAAAAA")
        for wrong in (bent, "/files/", "/files/x/y", path + "/..", "/files/../state.db/x"):
            assert (await here.program.get(wrong))[0] == 404, wrong
        assert path.split("/")[2] not in here.program.log()
