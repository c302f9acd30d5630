"""Logging in, against an issuer on this machine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

import pytest

from garra.core import oauth as pure
from garra.core.errors import UserError
from garra.core.letin import Device
from garra.core.oauth import Tokens
from garra.domains.models.oauth import OAuth
from garra.io.clock import SystemClock
from garra.io.http import GuardedHttp
from garra.io.tasks import Tasks
from garra.testing.issuer import Issuer


class QuickClock(SystemClock):
    """Waits a hundredth as long, and says how long that would have been."""

    def __init__(self) -> None:
        self.waited: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.waited.append(seconds)
        await asyncio.sleep(seconds / 100)


@dataclass
class Desk:
    """Somebody who logs in."""

    issuer: Issuer
    oauth: OAuth
    clock: QuickClock
    http: GuardedHttp
    shown: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    devices: list[Device] = field(default_factory=list)

    def of(self, **more: str) -> pure.Issuer:
        return pure.issuer(self.issuer.login(**more), "test")

    async def get(self, url: str) -> tuple[int, str, str]:
        async with self.http.stream("GET", url) as answer:
            return answer.status, (await answer.read()).decode(), answer.headers.get("content-security-policy", "")

    async def browse(self, url: str) -> None:
        """Opens the address and follows it back to this machine."""
        self.shown.append(url)
        await self.get(url)

    async def nobody(self, wrong: str) -> str:
        """Pastes nothing."""
        await asyncio.Event().wait()
        return wrong

    async def show(self, device: Device) -> None:
        self.devices.append(device)


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    clock, http = QuickClock(), GuardedHttp()
    async with Issuer() as issuer, Tasks() as tasks:
        yield Desk(issuer, OAuth(http, clock, tasks), clock, http)
    await http.close()


async def raw(url: str, request: str) -> bytes:
    """What a page that was lured here is answered."""
    reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(url).port)
    writer.write(request.encode())
    answer = await reader.read()
    writer.close()
    return answer


async def test_in_a_browser(desk: Desk) -> None:
    found = await desk.oauth.browser(desk.of(), desk.browse, desk.nobody)
    assert found.access.reveal() in desk.issuer.access
    assert found.refresh.reveal() in desk.issuer.live
    assert (found.account, found.email) == ("acc", "a@example.org")
    back = urlsplit(dict(pair.split("=", 1) for pair in urlsplit(desk.shown[0]).query.split("&"))["redirect_uri"])
    assert back.path.startswith("http%3A%2F%2F127.0.0.1%3A")


async def test_the_person_says_no(desk: Desk) -> None:
    desk.issuer.deny = True
    with pytest.raises(UserError, match="access_denied: the person said no"):
        await desk.oauth.browser(desk.of(), desk.browse, desk.nobody)


async def test_an_answer_with_another_state_is_refused_and_the_login_goes_on(desk: Desk) -> None:
    async def attacked(url: str) -> None:
        asked = dict(pair.split("=", 1) for pair in urlsplit(url).query.split("&"))
        back = asked["redirect_uri"].replace("%3A", ":").replace("%2F", "/")
        status, words, policy = await desk.get(f"{back}?code=evil&state=guessed")
        assert (status, "another login" in words, policy) == (400, True, "default-src 'none'")
        assert (await desk.get(back.replace("/auth/callback", "/other")))[0] == 404
        assert b" 403 " in await raw(back, "GET /auth/callback?code=evil HTTP/1.1\r\nHost: evil.example\r\n\r\n")
        await desk.browse(url)

    await desk.oauth.browser(desk.of(), attacked, desk.nobody)
    assert "evil" not in [form.get("code") for form in desk.issuer.forms]


async def test_a_code_is_good_once(desk: Desk) -> None:
    issuer = desk.of()
    await desk.oauth.browser(issuer, desk.browse, desk.nobody)
    spent = next(form["code"] for form in desk.issuer.forms if "code" in form)
    answer = await desk.oauth.ask(issuer, {"grant_type": "authorization_code", "code": spent})
    assert isinstance(answer, pure.Refused)
    assert answer.why == "grant"


async def test_somebody_elses_code_does_not_fit(desk: Desk) -> None:
    """A code alone may be pasted: it is of no use without the verifier, which never left."""
    code = desk.issuer.allowed(pure.address(desk.of(), pure.Ticket("x", "other", "http://127.0.0.1:1/auth/callback")))

    async def paste(_wrong: str) -> str:
        return code

    async def quiet(_url: str) -> None:
        return None

    with pytest.raises(UserError, match="invalid_grant"):
        await desk.oauth.browser(desk.of(), quiet, paste)


async def test_the_address_is_pasted_where_the_port_is_taken(desk: Desk) -> None:
    taken = await asyncio.start_server(lambda _r, w: w.close(), "127.0.0.1", 0)
    port = taken.sockets[0].getsockname()[1]
    shown: asyncio.Queue[str] = asyncio.Queue()

    async def paste(wrong: str) -> str:
        if not wrong:
            return "what is this"
        desk.complaints.append(wrong)
        return await shown.get()

    async def show(url: str) -> None:
        asked = dict(pair.split("=", 1) for pair in urlsplit(url).query.split("&"))
        code = desk.issuer.allowed(url)
        await shown.put(f"http://127.0.0.1:{port}/auth/callback?code={code}&state={asked['state']}")

    issuer = desk.of(redirect_url=f"http://127.0.0.1:{port}/auth/callback")
    found = await desk.oauth.browser(issuer, show, paste)
    assert isinstance(found, Tokens)
    assert "paste the whole address" in desk.complaints[0]
    taken.close()
    await taken.wait_closed()


async def test_a_code_entered_elsewhere(desk: Desk) -> None:
    desk.issuer.grants = ["pending", "slow_down", "lost", "pending", "ok"]
    found = await desk.oauth.device(desk.of(), desk.show)
    assert found.refresh.reveal() in desk.issuer.live
    assert (desk.devices[0].user_code, desk.devices[0].whole_url[-11:]) == ("AB-CD", "?code=AB-CD")
    assert desk.clock.waited == [1, 1, 6, 12, 12]


@pytest.mark.parametrize(("answer", "words"), [("denied", "access_denied"), ("expired", "not entered in time")])
async def test_a_code_that_leads_nowhere(desk: Desk, answer: str, words: str) -> None:
    desk.issuer.grants = ["pending", answer]
    with pytest.raises(UserError, match=words):
        await desk.oauth.device(desk.of(), desk.show)


@pytest.mark.req("MODEL-21")
async def test_a_code_as_openai_has_it(desk: Desk) -> None:
    desk.issuer.grants = ["pending", "ok"]
    found = await desk.oauth.device(pure.issuer(desk.issuer.openai(), "test"), desk.show)
    assert found.account == "acc"
    assert desk.devices[0].verify_url == f"{desk.issuer.url}/codex/device"
    with pytest.raises(UserError, match="lets no device in"):
        lacks = {**desk.issuer.openai(), "device_url": f"{desk.issuer.url}/nothing"}
        await desk.oauth.device(pure.issuer(lacks, "test"), desk.show)


async def test_ways_that_an_issuer_does_not_have(desk: Desk) -> None:
    with pytest.raises(UserError, match="--device-code"):
        await desk.oauth.browser(replace(desk.of(), authorize_url=""), desk.browse, desk.nobody)
    with pytest.raises(UserError, match="no device codes"):
        await desk.oauth.device(replace(desk.of(), device_url=""), desk.show)
