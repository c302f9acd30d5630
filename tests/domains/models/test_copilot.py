"""GitHub Copilot: one login, three families, and who began each step."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from garra.core.letin import Device, device, poll_form, polled
from garra.core.messages import Assistant, Image, Message, Text, ToolCall, ToolResult, User
from garra.core.oauth import Refused, Tokens
from garra.domains.models import ways
from garra.sdk.model import ModelRequest
from tests.domains.models.desk import Desk, desk, user

PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@pytest.fixture
async def at() -> AsyncIterator[Desk]:
    async with desk() as ready:
        ready.env["COPILOT_GITHUB_TOKEN"] = "gho_test"
        yield ready


def asked_of(at: Desk, ref: str, *messages: Message) -> ModelRequest:
    """As it would go to GitHub, to the server of the test."""
    request = at.request(ref, *messages)
    assert request.model.base_url == "https://api.githubcopilot.com"
    return replace(request, model=replace(request.model, base_url=at.server.url))


@pytest.mark.parametrize(
    ("model", "path"),
    [
        ("claude-sonnet-5", "/v1/messages"),
        ("gpt-5.6-sol", "/responses"),
        ("gemini-3.6-flash", "/chat/completions"),
        ("of-tomorrow", "/responses"),
    ],
)
async def test_each_model_speaks_its_makers_language(at: Desk, model: str, path: str) -> None:
    await at.models.stream(asked_of(at, f"copilot/{model}")).result()
    seen = at.server.requests[0]
    assert (seen.path, seen.key) == (path, "gho_test")
    assert "x-api-key" not in seen.headers
    assert seen.headers["copilot-integration-id"] == "copilot-developer-cli"
    assert seen.headers["x-initiator"] == "user"
    assert "copilot-vision-request" not in seen.headers


async def test_a_step_behind_a_tool_is_the_agents_own(at: Desk) -> None:
    call = Assistant((ToolCall("c1", "read", {}),), 2, stop="toolUse")
    seen = User((Text("look"), Image("image/png", PICTURE)), 1)
    result = ToolResult("c1", "read", (Text("x"),), 3)
    await at.models.stream(asked_of(at, "copilot/claude-sonnet-5", seen, call, result)).result()
    headers = at.server.requests[0].headers
    assert (headers["x-initiator"], headers["copilot-vision-request"]) == ("agent", "true")
    other = at.provider(headers={})
    at.configure(other)
    await at.models.stream(at.request("fake/m", user())).result()
    assert "x-initiator" not in at.server.requests[1].headers, "nobody else is told"


async def test_a_device_is_let_in_as_github_says_it(at: Desk) -> None:
    """GitHub answers what is not there yet with status 200, and gives a token that neither ends nor is renewed."""
    issuer = ways.way(at.models.entries()["github-copilot"]).issuer
    assert issuer is not None
    said = b'{"device_code":"d","user_code":"AB12-CD34","verification_uri":"https://github.com/login/device",'
    shown = device(issuer, 200, said + b'"expires_in":899,"interval":5}', 0)
    assert isinstance(shown, Device)
    assert poll_form(issuer, shown)["client_id"] == issuer.client_id
    for error, why in (("authorization_pending", "pending"), ("slow_down", "slow"), ("expired_token", "expired")):
        answer = polled(issuer, 200, b'{"error":"%s","error_description":"x"}' % error.encode(), 0)
        assert isinstance(answer, Refused)
        assert answer.why == why
    given = polled(issuer, 200, b'{"access_token":"gho_x","token_type":"bearer","scope":"read:user"}', 0)
    assert isinstance(given, Tokens)
    assert (given.access.reveal(), given.refresh.reveal(), given.expires_ms) == ("gho_x", "", None)
