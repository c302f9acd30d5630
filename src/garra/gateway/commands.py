"""Commands a person types in a chat, beginning with a slash. What is no known command goes to the model as it is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from hmac import compare_digest
from typing import Any

from garra.core.errors import Unavailable, UserError
from garra.core.value import frozen
from garra.core.weights import said
from garra.domains.access.pairing import Pairing
from garra.domains.sessions.changes import VERBOSE
from garra.domains.sessions.session import Session
from garra.gateway import kin, work
from garra.gateway.approvals import WHERE, register
from garra.gateway.compacting import summed
from garra.gateway.host import Host
from garra.gateway.method import ADMIN, APPROVALS, PAIRING, Caller
from garra.gateway.weighing import report
from garra.runs import chore
from garra.runs.compaction import Outcome
from garra.runs.renewal import wants_digest
from garra.turns import allstop, anew, approve, kinfolk, queueing, spent
from garra.turns.chores import QUEUES, UNDONE, compactions, used


@frozen
class Typed:
    """`/name argument`. `word` is the name as it was typed."""

    name: str
    argument: str
    word: str


Run = Callable[[Host, Session, Typed, Caller], Awaitable[str]]
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
    first, argument = [*text.strip().split(maxsplit=1), "", ""][:2]
    name = first[1:].lower()
    if not first.startswith("/") or name not in BY_NAME:
        return None
    command = BY_NAME[name]
    return Typed(command.name, argument, name) if command.takes or not argument else None


async def run(host: Host, session: Session, typed: Typed, caller: Caller, *, run_id: str) -> None:
    """Do it and tell the session's watchers what came of it, as the final words of run `run_id`."""
    host.show.tell(run_id, session.key, session.agent_id, await answer(host, session, typed, caller))


async def answer(host: Host, session: Session, typed: Typed, caller: Caller) -> str:
    """Do it; the words that say what came of it."""
    try:
        return await BY_NAME[typed.name].run(host, session, typed, caller)
    except UserError as refused:
        return refused.message


async def begun(host: Host, session: Session, typed: Typed, caller: Caller) -> str:
    """Where words stand behind `/new`: begin anew, and give the words that are to be the first of the new conversation.
    Empty, with nothing done, for every other command, and where it may not be: `run` says why.
    """
    rest = remainder(host, session, typed) if caller.may(ADMIN) else ""
    if rest:
        await _new(host, session, typed, caller)
    return rest


def remainder(host: Host, session: Session, typed: Typed) -> str:
    """The words behind `/new` that are a message; empty for every other command."""
    if typed.name not in anew.FAREWELL or anew.undoes(typed.name, typed.argument):
        return ""
    try:
        return _opening(host, session, typed)[1]
    except UserError:
        return ""


async def _help(host: Host, session: Session, typed: Typed, caller: Caller) -> str:
    lines = [f"/{each.name}{f' {each.takes}' if each.takes else ''}: {each.description}" for each in COMMANDS]
    return "\n".join(["Commands:", *lines])


async def _new(host: Host, session: Session, typed: Typed, caller: Caller) -> str:
    if anew.undoes(typed.name, typed.argument):
        return await _undo(host, session, typed, caller)
    caller.require(ADMIN)
    model, _ = _opening(host, session, typed)
    await host.runs.abort(session.key, None, "reset")
    await kin.stop_under(host, session.key)
    digest = wants_digest(host.config.session, by_hand=True)
    await host.sessions.reset(session.key, typed.name, digest=digest)
    if model:
        await host.sessions.patch(session.key, {"model": model})
    host.show.changed(session.key, session.agent_id, reason=typed.name)
    by = f" with {model}" if model else ""
    return f"A new conversation begins{by}. What was said before is kept and can be exported; /undo goes back to it."


def _opening(host: Host, session: Session, typed: Typed) -> tuple[str, str]:
    return anew.opening(typed.argument, session.agent_id, host.config, host.models)


async def _undo(host: Host, session: Session, typed: Typed, caller: Caller) -> str:
    await host.runs.abort(session.key, None, "reset")
    await kin.stop_under(host, session.key)
    await host.sessions.undo(session.key)
    host.show.changed(session.key, session.agent_id, reason="undo")
    return UNDONE


