"""The web page against a running gateway: it loads, speaks, streams, and nothing is said twice or lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from garra.testing.model_server import Say
from tests.e2e.browser import browsing
from tests.e2e.resident import resident, strict_model

pytestmark = [pytest.mark.e2e, pytest.mark.needs("chromium"), pytest.mark.timeout(120)]


async def test_a_turn_is_said_and_answered_on_the_page(tmp_path: Path) -> None:
    async with strict_model() as model, resident(tmp_path, model.url) as garra, browsing() as tab:
        await tab.open(garra, "/chat")
        assert "token" not in tab.page.url
        model.then(Say("Offer **2** leaves out the roof.\n\n```\nwalls 17,900\n```", thinking="roofs first"))
        await tab.say("which one?")
        await tab.sees("leaves out the roof", ".bot:not(.live)")
        assert await tab.page.locator(".bot strong").inner_text() == "2"
        assert await tab.page.locator(".bot pre").first.inner_text() == "walls 17,900"
        assert "16 tokens" in await tab.text(".foot")
        assert await tab.unlabelled() == []
        assert tab.faults == []
