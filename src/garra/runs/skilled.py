"""What a conversation has read up on: which programs are lent what by `skills.entries`, and what it wrote since."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol

from garra.config.sections import Config
from garra.config.sections.plugins import SkillEntry
from garra.core import execplan
from garra.core.errors import ToolFailed
from garra.core.ids import RunId, SessionKey
from garra.core.secret import Secret
from garra.core.skills import Skill
from garra.core.value import frozen
from garra.domains.skills import traces
from garra.sdk.ports import Clock

log = logging.getLogger(__name__)

SESSIONS: Final = 500
"""So many conversations are remembered; one that was forgotten reads its skill again."""
SCRIPTS: Final = 100

Lent = Mapping[str, Mapping[str, Secret]]


class Readers:
    """Who has read what: by session, the folders of the skills whose SKILL.md was read. Forgotten with the process."""

    def __init__(self, state: Path, clock: Clock) -> None:
        self._state, self._clock = state, clock
        self._read: OrderedDict[str, dict[str, None]] = OrderedDict()

    def of(self, session_key: SessionKey, run_id: RunId) -> Reader:
        return Reader(self, session_key, run_id)

    def read(self, session_key: str) -> tuple[str, ...]:
        """The folders."""
        return tuple(self._read.get(session_key, ()))

    def note(self, session_key: str, folder: str) -> None:
        self._read.setdefault(session_key, {})[folder] = None
        self._read.move_to_end(session_key)
        while len(self._read) > SESSIONS:
            self._read.popitem(last=False)

    def wrote(self, session_key: str, run_id: str, path: str) -> None:
        """A file was written. Blocks; a disk that refuses does not keep the turn from its work."""
        for folder in self.read(session_key):
            line = {"ts": self._clock.now_ms(), "skill": folder, "session": session_key, "run": run_id, "path": path}
            try:
                traces.note(self._state, line)
            except OSError as fault:
                log.warning("what %s wrote could not be noted: %s", session_key, fault.strerror or fault)


@frozen
class Reader:
    """One run's eyes: told by the door to its files of what it reads and writes."""

    readers: Readers
    session_key: SessionKey
    run_id: RunId

    def heard(self, folder: str) -> None:
        self.readers.note(self.session_key, folder)

    def wrote(self, path: str) -> None:
        self.readers.wrote(self.session_key, self.run_id, path)

    def lent(self, base: Lent, config: Callable[[], Config], shelf: Shelf) -> Lent:
        """What programs are lent, with what the skills that were read until then have in the settings."""

        def able() -> list[tuple[Skill, SkillEntry]]:
            read = filter(None, map(shelf.at, self.readers.read(self.session_key)))
            return list(_able(config(), read, shelf.names()))

        return Lending(base, able)

    def seen(self, shelf: Shelf) -> tuple[str, ...]:
        """The folders of the skills that were read until then: its commands may read them too."""
        return tuple(folder for folder in self.readers.read(self.session_key) if shelf.at(folder) is not None)


class Shelf(Protocol):
    """The skills that are there: one by its folder, the names of all."""

    def at(self, folder: str) -> Skill | None: ...

    def names(self) -> frozenset[str]: ...


class Lending(Mapping[str, Mapping[str, Secret]]):
    """`base`, and behind it what skills are given at the moment; of one variable the value of `base` counts.

    To look into it blocks, whether there is something in it does not.
    """

    def __init__(self, base: Lent, able: Callable[[], Sequence[tuple[Skill, SkillEntry]]]) -> None:
        self._base, self._able = base, able

    def __bool__(self) -> bool:
        return bool(self._base) or bool(self._able())

    def _more(self) -> Lent:
        return _by_program(self._able())

    def __getitem__(self, program: str) -> Mapping[str, Secret]:
        more = self._more()
        if program not in self._base and program not in more:
            raise KeyError(program)
        return {**more.get(program, {}), **self._base.get(program, {})}

    def __iter__(self) -> Iterator[str]:
        return iter({**self._more(), **self._base})

    def __len__(self) -> int:
        return len({**self._more(), **self._base})


def _able(config: Config, read: Iterable[Skill], names: frozenset[str]) -> Iterator[tuple[Skill, SkillEntry]]:
    """Those that are given something: none of the workspace, which an agent can write, and none that calls itself by
    the key of another that is there.
    """
    for one in read:
        entry = config.skills.entries.get(one.key)
        stolen = one.key != one.name and one.key in names
        if (
            entry is not None
            and entry.enabled
            and (entry.env or entry.api_key)
            and one.place != "workspace"
            and not stolen
        ):
            yield one, entry


def _by_program(able: Iterable[tuple[Skill, SkillEntry]]) -> Lent:
    """What the programs get that a skill says it needs, and its own scripts."""
    found: dict[str, dict[str, Secret]] = {}
    for one, entry in able:
        values = dict(entry.env)
        if one.primary_env and entry.api_key is not None:
            values.setdefault(one.primary_env, entry.api_key)
        fit = {name: value for name, value in values.items() if _may(name)}
        for program in (*one.needs.bins, *one.needs.any_bins, *_scripts(one)) if fit else ():
            found.setdefault(program, {}).update(fit)
    return found


def _may(name: str) -> bool:
    """Whether a variable of that name may come from a skill: not one that every command has, or that steers it."""
    try:
        execplan.check_environment({name: ""})
    except ToolFailed:
        return False
    return name not in execplan.environment("", {}, terminal=False)


def _scripts(skill: Skill) -> list[str]:
    """The programs in a skill's own folder, by path."""
    folder = Path(skill.path).parent
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.stat().st_mode & 0o100)
    return [str(path) for path, _ in zip(files, range(SCRIPTS), strict=False)]
