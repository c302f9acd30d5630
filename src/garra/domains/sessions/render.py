"""A transcript as Markdown, for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from garra.core import transcript
from garra.core.messages import Assistant, Image, Message, Part, Text, Thinking, ToolCall, ToolResult, User
from garra.domains.sessions.session import Session

LONGEST = 20_000
"""Characters of one tool's output that are shown."""


def markdown(session: Session, messages: Iterable[Message]) -> str:
    title = session.display_name or session.label or session.title or session.key
    head = (
        f"# {title}\n\n- Session: `{session.key}`\n- Transcript: `{session.session_id}`\n"
        f"- Begun: {transcript.stamp(session.started_at)}\n"
    )
    return "\n".join([head, *(part for message in messages for part in _shown(message))])


def _shown(message: Message) -> Iterator[str]:
    when = transcript.stamp(message.timestamp)
    match message:
        case User():
            yield f"## User · {when}\n"
        case Assistant():
            yield f"## Assistant · {message.model or 'unknown model'} · {when}\n"
        case ToolResult():
            failed = " failed" if message.is_error else ""
            yield f"### Result of `{message.name}`{failed}\n"
            yield f"{_fenced(message.text)}\n"
            return
    for part in message.content:
        yield f"{_part(part)}\n"
    if isinstance(message, Assistant) and message.stop in ("aborted", "error"):
        yield f"*({message.error or message.stop})*\n"


def _part(part: Part) -> str:
    match part:
        case Text():
            return part.text
        case Thinking():
            return "> " + part.text.replace("\n", "\n> ")
        case Image():
            return f"*(picture, {part.media_type})*"
        case ToolCall():
            arguments = msgspec.json.format(msgspec.json.encode(part.arguments), indent=2).decode()
            return f"### Calls `{part.name}`\n\n{_fenced(arguments, 'json')}"


def _fenced(text: str, language: str = "") -> str:
    """A code block whose fence is longer than any in `text`."""
    shown = text if len(text) <= LONGEST else f"{text[:LONGEST]}\n… {len(text) - LONGEST} characters more"
    fence = "```"
    while fence in shown:
        fence += "`"
    return f"{fence}{language}\n{shown}\n{fence}"