async def _stop(host: Host, session: Session, typed: Typed, caller: Caller) -> str:
    if allstop.meant(typed.argument):
        caller.require(ADMIN)
        return await allstop.stop(work.switch(host), typed.argument)
    runs = await host.runs.abort(session.key, None, "stop")
    await host.show.aborted(runs, "stop")
    if helpers := len(await kin.stop_under(host, session.key)):
        return f"Stopped, and {helpers} sub-agent{'s' if helpers > 1 else ''} too."
    return "Stopped." if runs else "Nothing is running here."


async def _subagents(host: Host, session: Session, typed: Typed, caller: Caller) -> str:
    return await kinfolk.words(kin.table(host), session.key, typed.argument)


async def _status(host: Host, session: Session, typed: Typed, caller: Caller) -> str:
    row = host.rows().row(session)
    model = f"{row['modelProvider']}/{row['model']}" if row["model"] else "no model"
    used, window = row.get("totalTokens"), row["contextTokens"]
    tokens = f"{used} of {window} tokens" if used and window else "nothing said yet"
    busy = "working" if row["hasActiveRun"] else "idle"
    times = compactions(session)
    summed = f" · {times}" if times else ""
    return f"Garra {host.version} · {model} · {tokens} · {busy}{summed}\nSession {session.key} ({session.session_id})"


async def _model(host: Host, session: Session, typed: Typed, caller: Caller) -> str:
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


async def _think(host: Host, session: Session, typed: Typed, caller: Caller) -> str:
    if not typed.argument:
        return f"Thinking: {session.thinking or host.rows().row(session)['thinkingDefault']}"
    level = None if typed.argument == "default" else typed.argument
    await host.sessions.patch(session.key, {"thinkingLevel": level})
    host.show.changed(session.key, session.agent_id, reason="patch")
    return f"Thinking set to {typed.argument}."


async def _whoami(host: Host, session: Session, typed: Typed, caller: Caller) -> str:
    each = ", ".join(sorted(scope.removeprefix("operator.") for scope in caller.scopes))
    rights = "everything" if ADMIN in caller.scopes else each
    return (
        f"You are an operator of this gateway, by {caller.client.id}; you may: {rights}.\n"
        "Your id on a platform, for the owner's lists, is what /whoami says in a chat there."
    )


async def _usage(host: Host, session: Session, typed: Typed, caller: Caller) -> str:
    known = work.ledger_or_none(host)
    return "\n".join((used(session), *await spent.lines(known, session.key, host.clock)))


async def _resume(host: Host, session: Session, typed: Typed, caller: Caller) -> str:
    caller.require(ADMIN)
    return await allstop.resume(work.switch(host))


async def _verbose(host: Host, session: Session, typed: Typed, caller: Caller) -> str:
    level = typed.argument.lower()
    if level and level not in VERBOSE:
        raise UserError(f"/verbose takes {', '.join(VERBOSE)}.")
    if level:
        session = await host.sessions.patch(session.key, {"verboseLevel": level})
        host.show.changed(session.key, session.agent_id, reason="patch")
    return f"Verbose: {session.verbose or 'off'}."


async def _queue(host: Host, session: Session, typed: Typed, caller: Caller) -> str:
    mode = typed.argument.lower()
    if mode and mode not in (*queueing.MODES, "default"):
        raise UserError(f"/queue takes {', '.join(QUEUES)} or default.")
    if mode:
        session = await host.sessions.patch(session.key, {"queueMode": None if mode == "default" else mode})
        host.show.changed(session.key, session.agent_id, reason="patch")
    now = queueing.settings(host.config, "webchat", session).mode
    return f"Queue: {now} ({QUEUES[now]})."


async def _compact(host: Host, session: Session, typed: Typed, caller: Caller) -> str:
    return chore.line(Outcome("cut", *await summed(host, session, typed.argument)))


async def _context(host: Host, session: Session, typed: Typed, caller: Caller) -> str:
    return said(await report(host, session), typed.argument)


