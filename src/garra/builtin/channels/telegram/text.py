"""A message's words: Telegram counts entities in UTF-16 units, Python strings in characters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Me:
    """The bot, as getMe told. `topics`: its direct chats have topics; `reads_all`: privacy mode is off."""

    id: int
    username: str = ""
    name: str = ""
    topics: bool = False
    reads_all: bool = False


@dataclass(frozen=True, slots=True)
class Words:
    """What a message says, and whether it names the bot."""

    text: str
    mentioned: bool = False


def words(message: Mapping[str, Any], me: Me) -> Words:
    """Text or caption, without the bot's own name where it opens the message or stands at a command."""
    text = str(message.get("text") or message.get("caption") or "")
    entities = message.get("entities") or message.get("caption_entities") or ()
    if not text or not entities:
        return Words(text)
    raw = text.encode("utf-16-le", "surrogatepass")
    mentioned, cut = False, (0, 0)
    for entity, start, end in _spans(entities, len(raw)):
        said = raw[start:end].decode("utf-16-le", "replace")
        named, drop = _names(entity, said, me)
        mentioned = mentioned or named
        if drop and not raw[:start].decode("utf-16-le", "replace").strip():
            cut = (end - 2 * drop, end)
    kept = raw[: cut[0]] + raw[cut[1] :]
    return Words(kept.decode("utf-16-le", "replace").lstrip() if cut[1] else text, mentioned)


def _spans(entities: Any, size: int) -> Iterator[tuple[Mapping[str, Any], int, int]]:
    """Entities with the bytes they cover; what lies outside the text is passed over."""
    for entity in entities:
        start = 2 * int(entity["offset"])
        end = start + 2 * int(entity["length"])
        if 0 <= start < end <= size:
            yield entity, start, end


def _names(entity: Mapping[str, Any], said: str, me: Me) -> tuple[bool, int]:
    """Whether an entity addresses the bot, and how many of its last UTF-16 units are only its name."""
    own = f"@{me.username}".lower()
    match entity.get("type"):
        case "mention":
            return (True, len(said)) if said.lower() == own else (False, 0)
        case "text_mention":
            named = (entity.get("user") or {}).get("id") == me.id
            return named, len(said.encode("utf-16-le")) // 2 if named else 0
        case "bot_command":
            _, at, name = said.partition("@")
            if not at:
                return entity.get("offset") == 0, 0
            named = f"@{name}".lower() == own
            return named, len(own) if named else 0
        case _:
            return False, 0


def units(text: str) -> int:
    """How long Telegram says it is."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
