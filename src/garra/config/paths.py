"""Where this installation keeps its things."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from garra.core.errors import UserError

if TYPE_CHECKING:
    from garra.config.sections import Config

Prefix = Literal["GARRA", "OPENCLAW"]


@dataclass(frozen=True, slots=True)
class Paths:
    """All places of one installation; absolute, none of them made by asking.

    `prefix` is what this installation's variables begin with: `GARRA`, or `OPENCLAW` in compatibility mode.
    """

    home: Path
    state: Path
    config_file: Path
    prefix: Prefix = "GARRA"
    profile: str = ""

    @property
    def db(self) -> Path:
        return self.state / "state.db"

    @property
    def agents(self) -> Path:
        return self.state / "agents"

    @property
    def media(self) -> Path:
        return self.state / "media"

    @property
    def logs(self) -> Path:
        return self.state / "logs"

    @property
    def extensions(self) -> Path:
        return self.state / "extensions"

    @property
    def skills(self) -> Path:
        return self.state / "skills"

    @property
    def lock(self) -> Path:
        return self.state / "gateway.lock"

    @property
    def locks(self) -> Path:
        """Who has a turn in which session, where no gateway keeps them apart."""
        return self.state / "locks"

    @property
    def key_socket(self) -> Path:
        """Where a gateway hands the token that it made for one run to the same user's programs."""
        return self.state / "gateway.sock"

    @property
    def secrets(self) -> Path:
        """The store of `garra secrets`."""
        return self.state / "secrets.json"

    @property
    def last_good(self) -> Path:
        """The last configuration that was valid; written by us alone."""
        return self.state / f"{self.config_file.name}.last-good"

    @property
    def private(self) -> tuple[Path, ...]:
        """What no tool may see or touch where a workspace lies above it: the state folder and the configuration."""
        file = self.config_file
        beside = (file.with_name(file.name + suffix) for suffix in ("", ".bak", ".lock"))
        return (self.state, *beside, *self.set_aside)

    @property
    def set_aside(self) -> tuple[Path, ...]:
        """Where broken configurations are kept when another takes their place, the latest first."""
        file = self.config_file.resolve()
        return tuple(file.with_name(f"{file.name}.broken{suffix}") for suffix in ("", ".1", ".2", ".3", ".4"))

    @property
    def reserved(self) -> frozenset[str]:
        """The names in the state folder that can be no workspace."""
        return frozenset({"agents", "media", "logs", "extensions", "skills", "models", "locks"})

    @property
    def compat(self) -> bool:
        """Whether this installation stands in OpenClaw's place."""
        return self.prefix == "OPENCLAW"

    def variable(self, env: Mapping[str, str], name: str) -> str:
        """The value of one of our own variables, such as `GATEWAY_PORT`; empty when unset."""
        return env.get(f"{self.prefix}_{name}", "").strip()

    def expand(self, text: str) -> Path:
        """A path a person wrote: `~` is the home folder, a relative one stands below the state folder."""
        if text == "~" or text.startswith("~/"):
            return self.home / text[2:]
        return self.state / text

    def sessions(self, agent_id: str) -> Path:
        """The folder of an agent's transcripts."""
        return self.agents / agent_id / "sessions"

    def workspace(self, agent_id: str, config: Config) -> Path:
        """An agent's working folder: its own, else the common one (or a folder of it), else below the state."""
        agent = config.agents.find(agent_id)
        if agent is not None and agent.workspace:
            return self.expand(agent.workspace)
        common = config.agents.defaults.workspace
        base = self.expand(common) if common else self.state / "workspace"
        if agent_id == config.agents.default_id():
            return base
        return base / agent_id if common else self.state / f"workspace-{agent_id}"


def _place(home: Path, text: str) -> Path:
    if text == "~" or text.startswith("~/"):
        return home / text[2:]
    return Path(text).absolute()


def resolve(env: Mapping[str, str]) -> Paths:
    """Find the places from the environment.

    `GARRA_STATE_DIR` names the state folder (else `~/.garra`, or `~/.garra-<GARRA_PROFILE>`), `GARRA_CONFIG_PATH` the
    configuration file (else `garra.json` in it). With `GARRA_COMPAT=openclaw` it is `~/.openclaw`, `openclaw.json`
    and the variables `OPENCLAW_*`. Raises UserError for a profile's name that is none.
    """
    compat = env.get("GARRA_COMPAT", "").strip().lower() == "openclaw"
    prefix: Prefix = "OPENCLAW" if compat else "GARRA"
    name = prefix.lower()

    def variable(suffix: str) -> str:
        return env.get(f"{prefix}_{suffix}", "").strip()

    home = Path(variable("HOME") or env.get("HOME", "") or Path.home()).absolute()
    profile = variable("PROFILE")
    profile = "" if profile == "default" else profile
    if not all(letter.isalnum() or letter in "-_" for letter in profile):
        raise UserError(f"{prefix}_PROFILE is {profile!r}; a profile's name is letters, digits, - and _")
    folder = f".{name}-{profile}" if profile else f".{name}"
    state = _place(home, variable("STATE_DIR")) if variable("STATE_DIR") else home / folder
    file = _place(home, variable("CONFIG_PATH")) if variable("CONFIG_PATH") else state / f"{name}.json"
    return Paths(home, state, file, prefix, profile)