async def _pair(host: Host, session: Session, typed: Typed, caller: Caller) -> str:
    caller.require(PAIRING)
    people = host.more.get("pairing")
    if not isinstance(people, Pairing):
        raise Unavailable("chats are not ready yet; try again in a moment")
    waiting = people.waiting()
    if not typed.argument or typed.argument.lower() in {"list", "pending"}:
        rows = [f"{each.channel} {each.sender} {each.name[:64]}".rstrip() for each in waiting]
        lines = "\n".join(rows)
        return f"Who asks to be let in (approve with /pair CODE):\n{lines}" if rows else "Nobody asks to be let in."
    code = typed.argument.split()[-1].upper()
    found = [each for each in waiting if compare_digest(each.code.encode(), code.encode())]
    if not found:
        raise UserError("No request with this code waits; a code is good for an hour. /pair lists who asks.")
    person = await people.approve_request(found[0].id)
    return f"{person.sender} may write to {person.channel} now."


async def _approve(host: Host, session: Session, typed: Typed, caller: Caller) -> str:
    caller.require(APPROVALS)
    if WHERE not in host.more:
        return "Nothing waits for an approval."
    asked = approve.parse(typed.argument, deny=typed.name == "deny")
    by = caller.client.id or "operator"
    key = session.key
    here = approve.Answering(register(host), host.clock, by, lambda each: each.question.session_key == key)
    return await approve.answer(here, asked)


async def _dreaming(host: Host, session: Session, typed: Typed, caller: Caller) -> str:
    found = host.more.get("dreams")
    if found is None:
        raise Unavailable("the gateway is only starting; try again in a moment", retryable=True)
    answer: str = await found.said(session.agent_id, typed.argument, owner=caller.may(ADMIN))
    return answer


async def _elsewhere(host: Host, session: Session, typed: Typed, caller: Caller) -> str:
    return f"/{typed.word} is for a chat on a platform; this is the gateway's own."


COMMANDS: tuple[Command, ...] = (
    Command("help", "show what can be typed", "status", _help, aliases=("commands",)),
    Command("status", "show model, tokens and whether something runs", "status", _status),
    Command("new", "begin a new conversation", "session", _new, takes="[model] [message]"),
    Command("reset", "begin anew; the old conversation is kept", "session", _new, takes="[undo | message]"),
    Command("stop", "stop what is running; all: everywhere", "session", _stop, takes="[all [pause]]",
            aliases=("abort",)),
    Command("resume", "let work go on after /stop all pause", "management", _resume),
    Command("subagents", "who works for this conversation", "status", _subagents, takes="[list | log | info | stop]"),
    Command("model", "show or set this session's model", "options", _model, takes="[provider/model | default]"),
    Command("think", "show or set how much the model thinks", "options", _think, takes="[level | default]",
            aliases=("thinking", "t")),
    Command("verbose", "show or set whether tools are shown at work", "options", _verbose, takes="[off | on | full]",
            aliases=("v",)),
    Command("queue", "show or set what becomes of messages while the agent works", "options", _queue,
            takes="[mode | default]"),
    Command("whoami", "who you are here and what you may do", "status", _whoami, aliases=("id",)),
    Command("usage", "tokens of this conversation, of today and of this month", "status", _usage),
    Command("compact", "sum up the conversation so far", "session", _compact, takes="[what matters most]"),
    Command("context", "what fills the model's window", "status", _context, takes="[list | detail | map | json]"),
    Command("dreaming", "whether notes are looked through at night", "options", _dreaming, takes="[status | on | off]"),
    Command("undo", "go back to the conversation before the last reset", "session", _undo),
    Command("pair", "who asks to be let in; let one in", "management", _pair, takes="[code]"),
    Command("approve", "allow what an agent asks", "management", _approve, takes="[id] [answer]"),
    Command("deny", "forbid what an agent asks", "management", _approve, takes="[id]"),
)  # fmt: skip
ELSEWHERE = tuple(
    Command(name, "for chats on a platform", "options", _elsewhere, takes="[value]", aliases=aliases)
    for name, aliases in (("activation", ()), ("reply", ()), ("bot-me", ("bot_me", "botme")))
)
"""Known and not offered: typed here they are said to have no meaning, instead of being asked of the model."""

BY_NAME = {name: command for command in (*COMMANDS, *ELSEWHERE) for name in (command.name, *command.aliases)}


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
