"""The web against its visitors: names that change, sites that lead credentials on, pages that look for this machine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from garra.core.addresses import public
from garra.core.errors import Unavailable
from garra.core.hosts import Hosts
from garra.io.http import GuardedHttp
from garra.io.http.outside import Outside
from garra.sdk.web import Visit
from garra.testing.web import Request, answered, serving
from tests.builtin.tools.test_browser import browsing
from tests.builtin.tools.web_place import listing, web_place
from tests.hostile.cases import Hostile, of

KEY = "the-owner-s-credential-0123456789"


class Rebinding(asyncio.SelectorEventLoop):
    """Its resolver answers as an attacker's does. It connects to nobody, and remembers to whom it would have."""

    def __init__(self, answers: list[list[str]]) -> None:
        super().__init__()
        self.answers, self.asked, self.connected = answers, 0, list[str]()

    async def getaddrinfo(self, host: Any, port: Any, **_: Any) -> Any:
        found = self.answers[min(self.asked, len(self.answers) - 1)]
        self.asked += 1
        return [(0, 1, 6, "", (address, port)) for address in found]

    async def create_connection(self, *given: Any, **named: Any) -> Any:
        self.connected.append(str(given[1] if len(given) > 1 else named.get("host")))
        raise OSError("nobody is connected to")


async def _visited() -> None:
    door = Outside(Hosts)
    try:
        async with door.open(Visit("http://rebound.example/", wait_s=5)):
            pass
    finally:
        await door.close()


async def _opened() -> None:
    door = GuardedHttp(guard=True)
    try:
        await door.open("rebound.example", 443, tls=False)
    finally:
        await door.close()


@pytest.mark.parametrize("way", [_visited, _opened])
@pytest.mark.parametrize("case", of("rebinding"), ids=lambda case: case.id)
def test_a_name_is_judged_by_the_address_that_is_connected_to(case: Hostile, way: Callable[[], Any]) -> None:
    loop = Rebinding(case["answers"])
    try:
        with pytest.raises(Unavailable):
            loop.run_until_complete(way())
        loop.run_until_complete(loop.shutdown_default_executor())
    finally:
        loop.close()
    assert all(public(address) for address in loop.connected)
    assert loop.asked == 1


@pytest.mark.parametrize("case", of("credentials"), ids=lambda case: case.id)
async def test_a_credential_is_not_led_on_to_another_site(tmp_path: Path, case: Hostile) -> None:
    seen: list[str] = []

    async def other(request: Request) -> bytes:
        seen.append(str(request.headers))
        return answered(200, b"the other", "text/plain")

    async with serving(other, host="127.0.0.9") as to:

        async def first(request: Request) -> bytes:
            assert KEY in str(request.headers)  # the control
            return f"HTTP/1.1 {case['status']} x\r\nlocation: {to}/\r\ncontent-length: 0\r\n\r\n".encode()

        config = listing("127.0.0.1", "127.0.0.9", headers={case["header"]: KEY})
        async with serving(first) as url, web_place(tmp_path, config) as place:
            assert "the other" in await place.said("web_fetch", url=f"{url}/")
    assert len(seen) == 1
    assert KEY not in seen[0]


@pytest.mark.needs("chromium")
@pytest.mark.timeout(120)
async def test_no_page_in_the_browser_reaches_this_machine(tmp_path: Path) -> None:
    reached: list[str] = []

    async def inner(request: Request) -> bytes:
        reached.append(request.path)
        return answered(200, b"inside", "text/html")

    bodies = {case.id: case["body"] for case in of("browser")}

    async with serving(inner, host="127.0.0.2") as inside:
        at = inside.removeprefix("http://")

        async def page(request: Request) -> bytes:
            body = bodies.get(request.path.strip("/"), "<h1>hello</h1>")
            filled = body.replace("{inner}", at).replace("{port}", at.rpartition(":")[2])
            return answered(200, filled.encode(), "text/html")

        async with serving(page) as url, browsing(tmp_path, "127.0.0.1") as place:
            assert "hello" in await place.said("open", url=f"{url}/plain")  # the control
            for name in bodies:
                told = await place.call("navigate", url=f"{url}/{name}")
                await place.call("act", kind="wait", timeMs=400)
                assert "root:x:0" not in told.text + (await place.call("snapshot")).text
                assert not reached, f"{name} reached {reached}"
