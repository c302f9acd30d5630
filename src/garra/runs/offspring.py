"""What the runs of sub-agents are made of: a child's task as a turn, its report as a turn, how a run of it ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, get_args

from garra.config.sections import Config
from garra.core import lineage, reply, reports, thinking
from garra.core.events import RunEnded
from garra.core.ids import AgentId, RunId, SessionKey
from garra.core.lineage import Child, Outcome
from garra.core.messages import Usage
from garra.runs.run import Run, Turn
from garra.sdk.tool import Origin

SPENT: Final = "spent"
"""Why a run is cancelled that has used up what a child may."""
PASSING: Final = ("", "shutdown", "interrupt")
"""Why a run is cancelled that is gone on with: only the process ends, or another message takes its place."""

ORIGINS: Final[Mapping[str, Origin]] = {each: each for each in get_args(Origin)}

Text = Callable[[str], str]
"""A prompt by its name."""


def setting(config: Config, agent: str, name: str) -> Any:
    """A key of `subagents`: the agent's own, where it is set there, else that of all."""
    own = config.agents.find(agent)
    if own is not None and name in own.subagents.model_fields_set:
        return getattr(own.subagents, name)
    return getattr(config.agents.defaults.subagents, name)


def limits(config: Config, agent: str) -> lineage.Limits:
    """What holds for children that `agent` starts."""
    return lineage.Limits(
        setting(config, agent, "max_spawn_depth"),
        setting(config, agent, "max_children_per_agent"),
        config.agents.defaults.subagents.max_concurrent,
        setting(config, agent, "run_timeout_seconds") or 0.0,
        setting(config, agent, "max_tokens") or 0,
        setting(config, agent, "max_cost_usd") or 0.0,
    )


def task(child: Child, text: Text) -> Turn:
    """Its first run. The same after a restart, so that it goes on behind what it did."""
    name = "subagent-fork" if child.context == "fork" else "subagent-task"
    told = {"kind": "subagent", "sourceSessionKey": child.home.key}
    return Turn(
        RunId(child.run_id),
        SessionKey(child.key),
        AgentId(child.agent),
        reports.fill(text(name), {"task": child.task}),
        origin="subagent",
        model=child.model or None,
        thinking=thinking.level(child.thinking) if child.thinking else None,
        timeout_s=child.timeout_s,
        meta={"provenance": told},
        place=child.home.place,
        marks=child.given,
    )


def report(child: Child, text: Text) -> Turn:
    """The turn in which its parent is told: what its own turn was asked with, and what the child says."""
    home = child.home
    about = {"kind": "subagent_report", "sourceSessionKey": child.key, "sourceRunId": child.run_id}
    return Turn(
        RunId(child.report_id),
        SessionKey(home.key),
        AgentId(home.agent),
        reports.fill(text("subagent-report"), reports.told(child)),
        origin=origin(home.origin),
        model=home.model or None,
        thinking=thinking.level(home.thinking) if home.thinking else None,
        meta={"provenance": about},
        extra_system=home.system,
        place=home.place,
        route=home.route,
        silent=True,
        marks=child.marks,
    )


def origin(text: str) -> Origin:
    """Where a stored turn came from; what is unknown is from outside."""
    return ORIGINS.get(text, "channel")


def over(child: Child, usage: Usage, config: Config) -> str:
    """What of its means it has used up, in a line; empty when nothing is."""
    tokens, cost = child.tokens_in + child.tokens_out + usage.total, child.cost + usage.cost
    return lineage.spent(tokens, cost, limits(config, child.home.agent))


def outcome(child: Child, run: Run, ended: RunEnded, config: Config) -> tuple[Outcome, str]:
    """How a run of it ended, and what went wrong."""
    fault = ended.failure.message if ended.failure is not None else ""
    match ended.ending:
        case "ok":
            return "ok", ""
        case "timeout":
            return "timeout", fault
        case "aborted" if run.cancel.reason == SPENT:
            return "over", over(child, run.usage, config)
        case "aborted":
            return "stopped", ""
        case _:
            return "error", fault


def last_words(run: Run, ended: RunEnded) -> str:
    """What a run leaves as its report: its reply, or what it had said before it had nothing to add."""
    if ended.reply or ended.ending != "ok":
        return ended.reply if ended.ending == "ok" else ""
    for answer in reversed(run.trace.answers):
        said = reply.answer(answer.text, "group")
        if answer.stop in ("stop", "length") and isinstance(said, reply.Reply):
            return said.text
    return ""


def passing(run: Run | None, ended: RunEnded) -> bool:
    """Whether it is gone on with elsewhere, or was housekeeping and no turn."""
    if run is not None and run.turn.chore:
        return True
    return ended.ending == "aborted" and run is not None and run.cancel.reason in PASSING
