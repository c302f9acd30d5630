"""Active memory: before a turn, what the agent remembers of it is looked up and said behind the history.

It searches and asks no model: a turn waits for one look into the index. What it finds is told as data with where it
stands; what came into memory from outside keeps its mark, so that the turn is marked too.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

from garra.builtin.context.active_memory.settings import Settings, read
from garra.core.errors import UserError
from garra.core.messages import Assistant, Message, User
from garra.sdk.context import Addition, Asked, Assembled, Chat, Compacted, Pages, Recall, Recalled
from garra.sdk.ports import Clock

HITS: Final = 3
"""So many memories are told at the most."""
QUERY: Final = 800
"""Characters that are searched for, the newest last."""
KEPT: Final = 64
"""So many answers of the index are kept."""

Key = tuple[str, str, str]


@cache
def _past() -> re.Pattern[str]:
    """Words that ask for what was before, in some languages."""
    return re.compile(
        r"\b(?:remember|recall|remind|last (?:time|week|month|year)|earlier|yesterday|before|previous(?:ly)?|again"
        r"|did (?:i|we|you)|have (?:i|we|you)|(?:what|which|who|when|where)(?:'s| is| was| were) my|favou?rite|prefer"
        r"|erinner\w*|neulich|gestern|letzte[nsrm]?|recuerda\w*|ayer|souviens?|hier)\b"
        r"|记得|记住|上次|之前|以前|昨天|说过|我的|提过|覚えて|前回|昨日|기억|지난",
        re.IGNORECASE,
    )


class ActiveMemory:
    """The engine. Everything that was said is sent; what is remembered comes behind it."""

    id = "active-memory"
    owns_compaction = False

    def __init__(self, settings: Mapping[str, Any], *, recall: Recall, clock: Clock) -> None:
        self._settings: Settings = read(settings)
        self._recall, self._clock = recall, clock
        self._kept: dict[Key, tuple[int, tuple[Recalled, ...]]] = {}
        self._told: dict[str, tuple[str, tuple[Addition, ...]]] = {}
        self._timeouts = 0
        self._rests_until = 0

    async def bootstrap(self, chat: Chat, messages: tuple[Message, ...]) -> None:
        """The index reads the stored conversations itself."""

    async def ingest(self, chat: Chat, message: Message) -> None:
        """The same."""

    async def assemble(self, chat: Chat, asked: Asked) -> Assembled:
        settings = self._settings
        if not asked.interactive or not asked.said.strip():
            return Assembled(asked.messages)
        if not settings.serves(chat.agent_id, chat.kind, chat.place):
            return Assembled(asked.messages)
        words = _query(asked, settings)
        told = self._told.get(chat.session_id)
        if told is None or asked.first or told[0] != words:
            told = self._told[chat.session_id] = (words, await self._additions(chat, asked, words))
            if len(self._told) > KEPT:
                self._told.pop(next(iter(self._told)))
        return Assembled(asked.messages, told[1])

    async def compact(self, chat: Chat, asked: Asked, pages: Pages) -> Compacted | None:
        return None

    async def maintain(self, chat: Chat, pages: Pages) -> None:
        """Nothing is changed."""

    async def _additions(self, chat: Chat, asked: Asked, words: str) -> tuple[Addition, ...]:
        least = self._settings.least(past=_past().search(asked.said) is not None)
        found = [hit for hit in await self._found(chat, words) if hit.score >= least and not _known(hit, asked)]
        return tuple(self._addition(hit) for hit in found[:HITS])

    def _addition(self, hit: Recalled) -> Addition:
        text, most = " ".join(hit.text.split()), self._settings.most
        text = text if len(text) <= most else text[: most - 1].rstrip() + "…"
        return Addition("Remembered, perhaps of use here", text, f"{hit.path}#L{hit.line}", hit.marks)

    async def _found(self, chat: Chat, words: str) -> tuple[Recalled, ...]:
        """What the index has; nothing where it cannot be searched or took too long."""
        now, key = self._clock.now_ms(), (str(chat.agent_id), chat.owner, words)
        kept = self._kept.pop(key, None)
        if kept is None or now - kept[0] > self._settings.cache_ms:
            if now < self._rests_until:
                return ()
            found = await self._searched(chat, words)
            if found is None:
                return ()
            kept = (now, found)
        self._kept[key] = kept
        if len(self._kept) > KEPT:
            self._kept.pop(next(iter(self._kept)))
        return kept[1]

    async def _searched(self, chat: Chat, words: str) -> tuple[Recalled, ...] | None:
        try:
            async with asyncio.timeout(self._settings.timeout_ms / 1000):
                found = await self._recall.search(words, agent_id=chat.agent_id, owner=chat.owner, limit=2 * HITS)
        except TimeoutError:
            self._timeouts += 1
            if self._timeouts >= self._settings.timeouts:
                self._timeouts = 0
                self._rests_until = self._clock.now_ms() + int(self._settings.cooldown_ms)
            return None
        except UserError:
            return None
        self._timeouts = 0
        return found


def _known(hit: Recalled, asked: Asked) -> bool:
    """Whether the conversation has it in its newest words anyway."""
    text = hit.text.strip()
    return any(text in message.text for message in asked.messages[-8:])


def _query(asked: Asked, settings: Settings) -> str:
    """What is searched for: the newest words, with some of those before where that is wanted."""
    if settings.query == "message":
        return asked.said[-QUERY:]
    parts = _recent(asked.messages, settings) if settings.query == "recent" else _all(asked.messages)
    return "\n".join(reversed([asked.said, *parts]))[-QUERY:]


def _recent(messages: tuple[Message, ...], settings: Settings) -> list[str]:
    """Words of the turns before, the newest first."""
    users, answers, out = settings.user_turns, settings.answer_turns, []
    for message in _before(messages):
        if isinstance(message, User) and users:
            users -= 1
            out.append(message.text[: settings.user_chars])
        elif isinstance(message, Assistant) and answers and message.text.strip():
            answers -= 1
            out.append(message.text[: settings.answer_chars])
        if not users and not answers:
            break
    return out


def _all(messages: tuple[Message, ...]) -> list[str]:
    """The words of both, as many as can be searched for, the newest first."""
    out: list[str] = []
    for message in _before(messages):
        if isinstance(message, User | Assistant) and message.text.strip():
            out.append(message.text)
        if sum(map(len, out)) > QUERY:
            break
    return out


def _before(messages: tuple[Message, ...]) -> Iterator[Message]:
    """What was said before the newest words of a person, the newest first."""
    at = next((index for index in range(len(messages) - 1, -1, -1) if isinstance(messages[index], User)), 0)
    return iter(messages[at - 1 :: -1] if at else ())
