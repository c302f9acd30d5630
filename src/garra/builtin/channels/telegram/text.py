"""A message's words: Telegram counts entities in UTF-16 units, Python strings in characters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from garra.core.value import frozen


@frozen
class Me:
    """The bot, as getMe told. `topics`: its direct chats have topics; `reads_all`: privacy mode is off."""

    id: int
    username: str = ""
    name: str = ""
    topics: bool = False
    reads_all: bool = False


@frozen
class Words:
    """What a message says, and whether it names the bot."""

    text: str
    mentioned: bool = False


def words(message: Mapping[str, Any], me: Me) -> Words:
    """Text or caption: without the bot's own name where it opens the message or stands at a command, with the address
    behind a link that hides it, and with the origin of what was forwarded."""
    text = str(message.get("text") or message.get("caption") or "")
    entities = message.get("entities") or message.get("caption_entities") or ()
    raw = text.encode("utf-16-le", "surrogatepass")
    mentioned, changes = False, list[tuple[int, int, str]]()
    for entity, start, end in _spans(entities, len(raw)):
        said = raw[start:end].decode("utf-16-le", "replace")
        named, drop = _names(entity, said, me)
        mentioned = mentioned or named
        if drop and not raw[:start].decode("utf-16-le", "replace").strip():
            changes.append((end - 2 * drop, end, ""))
        elif entity.get("type") == "text_link" and said != entity.get("url"):
            changes.append((end, end, f" ({entity['url']})"))
    for start, end, put in sorted(changes, reverse=True):
        raw = raw[:start] + put.encode("utf-16-le", "replace") + raw[end:]
    kept = raw.decode("utf-16-le", "replace").lstrip() if changes else text
    return Words(_origin(message) + kept if kept else "", mentioned)


def _origin(message: Mapping[str, Any]) -> str:
    """Who said first what is forwarded: it is not the sender's own word, and never a command of theirs."""
    origin = message.get("forward_origin")
    if not origin:
        return ""
    user, chat = origin.get("sender_user") or {}, origin.get("sender_chat") or origin.get("chat") or {}
    name = user.get("first_name") or origin.get("sender_user_name") or chat.get("title") or "somebody"
    return f"[forwarded from {' '.join(str(name).split())[:64]}] "


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
