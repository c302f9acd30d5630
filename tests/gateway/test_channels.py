"""`channels.*` over a real socket, with links of a channel that does as it is told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from garra.core.errors import Unavailable
from garra.domains.delivery.accounts import Setup
from garra.domains.delivery.link import Doors
from garra.domains.delivery.links import Links
from garra.io.clock import SystemClock
from garra.io.tasks import Tasks
from garra.sdk.channel import Account, Answered, Identity, Limits, LinkRefused, Outbound, Pulse, Receive
from tests.gateway.house import Refused
from tests.gateway.standing import CONFIG, Standing, standing


@dataclass
class Toy:
    """Connects, unless its name is `bad`."""

    account: Account
    limits: Limits

    async def run(self, receive: Receive, pulse: Pulse) -> None:
        if self.account.id == "bad":
            raise LinkRefused("the token is no good")
        pulse.connected(Identity("7", "Toy", "toy_bot"))
        pulse.alive()
        await asyncio.Event().wait()

    async def send(self, message: Outbound) -> str:
        return "1"

    path, body_limit = "/toy-hook", 5_000_000

    def screen(self, method: str, headers: Mapping[str, str]) -> Answered | None:
        return Answered(401) if "x-who" not in headers else None

    async def called(self, method: str, headers: Mapping[str, str], body: bytes, receive: Receive) -> Answered:
        if body == b"too much for the disk":
            raise Unavailable("the disk is full")
        return Answered(200, headers["x-who"].encode() + b" " + body, {"x-toy": method})

    def inspect(self) -> dict[str, Any]:
        return {"mode": "toy"}


async def swallow(event: Any) -> None:
    """Store nothing."""


@asynccontextmanager
async def kept(folder: Path, *setups: Setup) -> AsyncIterator[tuple[Standing, Links]]:
    config = {**CONFIG, "channels": {"toy": {"botToken": "t", "accounts": {"bad": {"botToken": "u"}}}}}
    async with standing(folder, config) as gateway, Tasks() as spawn:
        doors = Doors(
            lambda setup: Toy(setup.account, Limits(100)), lambda _: swallow, lambda *_: None, SystemClock(), spawn
        )
        links = Links(doors)
        gateway.host.more["links"] = links
        await links.apply(setups)
        await asyncio.sleep(0.05)
        yield gateway, links
        await links.close()


def setup(account: str = "default", **more: Any) -> Setup:
    return Setup("toy", Account(account, {"dmPolicy": "open"}), label="Toy", sources={"botToken": "config"}, **more)


@pytest.mark.req("ONE-06")
async def test_every_account_is_shown_as_it_stands(tmp_path: Path) -> None:
    off = setup("off", enabled=False)
    async with kept(tmp_path, setup(), setup("bad"), off) as (gateway, _), gateway.guest() as guest:
        found = await guest.call("channels.status", {"probe": True, "timeoutMs": 8000})
        assert (found["channelOrder"], found["channelLabels"]) == (["toy"], {"toy": "Toy"})
        assert found["channelDefaultAccountId"] == {"toy": "default"}
        good, bad, unused = found["channelAccounts"]["toy"]
        assert (good["running"], good["connected"], good["lifecycle"]) == (True, True, "ready")
        assert good["bot"] == {"id": "7", "username": "toy_bot", "name": "Toy"}
        assert good["probe"] == {"ok": True, "mode": "toy"}
        assert (good["dmPolicy"], good["tokenSource"]) == ("open", "config")
        assert (bad["running"], bad["lifecycle"], bad["lastError"]) == (False, "blocked", "the token is no good")
        assert (unused["enabled"], unused["running"]) == (False, False)
        assert found["channels"]["toy"]["connected"]
        assert [issue["accountId"] for issue in found["statusIssues"]] == ["bad"]
        told = (await guest.call("status", {}))["links"]
        assert (told["accounts"], told["connected"]) == (2, 1)
        assert told["troubles"] == [{"channel": "toy", "accountId": "bad", "message": "the token is no good"}]
        only = await guest.call("channels.status", {"channel": "other"})
        assert only["channelOrder"] == []


async def test_an_account_is_stopped_and_started(tmp_path: Path) -> None:
    async with kept(tmp_path, setup()) as (gateway, _), gateway.guest() as guest:
        stopped = await guest.call("channels.stop", {"channel": "toy"})
        assert stopped == {"channel": "toy", "accountId": "default", "stopped": True}
        started = await guest.call("channels.start", {"channel": "toy", "accountId": "default"})
        assert started == {"channel": "toy", "accountId": "default", "started": True}
        for params, words in (
            ({"channel": "x"}, "no channel 'x'"),
            ({"channel": "toy", "accountId": "y"}, "no account"),
        ):
            with pytest.raises(Refused, match=words):
                await guest.call("channels.start", params)


async def test_logging_out_takes_the_credential_away(tmp_path: Path) -> None:
    async with kept(tmp_path, setup(), setup("bad")) as (gateway, links), gateway.guest() as guest:
        answer = await guest.call("channels.logout", {"channel": "toy", "accountId": "bad"})
        assert answer["cleared"]
        assert not links.up(links.accounts()[1])
        now = json.loads((tmp_path / "garra.json").read_text())["channels"]["toy"]
        assert now == {"botToken": "t", "accounts": {"bad": {}}}


async def test_a_platform_may_call_a_channel_that_runs(tmp_path: Path) -> None:
    async with kept(tmp_path, setup()) as (gateway, links), gateway.http(**{"x-who": "me"}) as http:
        told = await http.post("/toy-hook", content=b"news")
        assert (told.status_code, told.content, told.headers["x-toy"]) == (200, b"me news", "POST")
        assert (await http.post("/toy-hook", content=b"x" * (5 << 20))).status_code == 413
        assert (await http.post("/other-hook", content=b"news")).status_code == 404
        lost = await http.post("/toy-hook", content=b"too much for the disk")
        assert (lost.status_code, lost.headers["retry-after"]) == (503, "5")
        await links.stop("toy")
        assert (await http.post("/toy-hook", content=b"news")).status_code == 404


async def test_a_call_without_a_chance_has_no_body_read(tmp_path: Path) -> None:
    async with kept(tmp_path, setup()) as (gateway, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        writer.write(b"POST /toy-hook HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000000000\r\n\r\n")
        assert (await reader.readline()).split()[1] == b"401"
        writer.transport.abort()


async def test_without_channels_there_is_nothing_to_show(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.guest() as guest:
        gateway.host.more.pop("links", None)
        found = await guest.call("channels.status", {})
        assert found["channels"] == {}
        with pytest.raises(Refused, match="not ready"):
            await guest.call("channels.stop", {"channel": "toy"})
