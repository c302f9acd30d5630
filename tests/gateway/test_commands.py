"""Commands typed in the gateway's own chat that reach further than its session."""

from __future__ import annotations

from pathlib import Path

from garra.gateway import commands
from garra.turns.commands import COMMANDS
from tests.gateway.house import Guest
from tests.gateway.test_chat import final, message, text
from tests.gateway.test_pairing import kept, knock


async def typed(guest: Guest, words: str, key: str) -> str:
    await guest.call("chat.send", message(words, key))
    return text(await final(guest, key))


def test_a_command_of_other_chats_is_known_here_too() -> None:
    wanted = {name for command in COMMANDS if command.name != "config" for name in (command.name, *command.aliases)}
    assert wanted <= set(commands.BY_NAME)


async def test_a_stranger_is_let_in_by_whoever_may_pair(tmp_path: Path) -> None:
    async with kept(tmp_path) as (gateway, pairing), gateway.guest() as guest:
        assert await typed(guest, "/pair", "p1") == "Nobody asks to be let in."
        request = await knock(pairing)
        assert (await typed(guest, "/pair", "p2")).endswith("\ntoy 42 Ann")
        assert "No request with this code" in await typed(guest, "/pair WRONG", "p3")
        assert await typed(guest, f"/pair {request.code.lower()}", "p4") == "42 may write to toy now."
        assert [person.sender for person in pairing.people("toy")] == ["42"]
        writer = gateway.guest(scopes=("operator.write",))
        async with writer as other:
            assert await typed(other, "/pair", "p5") == "missing scope: operator.pairing"
