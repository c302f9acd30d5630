"""The commands of every chat: what each is called, who may give it, and what it does not wait for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, Literal

from garra.core.access import Admitted
from garra.core.groups import CommandLevel
from garra.core.patterns import later
from garra.core.value import frozen

Level = Literal["talk", "session", "owner"]
"""Who may: whoever was let in; whom the owner's lists or a pairing name; the owner."""


@frozen
class Command:
    """One row. `overtakes`: it is carried out at once, though a turn runs or messages wait. `private`: not in groups.
    `inline`: words behind its value are a message that it holds for.
    """

    name: str
    usage: str
    about: str
    level: Level = "talk"
    overtakes: bool = False
    private: bool = False
    inline: bool = False
    aliases: tuple[str, ...] = ()
    safe: bool = False
    strict: bool = False


COMMANDS: Final = (
    Command("help", "/help", "what you can say here", overtakes=True, aliases=("commands",), safe=True, strict=True),
    Command("status", "/status", "the agent, its model, and what it is doing", overtakes=True, safe=True),
    Command("whoami", "/whoami", "who you are here, for the owner's lists", overtakes=True, aliases=("id",), safe=True),
    Command("bot-me", "/bot-me", "your id on this platform", overtakes=True, private=True,
            aliases=("bot_me", "botme")),
    Command("usage", "/usage", "tokens of this conversation, of today and of this month", overtakes=True),
    Command("stop", "/stop [all [pause]]", "stop what runs and what waits; all: everywhere", "session",
            overtakes=True, aliases=("abort",), safe=True, strict=True),
    Command("subagents", "/subagents [list|log|info|stop]", "who works for this conversation", "session",
            overtakes=True),
    Command("new", "/new [model] [message]", "begin a new conversation", "session"),
    Command("reset", "/reset [undo | message]", "the same as /new", "session"),
    Command("undo", "/undo", "go back to the conversation before the last /new or reset", "session"),
    Command("queue", "/queue [mode]", "what happens to messages while the agent works", "session"),
    Command("model", "/model [provider/model]", "which model answers", "session", inline=True),
    Command("think", "/think [off…max]", "how long the model thinks", "session", inline=True,
            aliases=("thinking", "t")),
    Command("verbose", "/verbose [off|on|full]", "whether tools are shown at work", "session", aliases=("v",)),
    Command("reply", "/reply [off|first|all]", "whether answers quote your message", "session"),
    Command("compact", "/compact [what matters most]", "sum up the conversation so far", "session"),
    Command("context", "/context [list|detail|map|json]", "what fills the model's window", "session", overtakes=True),
    Command("dreaming", "/dreaming [status|on|off]", "whether I look through my notes at night", overtakes=True),
    Command("activation", "/activation [mention|always]", "when the agent answers in a group", "owner"),
    Command("pair", "/pair [code]", "who asks to be let in; let one in", "owner", private=True),
    Command("approve", "/approve [id] [allow-once|allow-always|deny]", "allow what an agent asks", "owner",
            overtakes=True),
    Command("deny", "/deny [id]", "forbid what an agent asks", "owner", overtakes=True),
    Command("resume", "/resume", "let work go on after /stop all pause", "owner", overtakes=True),
    Command("config", "/config", "settings; they are changed at the gateway only", "owner", aliases=("elevated", "bash",
            "exec", "restart", "debug", "plugins", "mcp", "allowlist")),
)  # fmt: skip

_NAMED: Final = {name: command for command in COMMANDS for name in (command.name, *command.aliases)}
_SLASH = later(r"/([a-z][a-z0-9_-]{0,31})(@[\w.]{1,64})?(?:[:\s]\s*|\Z)", re.IGNORECASE)


@frozen
class Given:
    """A command as it was given; `words` is what follows it."""

    command: Command
    words: str


def parse(text: str, *, mentioned: bool = True) -> Given | None:
    """The command that `text` begins with; None for ordinary text, an unknown command, or one for another bot."""
    found = _SLASH.match(text.strip())
    if found is None:
        return None
    command = _NAMED.get(found[1].lower())
    if command is None or (found[2] and not mentioned):
        return None
    return Given(command, text.strip()[found.end() :].strip())


ANSWERS: Final = frozenset({"approve", "deny"})
"""What an account's own approvers may, where it names any."""


def refusal(given: Given, who: Admitted, level: CommandLevel, *, shared: bool, owner_id: str) -> str:
    """Why somebody may not give a command here; empty when they may. `shared`: the session is not theirs alone.

    `owner_id` is how the owner's list would name them.
    """
    command = given.command
    if command.private and not who.direct:
        return f"/{command.name} is for a private chat with me."
    if not who.direct and not _within(command, level):
        return f"/{command.name} is off in this group; write to me privately."
    if command.name in ANSWERS and not who.approver and who.owner:
        return f"/{command.name} is for those whom execApprovals.approvers names for this account."
    if command.level == "owner" and not (who.approver if command.name in ANSWERS else who.owner):
        return (
            f"Only an owner may use /{command.name}. An owner is named on the gateway's machine: "
            f"garra config set commands.ownerAllowFrom '[\"{owner_id}\"]'"
        )
    if command.level == "session" and not who.named and (shared or not who.direct):
        return f"/{command.name} is for people the owner has named."
    return ""


def _within(command: Command, level: CommandLevel) -> bool:
    return level == "all" or (level == "safety" and command.safe) or (level == "strict" and command.strict)


def listed(who: Admitted, level: CommandLevel) -> Iterator[Command]:
    """The commands somebody may give here, for /help."""
    for command in COMMANDS:
        may = who.approver if command.name in ANSWERS else who.owner
        if command.name == "config" or (command.level == "owner" and not may):
            continue
        if who.direct or (_within(command, level) and not command.private):
            yield command
