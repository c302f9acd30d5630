"""Several agents in one chat (`broadcast`): who answers, in how many rounds, and what they hear of each other."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from garra.core.groups import CURRENT, quoted
from garra.core.ids import AgentId
from garra.core.routing import Spot
from garra.core.value import frozen

AGENTS: Final = 16
ROUNDS: Final = 4
TURNS: Final = 32
"""The most of each."""

ONE: Final = 4_000
ALL: Final = 16_000
"""Characters of one answer, and of all of a round, that the others hear."""

_FIELDS: Final = frozenset(("agents", "mentionGating", "maxRounds", "maxTurns"))

HEARD: Final = "[Answers of the other agents of this chat - for context]"
ASKED: Final = "Answer only if you have something new to add to them; otherwise answer NO_REPLY."


@frozen
class Crowd:
    """The agents of one place; none where it is no broadcast group. `parallel`: all at once, else one after the other.

    `gated`: who names some of them is answered by those alone. At most `turns` turns answer one message, in at most
    `rounds` rounds. `labelled`: their answers begin with their names.
    """

    agents: tuple[AgentId, ...] = ()
    parallel: bool = True
    gated: bool = True
    rounds: int = 1
    turns: int = 0
    labelled: bool = False

    @property
    def plain(self) -> bool:
        """Whether each answers at once and none waits for another."""
        return not self.agents or (self.parallel and self.rounds == 1)

    def known(self, ids: Sequence[str]) -> Crowd:
        """Without agents that there are not."""
        return replace(self, agents=tuple(agent for agent in self.agents if agent in ids))

    def called(self, named: Callable[[AgentId], bool]) -> tuple[AgentId, ...]:
        """Those who answer words in which some are `named`, in their order."""
        chosen = tuple(filter(named, self.agents)) if self.gated else ()
        return (chosen or self.agents)[: self.turns]


@frozen
class Said:
    """One agent's last word of a round; empty for a silence."""

    agent: AgentId
    name: str
    text: str


def crowd(broadcast: Mapping[str, Any], spot: Spot) -> Crowd:
    """The agents of a place. Numbers out of range are brought into it."""
    found, labelled = broadcast.get(f"{spot.channel}:{spot.peer}"), True
    if found is None and spot.channel == "whatsapp":
        found, labelled = broadcast.get(spot.peer), False
    more = found if isinstance(found, Mapping) else {}
    names = more.get("agents") if more else found
    listed = [str(name).strip().lower() for name in names] if isinstance(names, list | tuple) else []
    agents = tuple(dict.fromkeys(AgentId(name) for name in listed if name))[:AGENTS]
    return Crowd(
        agents,
        broadcast.get("strategy") != "sequential",
        more.get("mentionGating") is not False,
        1 if spot.kind == "direct" else _bounded(more.get("maxRounds"), 1, ROUNDS),
        _bounded(more.get("maxTurns"), len(agents), TURNS),
        labelled and len(agents) > 1,
    )


def faults(broadcast: Mapping[str, Any], ids: Sequence[str]) -> list[str]:
    """What is written there and counts for nothing, a line each; `ids` are the agents that there are."""
    found = []
    for key, told in broadcast.items():
        if key == "strategy":
            if told not in ("parallel", "sequential"):
                found.append(f'broadcast.strategy is {told!r}: it is "parallel" or "sequential"; parallel counts')
            continue
        more = told if isinstance(told, Mapping) else {"agents": told}
        if unknown := sorted(set(more) - _FIELDS):
            found.append(f"broadcast.{key} has {', '.join(unknown)}, which nothing reads")
        listed = more.get("agents")
        if not isinstance(listed, list | tuple):
            found.append(f"broadcast.{key} names no agents: write a list of their ids")
            continue
        if gone := [str(name) for name in listed if str(name).strip().lower() not in ids]:
            found.append(f"broadcast.{key} names agents that there are not: {', '.join(gone)}")
    return found


def _bounded(value: object, default: int, most: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        return default
    return max(1, min(value, most))


def following(crowd: Crowd, said: Sequence[Said], turns: int) -> tuple[AgentId, ...]:
    """Who speaks in the next round, of which `turns` are left: who answered, and whom another's answer names."""
    if all(not each.text for each in said):
        return ()
    spoke = {each.agent for each in said if each.text}
    named = {
        agent
        for agent in crowd.agents
        if any(each.agent != agent and _names(each.text, agent, _name(said, agent)) for each in said)
    }
    return tuple(agent for agent in crowd.agents if agent in spoke | named)[: max(0, turns)]


def _name(said: Sequence[Said], agent: AgentId) -> str:
    return next((each.name for each in said if each.agent == agent), agent)


def _names(text: str, agent: AgentId, name: str) -> bool:
    return any(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE) for word in {agent, name})


def digest(said: Sequence[Said], agent: AgentId) -> str:
    """What an agent is asked in a round after the first: the others' answers under their names, each line theirs."""
    others = [each for each in said if each.text and each.agent != agent]
    room, lines = ALL, [HEARD]
    for each in others:
        most = min(ONE, room)
        text = each.text if len(each.text) <= most else each.text[: max(0, most - 1)] + "…"
        room -= len(text)
        lines.append(f"{each.name}: {quoted(text)}")
    return "\n".join((*lines, "", CURRENT, ASKED))


def label(name: str, text: str) -> str:
    """An answer (Markdown) under its agent's name; what would not be itself behind a name begins a line of its own."""
    shown = re.sub(r"[*_`\[\]\\<>\n]", "", name).strip() or "agent"
    apart = re.match(r"\s*([#>|`~*+-]|\d+[.)]\s)", text) is not None
    return f"**{shown}:**\n\n{text}" if apart else f"**{shown}:** {text.lstrip()}"
