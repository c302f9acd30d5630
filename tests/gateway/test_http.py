"""The HTTP side: probes, tools, history, pages, and who may call."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest

from garra.gateway.methods.status import rss
from tests.gateway.standing import BEARER, CONFIG, standing
from tests.gateway.test_chat import KEY, final, message

OFF: dict[str, Any] = {**CONFIG, "gateway": {"auth": CONFIG["gateway"]["auth"]}}


async def test_probes_are_public(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.http(accept="*/*") as http:
        for path in ("/healthz", "/health"):
            assert (await http.get(path)).json() == {"ok": True, "status": "live"}
            assert (await http.head(path)).status_code == 200
            assert (await http.post(path)).status_code == 405
        for path in ("/readyz", "/ready"):
            body = (await http.get(path)).json()
            assert (body["ready"], body["failing"]) == (True, [])
        gateway.gateway.phase = "draining"
        late = await http.get("/readyz")
        assert (late.status_code, late.json()["ready"]) == (503, False)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/control-ui-config.json"),
        ("GET", "/__openclaw__/control-ui-config.json"),
        ("GET", "/sessions/main/history"),
        ("POST", "/tools/invoke"),
        ("GET", "/v1/models"),
        ("GET", "/v1/models/openclaw"),
        ("POST", "/v1/chat/completions"),
        ("POST", "/v1/responses"),
        ("GET", "/api/channels/telegram"),
    ],
)
async def test_what_needs_the_token_is_shut_without_it(tmp_path: Path, method: str, path: str) -> None:
    async with standing(tmp_path) as gateway:
        for headers in ({"x": "y"}, {"authorization": "Bearer wrong"}, {"authorization": "Basic eDp5"}):
            async with gateway.http(**headers) as http:
                answer = await http.request(method, path)
                assert answer.status_code == 401
                assert answer.json() == {"error": {"message": "Unauthorized", "type": "unauthorized"}}


async def test_the_page_asks_for_its_settings(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.http() as http:
        body = (await http.get("/control-ui-config.json")).json()
        assert (body["assistantAgentId"], body["serverVersion"]) == ("main", "1.0.0")


async def test_history_is_read_by_its_key(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.guest() as guest, gateway.http() as http:
        await guest.call("chat.send", message("say hi"))
        await final(guest, "k1")
        body = (await http.get("/sessions/agent%3Amain%3At/history?limit=1")).json()
        assert body["sessionKey"] == KEY
        assert [item["role"] for item in body["items"]] == ["assistant"]
        gone = await http.get("/sessions/nobody/history")
        assert (gone.status_code, gone.json()["error"]["type"]) == (404, "not_found")
        assert (await http.post("/sessions/main/history")).status_code == 405


async def test_tools_are_called_under_the_policy(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.http() as http:
        url = "/tools/invoke"
        listed = (await http.post(url, json={"tool": "sessions_list", "args": {}})).json()
        assert (listed["ok"], listed["result"]["content"][0]["type"]) == (True, "text")
        said = (await http.post(url, json={"tool": "echo", "args": {"text": "hi"}, "sessionKey": "x"})).json()
        assert said["result"]["content"][0]["text"] == "hi in agent:main:x"
        for body, status, kind in (
            ({"tool": "exec", "args": {}}, 404, "not_found"),
            ({"tool": "nothing"}, 404, "not_found"),
            ({"args": {}}, 400, "invalid_request"),
            ({"tool": "echo", "args": "x"}, 400, "invalid_request"),
            ({"tool": "echo", "sessionKey": "agent:nobody:x"}, 404, "not_found"),
            ({"tool": "sessions_history", "args": {}}, 400, "tool_error"),
        ):
            answer = await http.post(url, json=body)
            assert (answer.status_code, answer.json()["error"]["type"]) == (status, kind)
        broken = await http.post(url, content=b"{nope")
        assert (broken.status_code, broken.json()["error"]["type"]) == (400, "invalid_request_error")
        assert (await http.get(url)).status_code == 405


@pytest.mark.req("GW-16")
async def test_the_interfaces_are_not_there_until_switched_on(tmp_path: Path) -> None:
    async with standing(tmp_path, OFF) as gateway, gateway.http() as http, gateway.guest() as guest:
        for method, path in (("GET", "/v1/models"), ("POST", "/v1/chat/completions"), ("POST", "/v1/responses")):
            assert (await http.request(method, path)).status_code == 404
        base = (await guest.call("config.get", {}))["hash"]
        raw = "{gateway: {http: {endpoints: {chatCompletions: {enabled: true}}}}}"
        await guest.call("config.patch", {"raw": raw, "baseHash": base})
        assert (await http.get("/v1/models")).status_code == 200
        assert (await http.post("/v1/responses")).status_code == 404


async def test_pages_are_pages_and_nothing_else_is(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.http(accept="*/*") as http:
        for path in ("/", "/chat/main", "/mcp"):
            page = await http.get(path)
            assert page.headers["content-type"].startswith("text/html")
            assert "Garra" in page.text
            assert page.headers["x-frame-options"] == "DENY"
            assert page.headers["x-content-type-options"] == "nosniff"
            assert "default-src 'none'" in page.headers["content-security-policy"]
        for path in ("/assets/x.js", "/favicon.ico", "/api/x", "/v1/none", "/hooks/wake", "/metrics"):
            assert (await http.get(path)).status_code == 404
        assert (await http.post("/chat/main")).status_code == 404


async def test_a_caller_who_hangs_up_midway_is_no_fault_of_ours(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with standing(tmp_path) as gateway, gateway.http() as http:
        _, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        lines = ("POST /tools/invoke HTTP/1.1", "Host: 127.0.0.1", "Content-Length: 99")
        head = "\r\n".join((*lines, f"Authorization: {BEARER['authorization']}", "", "x"))
        writer.write(head.encode())
        await writer.drain()
        await asyncio.sleep(0.05)
        writer.close()
        await writer.wait_closed()
        assert (await http.get("/healthz")).status_code == 200
    assert "Traceback" not in caplog.text
    assert "ClientDisconnect" not in caplog.text


async def endless() -> AsyncIterator[bytes]:
    """A body that never says how long it is."""
    for _ in range(100):
        yield b"x" * 1_000_000


@pytest.mark.parametrize("body", [b"x" * 20_000_001, endless()])
async def test_a_body_is_cut_while_it_is_read(tmp_path: Path, body: Any) -> None:
    async with standing(tmp_path) as gateway, gateway.http() as http:
        before = await asyncio.to_thread(rss)
        with suppress(
            httpx2.WriteError, httpx2.ReadError, httpx2.RemoteProtocolError
        ):  # cut off while it wrote: as good
            assert (await http.post("/v1/chat/completions", content=body)).status_code == 413
        assert await asyncio.to_thread(rss) - before < 60 << 20
        assert (await http.get("/healthz")).status_code == 200


async def test_guessing_is_counted_and_a_right_token_is_not(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway:
        gateway.door(spare_loopback=False)
        async with gateway.http(authorization="Bearer wrong") as http:
            codes = [(await http.get("/v1/models")).status_code for _ in range(11)]
        assert codes == [401] * 10 + [429]
        async with gateway.http(**BEARER) as http:
            late = await http.get("/v1/models")
        assert (late.status_code, late.headers["retry-after"]) == (429, "300")


@pytest.mark.parametrize("mode", ["none", "trusted-proxy"])
async def test_other_ways_in(tmp_path: Path, mode: Any) -> None:
    async with standing(tmp_path) as gateway, gateway.http(accept="*/*") as http:
        gateway.door(mode=mode)
        assert (await http.get("/v1/models")).status_code == (200 if mode == "none" else 401)
