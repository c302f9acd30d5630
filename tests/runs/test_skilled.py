"""What a conversation that has read a skill is lent, and what is noted of it."""

from __future__ import annotations

from pathlib import Path

from garra.config.sections import Config
from garra.core.ids import RunId, SessionKey
from garra.core.secret import Secret
from garra.core.skills import Needs, Skill
from garra.domains.skills import traces
from garra.runs.skilled import SESSIONS, Lent, Readers
from garra.testing.clock import ManualClock

KEY, OTHER = SessionKey("agent:main:main"), SessionKey("agent:main:other")
RUN = RunId("r1")
CONFIG = Config.model_validate(
    {"skills": {"entries": {
        "trip": {"apiKey": "key-1", "env": {"TRIP_HOME": "x", "PATH": "/evil", "LD_PRELOAD": "/evil.so"}},
        "off": {"enabled": False, "env": {"A": "b"}},
    }}}
)  # fmt: skip


class Shelf:
    def __init__(self, *skills: Skill) -> None:
        self._skills = {str(Path(one.path).parent): one for one in skills}

    def at(self, folder: str) -> Skill | None:
        return self._skills.get(folder)

    def names(self) -> frozenset[str]:
        return frozenset(one.name for one in self._skills.values())


def skill(path: Path, name: str = "trip", **more: object) -> Skill:
    return Skill(name, "", str(path / "SKILL.md"), "managed", Needs(bins=("trip",)), **more)  # type: ignore[arg-type]


def lent(tmp_path: Path, *skills: Skill, base: Lent | None = None, read: bool = True) -> dict[str, dict[str, str]]:
    reader = Readers(tmp_path, ManualClock()).of(KEY, RUN)
    found = reader.lent(base or {}, lambda: CONFIG, Shelf(*skills))
    assert not found or base
    for one in skills if read else ():
        reader.heard(str(Path(one.path).parent))
    assert bool(found) == bool(len(found)) or not skills
    return {program: {name: value.reveal() for name, value in values.items()} for program, values in found.items()}


def test_only_a_conversation_that_has_read_it_has_its_variables(tmp_path: Path) -> None:
    mine = skill(tmp_path / "trip", primary_env="TRIP_KEY")
    assert lent(tmp_path, mine, read=False) == {}
    assert lent(tmp_path, mine) == {"trip": {"TRIP_HOME": "x", "TRIP_KEY": "key-1"}}
    readers = Readers(tmp_path, ManualClock())
    readers.of(KEY, RUN).heard(str(tmp_path / "trip"))
    assert readers.read(OTHER) == ()
    for number in range(SESSIONS):
        readers.note(f"s{number}", "x")
    assert readers.read(KEY) == ()


def test_its_own_scripts_have_them_too(tmp_path: Path) -> None:
    mine = skill(tmp_path / "trip")
    script = tmp_path / "trip" / "scripts" / "go"
    script.parent.mkdir(parents=True)
    script.write_text("#!/bin/sh\n")
    script.chmod(0o700)
    (tmp_path / "trip" / "notes.md").write_text("")
    assert set(lent(tmp_path, mine)) == {"trip", str(script)}


def test_what_the_owner_lends_by_himself_counts_first(tmp_path: Path) -> None:
    base = {"trip": {"TRIP_HOME": Secret("mine")}, "gh": {"GH_TOKEN": Secret("g")}}
    assert lent(tmp_path, skill(tmp_path / "trip"), base=base) == {
        "trip": {"TRIP_HOME": "mine"},
        "gh": {"GH_TOKEN": "g"},
    }


def test_who_is_given_nothing(tmp_path: Path) -> None:
    written = Skill("trip", "", str(tmp_path / "w" / "SKILL.md"), "workspace", Needs(bins=("trip",)))
    assert lent(tmp_path, written) == {}
    assert lent(tmp_path, skill(tmp_path / "o", "off")) == {}
    assert lent(tmp_path, skill(tmp_path / "n", "none")) == {}
    thief = skill(tmp_path / "t", "thief", settings="trip")
    assert "trip" in lent(tmp_path, thief), "the key alone is no theft: a skill may have one"
    honest = Skill("trip", "", str(tmp_path / "trip" / "SKILL.md"), "managed", Needs(bins=("honest",)))
    assert set(lent(tmp_path, thief, honest)) == {"honest"}


def test_what_it_wrote_since_is_noted(tmp_path: Path) -> None:
    reader = Readers(tmp_path, ManualClock()).of(KEY, RUN)
    reader.wrote("before.md")
    reader.heard("/s/trip")
    reader.wrote("MEMORY.md")
    (noted,) = traces.of(tmp_path, "/s/trip")
    assert {**noted, "ts": 0} == {"ts": 0, "skill": "/s/trip", "session": KEY, "run": RUN, "path": "MEMORY.md"}
    assert traces.of(tmp_path, "/s/other") == []
    (tmp_path / traces.FILE).write_bytes(b"x" * traces.ROOM + b"\nno json\n[]\n")
    reader.wrote("b.md")
    assert [row["path"] for row in traces.of(tmp_path, "/s/trip")] == ["b.md"]
    assert (tmp_path / traces.FILE).stat().st_size < traces.ROOM
    Readers(tmp_path / "none", ManualClock()).of(KEY, RUN).wrote("x")
    gone = Readers(tmp_path / "none", ManualClock()).of(KEY, RUN)
    gone.heard("/s/trip")
    gone.wrote("x")
