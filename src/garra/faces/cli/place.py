"""Where this command line stands: the environment, the folders, the gateway they lead to."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from garra.client import called, target
from garra.client.target import Target, Wanted
from garra.config.paths import Paths, resolve
from garra.io.env import Environment, read


@dataclass(frozen=True)
class Place:
    """One installation as a command sees it."""

    env: Environment
    paths: Paths

    @cached_property
    def _look(self) -> tuple[dict[str, Any], str]:
        from garra.config.peek import look  # noqa: PLC0415 - only commands that need an address read it

        return look(self.paths, self.env)

    @property
    def config(self) -> dict[str, Any]:
        """The configuration as plain values, without its types; when it is broken the last good one, or empty."""
        return self._look[0]

    @property
    def fault(self) -> str:
        """What is wrong with the configuration file, in one line; empty when it can be read."""
        return self._look[1]

    def target(self, wanted: Wanted | None = None) -> Target:
        """The gateway to talk to. Raises UserError as `client.target.find` does."""
        return target.find(self.paths, self.env, self.config, wanted)

    @property
    def holder(self) -> dict[str, Any] | None:
        """What the gateway that owns the state folder says about itself, fit to be shown; None when none runs."""
        found = target.holder(self.paths)
        return {name: value for name, value in found.items() if name != "token"} if found else None

    @property
    def agents(self) -> bool:
        """Whether this is an agent's command: its surroundings say so, or the gateway is above this process."""
        if self.env.get("GARRA_SHELL"):
            return True
        pid = (self.holder or {}).get("pid")
        from garra.io.process.kin import above  # noqa: PLC0415 - few commands ask

        return isinstance(pid, int) and above(pid)

    @property
    def command(self) -> str:
        """What a person types to get here: the program as they called it, and the profile."""
        return called.command(self.env, self.paths.profile)


def here() -> Place:
    env = read()
    return Place(env, resolve(env))
