"""Commands a person types in a chat, beginning with a slash. What is no known command goes to the model as it is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from garra.core.errors import UserError
from garra.core.value import frozen
from garra.domains.sessions.session import Session
from garra.gateway.host import Host


@frozen
class Typed:
    """`/name argument`."""

    name: str
    argument: str


Run = Callable[[Host, Session, Typed], Awaitable[str]]
"""Does it; the text is what the person reads. Raises UserError with a line that is shown instead."""


@frozen
class Command:
    """One command. `takes` names its argument for the help, empty for none."""

    name: str
    description: str
    category: str
    run: Run
    takes: str = ""
    aliases: tuple[str, ...] = ()


def parse(text: str) -> Typed | None:
    """The command that `text` is, if any."""
    first, _, rest = text.strip().partition(" ")
    name = first[1:].partition("\n")[0].lower()
    if not first.startswith("/") or name not in BY_NAME or "\n" in first:
        return None
    command = BY_NAME[name]
    argument = rest.strip()
    return Typed(command.name, argument) if command.takes or not argument else None


async def run(host: Host, session: Session, typed: Typed, run_id: str) -> None:
    """Do it and tell the session's watchers what came of it, as the final words of run `run_id`."""
    try:
        text = await BY_NAME[typed.name].run(host, session, typed)
    except UserError as refused:
        text = refused.message
    host.show.tell(run_id, session.key, session.agent_id, text)


async def _help(host: Host, session: Session, typed: Typed) -> str:
    lines = [f"/{each.name}{f' {each.takes}' if each.takes else ''}: {each.description}" for each in COMMANDS]
    return "\n".join(["Commands:", *lines])


async def _new(host: Host, session: Session, typed: Typed) -> str:
    await host.runs.abort(session.key, None, "reset")
    await host.sessions.reset(session.key, typed.name)
    host.show.changed(session.key, session.agent_id, reason=typed.name)
    return "A new conversation begins. What was said before is kept and can be exported."


async def _stop(host: Host, session: Session, typed: Typed) -> str:
    runs = await host.runs.abort(session.key, None, "stop")
    await host.show.aborted(runs, "stop")
    return "Stopped." if runs else "Nothing is running here."


async def _status(host: Host, session: Session, typed: Typed) -> str:
    row = host.rows().row(session)
    model = f"{row['modelProvider']}/{row['model']}" if row["model"] else "no model"
    used, window = row.get("totalTokens"), row["contextTokens"]
    tokens = f"{used} of {window} tokens" if used and window else "nothing said yet"
    busy = "working" if row["hasActiveRun"] else "idle"
    return f"Garra {host.version} · {model} · {tokens} · {busy}\nSession {session.key} ({session.session_id})"


async def _model(host: Host, session: Session, typed: Typed) -> str:
    if not typed.argument:
        row = host.rows().row(session)
        return f"Model: {row['modelProvider']}/{row['model']}" if row["model"] else "No model is set."
    if typed.argument == "default":
        await host.sessions.patch(session.key, {"model": None})
        return "The configured model is used again."
    model = host.models.resolve(typed.argument, session.agent_id)
    await host.sessions.patch(session.key, {"model": model.ref})
    host.show.changed(session.key, session.agent_id, reason="patch")
    return f"Model set to {model.ref}."


async def _think(host: Host, session: Session, typed: Typed) -> str:
    if not typed.argument:
        return f"Thinking: {session.thinking or host.rows().row(session)['thinkingDefault']}"
    level = None if typed.argument == "default" else typed.argument
    await host.sessions.patch(session.key, {"thinkingLevel": level})
    host.show.changed(session.key, session.agent_id, reason="patch")
    return f"Thinking set to {typed.argument}."


COMMANDS: tuple[Command, ...] = (
    Command("help", "show what can be typed", "status", _help, aliases=("commands",)),
    Command("status", "show model, tokens and whether something runs", "status", _status),
    Command("new", "begin a new conversation", "session", _new),
    Command("reset", "begin anew; the old conversation is kept", "session", _new),
    Command("stop", "stop what is running", "session", _stop, aliases=("abort",)),
    Command("model", "show or set this session's model", "options", _model, takes="[provider/model | default]"),
    Command("think", "show or set how much the model thinks", "options", _think, takes="[level | default]"),
)
BY_NAME = {name: command for command in COMMANDS for name in (command.name, *command.aliases)}


def listed(command: Command, *, args: bool = True) -> dict[str, Any]:
    """A command as `commands.list` tells of it."""
    row: dict[str, Any] = {
        "name": command.name,
        "nativeName": command.name,
        "textAliases": [f"/{name}" for name in (command.name, *command.aliases)],
        "description": command.description,
        "category": command.category,
        "source": "native",
        "scope": "both",
        "acceptsArgs": bool(command.takes),
    }
    if args and command.takes:
        row["args"] = [{"name": "value", "description": command.takes, "type": "string"}]
    return row
