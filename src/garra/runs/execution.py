"""How programs are run, as the owner set it: for all, and for one agent where he said so."""

from __future__ import annotations

from collections.abc import Iterable

from garra.config.sections import Config
from garra.config.sections.tools import Elevated, ExecTool
from garra.core.execplan import NO_ELEVATED, Settings
from garra.core.execrules import Policy, moded, stricter
from garra.core.value import frozen
from garra.sdk.tool import Origin

OWN = ("webchat", "operator")
"""What `tools.elevated.allowFrom` calls the owner at a screen of his own."""


@frozen
class For:
    """Whose commands they are: `requester` is `channel:account:id`, empty for the owner at his own screen."""

    agent_id: str
    origin: Origin
    requester: str = ""


def settings(config: Config, whom: For) -> Settings:
    """What an agent's own `tools.exec` says comes before the common one; of security and asking the stricter holds."""
    common, own = config.tools.exec, _own(config, whom.agent_id)
    said = {**_said(common), **(_said(own) if own else {})}
    found = common.model_copy(update=said)
    profiles = {**common.safe_bin_profiles, **(own.safe_bin_profiles if own else {})}
    return Settings(
        host=found.host,
        timeout_s=found.timeout_sec if found.timeout_seconds is None else found.timeout_seconds,
        yield_ms=found.background_ms,
        notify=found.notify_on_exit,
        path=found.path_prepend,
        policy=stricter(_policy(common), _policy(own) if own else Policy()),
        safe_bins=found.safe_bins,
        safe_folders=found.safe_bin_trusted_dirs,
        safe_profiles={name: each.model_dump(by_alias=True) for name, each in profiles.items()},
        barred=barred(config, whom),
        lent=found.secret_env,
    )


def _own(config: Config, agent_id: str) -> ExecTool | None:
    agent = config.agents.find(agent_id)
    return agent.tools.exec if agent is not None and agent.tools is not None else None


def _said(section: ExecTool) -> dict[str, object]:
    return {name: getattr(section, name) for name in section.model_fields_set if name not in section.model_extra}


def _policy(section: ExecTool) -> Policy:
    return moded(section.mode, section.security, section.ask)


def barred(config: Config, whom: For) -> str:
    """Why somebody may not leave the sandbox by `elevated`; empty where he may. It must be on, and he must be named:
    for all agents, and for this one where it has a list of its own.
    """
    agent = config.agents.find(whom.agent_id)
    lists = [config.tools.elevated]
    if agent is not None and agent.tools is not None and "elevated" in agent.tools.model_fields_set:
        lists.append(agent.tools.elevated)
    if not all(each.enabled for each in lists):
        return NO_ELEVATED
    if whom.origin in ("subagent", "job"):
        return "elevated is not for sub-agents and jobs: only a person who is named may ask for it. Leave it out."
    missing = "this person is not named in tools.elevated.allowFrom, by id. Leave elevated out."
    return "" if all(_named(each, whom.requester) for each in lists) else f"elevated is not allowed here: {missing}"


def _named(section: Elevated, requester: str) -> bool:
    """Whether somebody is on the list. A star stands for the owner's own screens only, never for a channel."""
    if not requester:
        return any(_ids(section.allow_from.get(name, ())) & {"*", "owner"} for name in OWN)
    channel, _, rest = requester.partition(":")
    return rest.partition(":")[2] in _ids(section.allow_from.get(channel, ())) - {"*", ""}


def _ids(listed: Iterable[str | int]) -> set[str]:
    return {str(each).removeprefix("id:") for each in listed}
