"""What in the owner's lists of tools means nothing is told in the log: he thinks something is denied that is not."""

from __future__ import annotations

import logging
from collections.abc import Callable

from garra.app.house import House
from garra.config.sections import Config
from garra.core.ids import AgentId, SessionKey
from garra.core.policy import Face, own_groups
from garra.domains.tools.pipeline import Scope
from garra.runs.explain import warnings

log = logging.getLogger(__name__)


def watch(house: House) -> Callable[[], None]:
    """Tell it now, and of each new configuration. The call ends it."""
    said: set[str] = set()

    def look(config: Config) -> None:
        agent = config.agents.default_id()
        rows = house.pipeline.rows(Scope(AgentId(agent), SessionKey(f"agent:{agent}:main"), "operator"))
        infos = [row.info for row in rows]
        lines = warnings(config, [Face(i.name, (*i.groups, *own_groups(i.name, i.source))) for i in infos])
        for line in lines:
            if line not in said:
                log.warning("%s", line)
        said.clear()
        said.update(lines)

    look(house.live.config)
    return house.live.subscribe(lambda _, new: look(new))
