"""Links to files: to one file each, for some days, and not to be guessed, bent or used elsewhere."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from garra.core.errors import NotFound
from garra.domains.delivery.media import MediaRoot
from garra.domains.delivery.shares import DAYS, Shares, public
from garra.sdk.channel import File
from garra.testing.clock import ManualClock
from tests.domains.delivery.parts import clock

ORIGIN = "https://gateway.example.com"


class Kept:
    """A shelf in memory."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}

    async def get(self, key: str) -> Any:
        return self.values.get(key)

    async def set(self, key: str, value: Any, *, durable: bool = False) -> None:
        self.values[key] = value


class Place:
    def __init__(self, folder: Path) -> None:
        self.clock: ManualClock = clock()
        self.media = MediaRoot(folder / "media", self.clock)
        self.shelf, self.origin = Kept(), ORIGIN
        self.shares = Shares(self.shelf, self.media, self.clock, lambda: self.origin)

    async def link(self, name: str = "film größe.mp4") -> str:
        await self.shares.load()
        file = (await self.media.add("telegram", name, b"a film")).file()
        found = self.shares.link(file)
        assert found is not None
        return found


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def token(link: str) -> str:
    return link.removeprefix(f"{ORIGIN}/files/").split("/")[0]


@contextmanager
def nothing() -> Iterator[None]:
    with pytest.raises(NotFound, match=r"^no such file"):
        yield


@pytest.mark.req("ONE-14")
async def test_a_link_leads_to_its_file_until_its_time_is_over(place: Place) -> None:
    link = await place.link()
    assert link.endswith("/film%20gr%C3%B6%C3%9Fe.mp4")
    found = await place.shares.find(token(link))
    assert (found.path.read_bytes(), found.name) == (b"a film", "film größe.mp4")
    await place.clock.advance(DAYS * 86_400 - 5)
    await place.shares.find(token(link))
    await place.clock.advance(10)
    with nothing():
        await place.shares.find(token(link))


async def test_it_is_the_same_after_a_restart_and_nothing_to_another_gateway(place: Place, tmp_path: Path) -> None:
    link = await place.link()
    again = Shares(place.shelf, place.media, place.clock, lambda: ORIGIN)
    with nothing():
        await again.find(token(link))
    await again.load()
    assert (await again.find(token(link))).name == "film größe.mp4"
    other = Shares(Kept(), place.media, place.clock, lambda: ORIGIN)
    await other.load()
    with nothing():
        await other.find(token(link))


async def test_a_bent_link_leads_nowhere(place: Place) -> None:
    good = token(await place.link())
    secret = place.media.root.parent / "secret"
    secret.write_text("x")
    data = base64.urlsafe_b64decode(good + "==")
    for told in (b"9999999999:../secret", b"9999999999:telegram", data[32:] + b"x", b"", b"x"):
        with nothing():
            await place.shares.find(base64.urlsafe_b64encode(data[:32] + told).decode().rstrip("="))
    for wrong in ("", "x", "é", good[:-4], good + "AAAA", "A" * 5_000, good.swapcase()):
        with nothing():
            await place.shares.find(wrong)
    assert (await place.shares.find(good)).path.read_bytes() == b"a film"


async def test_a_file_that_is_gone_or_has_become_a_way_out_is_not_given(place: Place) -> None:
    link = await place.link()
    path = (await place.shares.find(token(link))).path
    path.unlink()
    with pytest.raises(NotFound):
        await place.shares.find(token(link))
    path.symlink_to("/etc/passwd")
    with pytest.raises(NotFound):
        await place.shares.find(token(link))


async def test_without_an_address_there_is_no_link(place: Place) -> None:
    file = File("file", "a/b", "b", "", 1)
    assert place.shares.link(file) is None
    await place.shares.load()
    assert place.shares.link(file) is not None
    assert place.shares.link(File("file", "", "b", "", 1)) is None
    place.origin = ""
    assert place.shares.link(file) is None


@pytest.mark.parametrize(
    ("origin", "found"),
    [
        ("https://a.example/", "https://a.example"),
        (" https://a.example:8443 ", "https://a.example:8443"),
        ("http://127.0.0.1:18789", "http://127.0.0.1:18789"),
        ("http://[::1]:1", "http://[::1]:1"),
        ("http://a.example", ""),
        ("https://a.example/path", ""),
        ("https://a.example?x=1", ""),
        ("https://u:p@a.example", ""),
        ("https://a.example:port", ""),
        ("https://[a", ""),
        ("ftp://a.example", ""),
        ("", ""),
    ],
)
def test_which_addresses_count(origin: str, found: str) -> None:
    assert public(origin) == found


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=60))
def test_any_other_token_is_read_as_nothing(text: str) -> None:
    shares = Shares(Kept(), MediaRoot(Path("/nowhere"), clock()), clock(), lambda: ORIGIN)
    shares._key = b"k" * 32
    assert shares._read(text) is None
