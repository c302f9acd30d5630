"""The hard limits of one run, from the configuration: the agent's own, else the defaults'."""

from __future__ import annotations

from garra.config.sections import Config
from garra.config.sections.tools import LoopDetection
from garra.core import repeats, turnlimits


def limits(config: Config, agent_id: str) -> turnlimits.Limits:
    """How many answers and calls a run may have, and how many of these may be refused."""
    agent, common = config.agents.find(agent_id), config.agents.defaults
    usual = turnlimits.Limits()
    turns = agent.max_turns if agent and agent.max_turns is not None else common.max_turns
    calls = agent.max_tool_calls if agent and agent.max_tool_calls is not None else common.max_tool_calls
    detection = _detection(config, agent_id)
    return turnlimits.Limits(
        usual.turns if turns is None else turns,
        usual.calls if calls is None else calls,
        detection.max_refusals if detection.enabled else 0,
    )


def guard(config: Config, agent_id: str) -> repeats.Settings:
    """When a run goes round in circles."""
    found = _detection(config, agent_id)
    which = found.detectors
    return repeats.Settings(
        on=found.enabled,
        failing=found.failure_threshold,
        alike=found.repeat_threshold,
        differing=found.critical_threshold,
        note=found.warning_threshold,
        limit=found.critical_threshold,
        unknown=found.unknown_tool_threshold,
        generic=which.generic_repeat,
        ping_pong=which.ping_pong,
        polls=which.known_poll_no_progress,
    )


def _detection(config: Config, agent_id: str) -> LoopDetection:
    agent = config.agents.find(agent_id)
    if agent is not None and agent.tools is not None and "loop_detection" in agent.tools.model_fields_set:
        return agent.tools.loop_detection
    return config.tools.loop_detection
