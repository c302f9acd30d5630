"""What each command does. Every one answers with words; what it cannot do it says."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from garra.core import taint, thinking, weights
from garra.core.errors import NotFound, UserError
from garra.core.ids import AgentId, SessionKey
from garra.core.routing import Route
from garra.core.value import frozen
from garra.domains.sessions.changes import VERBOSE
from garra.domains.sessions.session import Session
from garra.runs import notices
from garra.runs.renewal import wants_digest
from garra.sdk.model import Level
from garra.turns import allstop, approve, commands, kinfolk, queueing, spent
from garra.turns.anew import FAREWELL, LISTED, allow, opening, undoes
from garra.turns.ask import Spoken
from garra.turns.commands import Given
from garra.turns.parts import Ports


@frozen
class Desk:
    """One command with everything it may touch: the session of the chat it was given in, and no other."""

    ports: Ports
    spoken: Spoken
    given: Given

    @property
    def route(self) -> Route:
        return self.spoken.routes[0]

    @property
    def key(self) -> SessionKey:
        return self.route.key

    @property
    def agent(self) -> AgentId:
        return self.route.agent

    @property
    def shared(self) -> bool:
        """Whether others use this session too."""
        return not self.spoken.admitted.direct or self.route.scope == "main"

    @property
    def word(self) -> str:
        """The first word behind the command, in lower case."""
        return self.given.words.split(maxsplit=1)[0].lower() if self.given.words else ""

    @property
    def rest(self) -> str:
        """What is to be answered once the command is done: only /new takes such words."""
        return self.anew[1]

    @property
    def anew(self) -> tuple[str, str]:
        """The model and the first message with which a new conversation is asked for, both empty without."""
        name = self.given.command.name
        if name not in FAREWELL or undoes(name, self.given.words):
            return "", ""
        return opening(self.given.words, self.agent, self.ports.config(), self.ports.models)

    async def session(self) -> Session | None:
        return await self.ports.sessions.get(self.key)

    async def change(self, changes: Mapping[str, Any]) -> None:
        for route in self.spoken.routes:
            await self.ports.sessions.patch(route.key, changes)


async def carry_out(desk: Desk) -> str:
    """Do it; the words for the chat. Raises UserError with such words."""
    return await CHORES[desk.given.command.name](desk)


def inline(desk: Desk) -> Spoken | None:
    """`/think high What is …`: the words behind the value are a message it holds for. Raises UserError.

    None when the command stands alone.
    """
    words = desk.given.words.split(maxsplit=1)
    if not desk.given.command.inline or len(words) < 2:
        return None
    if desk.given.command.name == "model":
        model = desk.ports.models.resolve(words[0], desk.agent)
        return replace(desk.spoken, words=words[1], model=model.ref)
    return replace(desk.spoken, words=words[1], thinking=_level(words[0]))


async def _help(desk: Desk) -> str:
    group = desk.spoken.judged.group
    rows = commands.listed(desk.spoken.admitted, group.command_level if group else "all")
    lines = "\n".join(f"{row.usage} - {row.about}" for row in rows)
    return f"Say anything, and the agent answers. Commands:\n{lines}"


async def _status(desk: Desk) -> str:
    ports, session = desk.ports, await desk.session()
    running = ports.runs.active(desk.key)
    waiting = sum(run.session_key == desk.key and run.state == "queued" for run in ports.runs.every())
    waits = queueing.settings(ports.config(), desk.spoken.event.address.channel, session)
    doing = "at rest"
    if running is not None:
        doing = f"at work for {max(0, ports.clock.now_ms() - running.started_at) // 1000} s"
    lines = [
        f"Garra {ports.version}".rstrip(),
        f"Agent: {desk.agent} ({doing}{f', {waiting} waiting' if waiting else ''})",
        f"Model: {_model(desk, session)}",
        f"Thinking: {(session.thinking if session else None) or 'as set'}, queue: {waits.mode}",
        f"Conversation: {desk.key}",
        _context(session),
        compactions(session),
        f"Read from outside: {read}" if session and (read := taint.told(session.extra.get(taint.ROW))) else "",
    ]
    group = desk.spoken.judged.group
    if group is not None:
        activation = (session.extra.get("groupActivation") if session else None) or (
            "mention" if group.room.mention else "always"
        )
        lines.append(f"In this group: {activation}")
    return "\n".join(line for line in lines if line)


def _model(desk: Desk, session: Session | None) -> str:
    try:
        chosen = desk.ports.models.resolve(session.override if session else None, desk.agent).ref
        return f"{chosen}{notices.told(session.extra, chosen) if session else ''}"
    except NotFound as error:
        return f"none ({error.message})"


def _context(session: Session | None) -> str:
    if session is None or session.totals is None:
        return ""
    window = f" of {session.context_tokens:,}" if session.context_tokens else ""
    return f"Context: {session.totals.total:,}{window} tokens"


def compactions(session: Session | None) -> str:
    """How often a conversation was summed up; empty for never."""
    count = session.extra.get("compactionCount") if session else None
    return f"🧹 Compactions: {count}" if isinstance(count, int) and count > 0 else ""


async def _whoami(desk: Desk) -> str:
    event, who = desk.spoken.event, desk.spoken.admitted
    role = "owner" if who.owner else "named" if who.named else "guest"
    return (
        f"You are {event.sender.id} on {event.address.channel} "
        f'(for the owner\'s lists: "{event.address.channel}:{event.sender.id}"); here you are {role}.'
    )


async def _bot_me(desk: Desk) -> str:
    return f"Your id here is {desk.spoken.event.sender.id}"


async def _usage(desk: Desk) -> str:
    return "\n".join((used(await desk.session()), *await spent.lines(desk.ports.ledger, desk.key, desk.ports.clock)))


def used(session: Session | None) -> str:
    """What `/usage` says."""
    totals = session.totals if session else None
    if totals is None:
        return "No tokens were used in this conversation yet."
    cost = f", about ${totals.cost:.4f}" if totals.cost else ""
    read = totals.input + totals.cache_read
    cached = f"{totals.cache_read:,} from the cache"
    return f"The last answer read {read:,} tokens ({cached}) and wrote {totals.output:,}{cost}."


async def _stop(desk: Desk) -> str:
    """Runs, what waits for them, and their programs, those in the background too."""
    if allstop.meant(desk.given.words):
        if not desk.spoken.admitted.owner:
            raise UserError("Only an owner may stop everything; /stop stops this conversation.")
        return await allstop.stop(desk.ports.switch, desk.given.words)
    ended, helpers = 0, 0
    for route in desk.spoken.routes:
        ended += len(await desk.ports.runs.abort(route.key, reason="stop"))
        helpers += await desk.ports.halt(route.key)
    if helpers:
        return f"Stopped, and {helpers} sub-agent{'s' if helpers > 1 else ''} too."
    return "Stopped." if ended else "Nothing was running."


async def _subagents(desk: Desk) -> str:
    if desk.ports.subagents is None:
        raise UserError("There are no sub-agents here.")
    return await kinfolk.words(desk.ports.subagents, desk.key, desk.given.words)


async def _new(desk: Desk) -> str:
    if undoes(desk.given.command.name, desk.given.words):
        return await _undo(desk)
    model, _ = desk.anew
    digest = wants_digest(desk.ports.config().session, by_hand=True)
    for route in desk.spoken.routes:
        await desk.ports.runs.abort(route.key, reason="stop")
        await desk.ports.halt(route.key)
        await desk.ports.sessions.reset(
            route.key, desk.given.command.name, cwd=desk.ports.workspace(route.agent), digest=digest
        )
    if model:
        await desk.change({"model": model})
    by = f" with {model}" if model else ""
    return f"A new conversation has begun{by}; the one before is kept. /undo goes back to it."


UNDONE: Final = "The conversation before goes on. /undo once more goes back to the one that was just left."


async def _undo(desk: Desk) -> str:
    for route in desk.spoken.routes:
        await desk.ports.runs.abort(route.key, reason="stop")
        await desk.ports.halt(route.key)
        await desk.ports.sessions.undo(route.key)
    return UNDONE


async def _queue(desk: Desk) -> str:
    ports = desk.ports
    words = desk.given.words.split()
    if words:
        await desk.change(queueing.options(words))
    now = queueing.settings(ports.config(), desk.spoken.event.address.channel, await desk.session())
    about = QUEUES[now.mode]
    return f"Queue: {now.mode} ({about}); debounce {now.debounce_ms} ms, cap {now.cap}, drop {now.overflow}."


QUEUES: Final = {
    "steer": "a message that comes while the agent works is given to it at once",
    "followup": "each message waits for its own turn",
    "collect": "what waits becomes one turn",
    "interrupt": "the newest message stops what runs",
    "drop": "messages are not taken while the agent works",
}


async def _set_model(desk: Desk) -> str:
    ports, session = desk.ports, await desk.session()
    if not desk.word:
        known = [row.ref for row in ports.models.rows() if row.available]
        more = f" and {len(known) - LISTED} more" if len(known) > LISTED else ""
        listed = f" Others: {', '.join(known[:LISTED])}{more}." if known else ""
        return f"Model: {_model(desk, session)}.{listed} Choose with /model PROVIDER/MODEL."
    if desk.word in ("default", "reset"):
        await desk.change({"model": None})
        return f"Model: {_model(desk, await desk.session())}, as configured."
    model = ports.models.resolve(desk.given.words.split()[0], desk.agent)
    allow(ports.config(), model.ref)
    await desk.change({"model": model.ref})
    return f"Model: {model.ref}, from the next message on."


async def _think(desk: Desk) -> str:
    if desk.word in ("default", "reset"):
        await desk.change({"thinkingLevel": None})
    elif desk.word:
        await desk.change({"thinkingLevel": _level(desk.word)})
    session = await desk.session()
    level = (session.thinking if session else None) or "as configured"
    return f"Thinking: {level}. Levels: {', '.join(thinking.LEVELS)}, default."


def _level(word: str) -> Level:
    """Raises UserError for a word that is no level."""
    found = thinking.level(word)
    if found is None:
        raise UserError(thinking.unknown(word))
    return found


async def _verbose(desk: Desk) -> str:
    if desk.word in VERBOSE:
        await desk.change({"verboseLevel": desk.word})
    elif desk.word:
        raise UserError(f"/verbose takes {', '.join(VERBOSE)}.")
    session = await desk.session()
    return f"Verbose: {(session.verbose if session else None) or 'off'}."


async def _reply(desk: Desk) -> str:
    if desk.word in ("off", "first", "all"):
        await desk.change({"replyToMode": desk.word})
    elif desk.word:
        raise UserError("/reply takes off, first (the first part of an answer quotes your message), or all.")
    session = await desk.session()
    own = session.extra.get("replyToMode") if session else None
    return f"Replies: {own or desk.spoken.judged.account.raw.get('replyToMode') or 'first'}."


async def _compact(desk: Desk) -> str:
    return await desk.ports.compact(desk.key, desk.given.words)


async def _weighed(desk: Desk) -> str:
    return weights.said(await desk.ports.context(desk.key), desk.given.words)


async def _activation(desk: Desk) -> str:
    if desk.spoken.admitted.direct:
        raise UserError("/activation is for groups.")
    if desk.word not in ("mention", "always"):
        raise UserError("/activation takes mention (answer when named) or always.")
    await desk.change({"groupActivation": desk.word})
    return f"In this group I answer {'when I am named' if desk.word == 'mention' else 'everything'}."


async def _pair(desk: Desk) -> str:
    pairing, channel = desk.ports.pairing, desk.spoken.event.address.channel
    code = desk.given.words.split()[-1] if desk.given.words else ""
    if code and code.lower() not in ("list", "pending"):
        person = await pairing.approve(channel, code, desk.spoken.event.address.account)
        return f"{person.sender} may write to me now."
    waiting = pairing.waiting(channel, desk.spoken.event.address.account)
    if not waiting:
        return "Nobody asks to be let in."
    rows = "\n".join(f"{each.sender} {each.name[:64]}".rstrip() for each in waiting)
    return f"Who asks to be let in (they have a code; approve with /pair CODE):\n{rows}"


async def _approve(desk: Desk) -> str:
    who = desk.spoken.admitted
    speaker = approve.Speaker(desk.spoken.event.address, who.sender, who.owner)
    return await approve.given(desk.ports, desk.given.words, speaker, deny=desk.given.command.name == "deny")


async def _config(desk: Desk) -> str:
    raise UserError("Settings are not changed from a chat: use `garra config` on the gateway's machine, or its page.")


Chore = Callable[[Desk], Awaitable[str]]
CHORES: Final[Mapping[str, Chore]] = {
    "help": _help,
    "status": _status,
    "whoami": _whoami,
    "bot-me": _bot_me,
    "usage": _usage,
    "stop": _stop,
    "resume": lambda desk: allstop.resume(desk.ports.switch),
    "subagents": _subagents,
    "new": _new,
    "reset": _new,
    "undo": _undo,
    "queue": _queue,
    "model": _set_model,
    "think": _think,
    "verbose": _verbose,
    "reply": _reply,
    "compact": _compact,
    "context": _weighed,
    "dreaming": lambda desk: desk.ports.dreaming(desk.agent, desk.given.words, desk.spoken.admitted.owner),
    "activation": _activation,
    "pair": _pair,
    "approve": _approve,
    "deny": _approve,
    "config": _config,
}


async def ordered(desk: Desk) -> tuple[Spoken, str]:
    """Carry out a command in its turn: what is left to be asked, or the words that answer it."""
    try:
        if (rest := inline(desk)) is not None:
            return rest, ""
        text = await carry_out(desk)
    except UserError as error:
        return desk.spoken, error.message
    return replace(desk.spoken, words=desk.rest), "" if desk.rest else text


def uncommanded(ports: Ports, spoken: Spoken) -> Spoken:
    """A message that a restart found, without the command before it: that was carried out."""
    given = spoken.judged.given
    if given is None:
        return spoken
    desk = Desk(ports, spoken, given)
    try:
        return inline(desk) or replace(spoken, words=desk.rest or spoken.words)
    except UserError:
        return spoken


async def words(desk: Desk) -> str:
    try:
        return await carry_out(desk)
    except UserError as error:
        return error.message
