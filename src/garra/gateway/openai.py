"""What a caller of the OpenAI interfaces asks for, as one turn of one of our agents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from garra.core.errors import NotFound, UserError
from garra.core.ids import AgentId, RunId, SessionKey
from garra.core.keys import quoted
from garra.core.messages import Image, Usage
from garra.core.value import frozen
from garra.gateway.host import Host
from garra.gateway.http_io import Rejected, fault
from garra.gateway.inbound import image, meta_of
from garra.gateway.method import WRITE, inside
from garra.runs.run import Run, Turn

NAMES = ("openclaw", "garra")
PICTURES = 8


@frozen
class Line:
    """One message of the caller's own history."""

    role: str
    text: str
    images: tuple[Image, ...] = ()


@frozen
class Ask:
    """One request. `system` is what the caller tells the agent beside its own instructions."""

    agent_id: str
    session_key: SessionKey
    text: str
    images: tuple[Image, ...] = ()
    system: str = ""
    model: str | None = None


def agent_of(host: Host, model: str | None, headers: Mapping[str, str]) -> str:
    """The agent that `model` (`openclaw`, `openclaw/default`, `openclaw/ID`) or the header names. Raises Rejected."""
    wanted = headers.get("x-openclaw-agent-id", "").strip()
    name = (model or NAMES[0]).strip()
    head, _, tail = name.replace(":", "/", 1).partition("/")
    if head.lower() not in NAMES:
        raise Rejected(fault("Invalid `model`. Use `openclaw` or `openclaw/<agentId>`."))
    chosen = wanted or ("" if tail.lower() in ("", "default") else tail)
    try:
        return host.agent(chosen or None)
    except NotFound:
        raise Rejected(fault(f"Unknown agent '{chosen[:64]}'.")) from None


def session_of(host: Host, agent_id: str, headers: Mapping[str, str], *, user: str | None, family: str) -> SessionKey:
    """The session that the header names, the one of this `user`, or a fresh one. Raises Rejected."""
    named = headers.get("x-openclaw-session-key", "").strip()
    try:
        if named:
            return host.key(named, agent_id)
        name = f"{family}-user:{quoted(user)}" if user else f"{family}:{host.new_id()}"
        return host.key(f"agent:{agent_id}:{name}")
    except UserError as wrong:
        raise Rejected(fault(wrong.message)) from None


def prompt(lines: Sequence[Line]) -> tuple[str, str, tuple[Image, ...]]:
    """(system words, text, pictures) of a conversation: what was said before is told, then what is said now.

    Raises Rejected when nobody says anything.
    """
    system = "\n\n".join(line.text for line in lines if line.role in ("system", "developer") and line.text.strip())
    talk = [line for line in lines if line.role not in ("system", "developer")]
    last = next((at for at in range(len(talk) - 1, -1, -1) if talk[at].role in ("user", "tool")), None)
    if last is None or not (talk[last].text.strip() or talk[last].images):
        raise Rejected(fault("Missing user message in `messages`."))
    before = [line for line in talk[:last] if line.text.strip()]
    if not before:
        return system, talk[last].text, talk[last].images
    told = "\n".join(f"{line.role.capitalize()}: {line.text}" for line in before)
    now = f"[Chat messages since your last reply - for context]\n{told}\n\n[Current message - respond to this]\n"
    return system, f"{now}{talk[last].role.capitalize()}: {talk[last].text}", talk[last].images


def content(body: Any) -> tuple[str, tuple[Image, ...]]:
    """(words, pictures) of a message's content in either interface's form. Raises Rejected for what cannot be taken."""
    if isinstance(body, str):
        return body, ()
    if not isinstance(body, list):
        return "", ()
    words = [part["text"] for part in body if _has(part, "text")]
    pictures = tuple(_pictures(body))
    if len(pictures) > PICTURES:
        raise Rejected(fault(f"Too many images: {len(pictures)}, at most {PICTURES}"))
    return "\n".join(words), pictures


def _has(part: Any, key: str) -> bool:
    return isinstance(part, dict) and isinstance(part.get(key), str)


def _pictures(body: Iterable[Any]) -> Iterable[Image]:
    for part in body:
        if not isinstance(part, dict) or part.get("type") not in ("image_url", "input_image"):
            continue
        yield _picture(part)


def _picture(part: Mapping[str, Any]) -> Image:
    source = part.get("source")
    url = part.get("image_url")
    if isinstance(url, dict):
        url = url.get("url")
    try:
        if isinstance(source, dict) and source.get("type") == "base64":
            return image(str(source.get("data", "")), str(source.get("media_type", "")))
        if isinstance(url, str) and url.startswith("data:"):
            return image(url)
    except UserError as wrong:
        raise Rejected(fault(f"Invalid image: {wrong.message}")) from None
    raise Rejected(fault("Images must be sent as data: URLs; addresses are not fetched."))


async def start(host: Host, ask: Ask, run_id: str) -> Run:
    """Submit it. Raises Rejected for what cannot be run at all."""
    try:
        model = host.models.resolve(ask.model, ask.agent_id).ref if ask.model else None
        await host.ensure(ask.session_key)
        return await host.runs.submit(
            Turn(
                RunId(run_id),
                ask.session_key,
                AgentId(ask.agent_id),
                ask.text,
                images=ask.images,
                model=model,
                queue="followup",
                meta=meta_of(run_id, inside((WRITE,), "openai-http")),
                extra_system=ask.system,
            )
        )
    except UserError as wrong:
        raise Rejected(fault(wrong.message)) from None


def counted(usage: Usage) -> tuple[int, int]:
    """(tokens read, tokens written)."""
    return usage.input + usage.cache_read + usage.cache_write, usage.output
