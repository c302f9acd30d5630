"""Several agents on one message, one after the other or in rounds. A restart goes through the same rounds again: what
was answered is answered, what had begun goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from garra.config.sections import Config
from garra.core.crowds import Crowd, Said, digest, following
from garra.core.ids import AgentId
from garra.turns.answers import KEPT, Answers, End, Going
from garra.turns.mentions import name

Begin = Callable[[AgentId, int, str], Awaitable[Going | End]]
"""Begins an agent's turn of a round, with the words it is asked in it (in the first round: none); or says how that turn
ended, where an earlier process came to its end.
"""

OVER: Final = frozenset((KEPT, "stopped", "interrupted"))
"""Ends after which nobody else is asked."""


class Crowds:
    """Leads the agents of one message through their rounds."""

    def __init__(self, answers: Answers, config: Callable[[], Config]) -> None:
        self._answers, self._config = answers, config

    async def talk(self, crowd: Crowd, called: Sequence[AgentId], begin: Begin) -> str:
        """Until nobody has more to say. How it ended, in a word: KEPT where the next start goes on with it."""
        asked: Sequence[tuple[AgentId, str]] = [(agent, "") for agent in called]
        left, why = crowd.turns, "answered"
        for number in range(1, crowd.rounds + 1):
            ends = await self._round(asked, number, begin, at_once=crowd.parallel)
            why = next((end.why for end in ends if end.why in OVER), "answered")
            left -= len(asked)
            if why in OVER:
                break
            config = self._config()
            said = [Said(agent, name(config, agent), end.text) for (agent, _), end in zip(asked, ends, strict=True)]
            asked = [(agent, digest(said, agent)) for agent in following(crowd, said, left)]
            if not asked:
                break
        return why

    async def _round(
        self, asked: Sequence[tuple[AgentId, str]], number: int, begin: Begin, *, at_once: bool
    ) -> list[End]:
        """How each agent's turn of this round ended; one after the other, those after an end of all are not begun."""
        if at_once:
            begun = [await begin(agent, number, words) for agent, words in asked]
            return await asyncio.gather(*map(self._end, begun))
        ends: list[End] = []
        for agent, words in asked:
            over = next((end for end in ends if end.why in OVER), None)
            ends.append(over or await self._end(await begin(agent, number, words)))
        return ends

    async def _end(self, begun: Going | End) -> End:
        return begun if isinstance(begun, End) else await self._answers.one(begun)
