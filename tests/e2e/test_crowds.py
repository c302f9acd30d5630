"""The running program: two agents answer one group, one after the other, in two rounds, under their names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from garra.testing.model_server import Say
from garra.testing.telegram import TelegramServer
from tests.e2e.outside import until
from tests.e2e.resident import resident, strict_model

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(60)]

FRIEND, GROUP = 1001, -100123


def settings(telegram: TelegramServer) -> dict[str, Any]:
    bot = {
        "botToken": telegram.token,
        "apiRoot": telegram.url,
        "allowFrom": [FRIEND],
        "groups": {str(GROUP): {"requireMention": False, "allowFrom": [FRIEND]}},
    }
    return {
        "channels": {"telegram": bot},
        "agents": {
            "defaults": {"model": {"primary": "fake/fake"}},
            "list": [{"id": "main"}, {"id": "writer", "name": "Writer"}, {"id": "reviewer", "name": "Reviewer"}],
        },
        "broadcast": {
            "strategy": "sequential",
            f"telegram:{GROUP}": {"agents": ["writer", "reviewer"], "maxRounds": 2, "maxTurns": 4},
        },
        "messages": {"inbound": {"debounceMs": 0}},
    }


async def test_agents_of_one_group_answer_in_turn_and_hear_each_other(tmp_path: Path) -> None:
    async with (
        strict_model() as model,
        TelegramServer() as telegram,
        resident(tmp_path, model.url, settings(telegram)),
    ):
        model.then(Say("A draft."), Say("It is short."), Say("A longer draft."), Say("NO_REPLY"))
        telegram.say(FRIEND, "write me something", chat={"id": GROUP, "type": "supergroup", "title": "Room"})
        await until(lambda: len(telegram.shown(GROUP)) == 3)
        assert telegram.shown(GROUP) == [
            "<b>Writer:</b> A draft.",
            "<b>Reviewer:</b> It is short.",
            "<b>Writer:</b> A longer draft.",
        ]
        await until(lambda: len(model.requests) == 4)
        assert "Reviewer: It is short." in model.requests[2].raw.decode()
        assert "It is short." not in model.requests[1].raw.decode()
        telegram.say(FRIEND, "@writer alone", chat={"id": GROUP, "type": "supergroup", "title": "Room"})
        model.then(Say("Just me."), Say("NO_REPLY"))
        await until(lambda: "<b>Writer:</b> Just me." in telegram.shown(GROUP))
