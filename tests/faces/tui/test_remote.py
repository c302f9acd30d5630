"""The terminal's chat on a gateway elsewhere: what waits for an answer is told, before it came and after."""

from __future__ import annotations

from pathlib import Path

from garra.client.target import Target
from garra.client.wire import Event, Link
from garra.faces.tui.backend import NOTICE
from garra.faces.tui.remote import Remote
from garra.testing.clock import settle
from tests.gateway.house import TOKEN
from tests.gateway.test_approvals import house


async def test_a_question_is_told_and_answered_by_what_is_typed(tmp_path: Path) -> None:
    heard: list[str] = []

    def listen(news: Event | Link) -> None:
        if isinstance(news, Event) and news.name == NOTICE:
            heard.append(str(news.payload["text"]))

    async def ask(question: str) -> bool:
        raise AssertionError(question)

    async with house(tmp_path) as h, h.guest(caps=("exec-approvals",)):
        first, asked = await h.desk.asked(subject="touch early")
        remote = Remote(lambda: Target(h.gateway.url, token=TOKEN), tmp_path / "identity")
        await remote.open(listen, ask)
        try:
            while not heard:
                await settle()
            assert "touch early" in heard[0]
            assert f"/approve {asked.id[:8]} allow-once" in heard[0]
            await h.desk.asked(subject="touch late")
            while len(heard) < 2:
                await settle()
            assert "touch late" in heard[1]
            words = {"sessionKey": "agent:main:main", "message": f"/approve {asked.id[:8]}", "idempotencyKey": "k"}
            await remote.call("chat.send", words)
            assert (await first).allowed
        finally:
            await remote.close()
