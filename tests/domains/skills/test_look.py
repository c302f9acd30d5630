"""What a person is shown of a skill, and the rows for programs."""

from __future__ import annotations

from pathlib import Path

from garra.config.sections import Config
from garra.core.bundle import Changes
from garra.core.skills import Judged, judge, read
from garra.domains.skills import look, status, world
from garra.domains.skills.records import Record
from tests.domains.skills.making import FILES, SKILL

CONFIG = Config.model_validate(
    {
        "agents": {"defaults": {"skills": ["trip"]}, "list": [{"id": "main"}, {"id": "none", "skills": []}]},
        "skills": {"entries": {"trip": {"apiKey": "k", "env": {"A": "b", "EMPTY": ""}}, "off": {"enabled": False}}},
    }
)


def test_what_it_asks_for() -> None:
    files = {
        **FILES,
        "more.md": b"see https://API.example.com/x and http://1.2.3.4:80/ \xe2\x80\x8b",
        "x.bin": b"\0https://no.example/",
    }
    found = look.look(files, "folder")
    assert found.skill.name == "Trip Kit"
    assert found.asks == {
        "bins": ("curl",),
        "env": ("TRIP_KEY",),
        "hosts": ("api.example.com", "1.2.3.4"),
        "scripts": ("scripts/go.sh",),
        "install": ("brew trip",),
    }
    assert found.unseen == ("more.md line 1: U+200B ZERO WIDTH SPACE",)
    told = found.told()
    assert told["bytes"] == sum(map(len, files.values()))
    lines = list(look.lines({**told["asks"], "bins": [f"b{number}" for number in range(14)]}))
    assert lines[0] == "programs: b0, b1, b2, b3, b4, b5, b6, b7, b8, b9, b10, b11, and 2 more"
    assert lines[-1] == "its hints for installing programs (Garra runs none of them): brew trip"


def test_the_world_of_an_agent() -> None:
    seen = world.world(CONFIG, {"a": {"b": True}}, {"PATH": "/bin", "SET": "1"}, "main")
    assert (seen.has_bin("sh"), seen.has_bin("no-such-thing")) == (True, False)
    assert (seen.has_env("SET"), seen.has_env("UNSET")) == (True, False)
    assert (seen.has_config("a.b"), seen.has_config("a.c"), seen.has_config("a.b.c")) == (True, False, False)
    assert seen.given == {"trip": {"", "A"}, "off": frozenset()}
    assert (seen.only, world.only(CONFIG, "none")) == (frozenset({"trip"}), frozenset())
    assert world.only(Config(), "main") is None
    assert world.off(CONFIG) == {"off"}


def judged(tmp_path: Path) -> Judged:
    skill = read(SKILL.decode(), str(tmp_path / "SKILL.md"), "managed", "trip")
    return judge(skill, world.world(Config(), {}, {"PATH": "/nowhere"}, "main"))


def test_a_row_and_the_sum_of_rows(tmp_path: Path) -> None:
    seen = world.world(Config(), {}, {"PATH": "/nowhere"}, "main")
    row = status.row(judged(tmp_path), seen, frozenset({"Trip Kit"}))
    assert row["missing"] == {"bins": ["curl"], "anyBins": [], "env": ["TRIP_KEY"], "config": [], "os": []}
    assert row["install"] == [{"id": "brew-0", "kind": "brew", "label": "brew trip", "bins": ["curl"]}]
    assert (row["source"], row["skillKey"], row["primaryEnv"]) == ("openclaw-managed", "Trip Kit", "TRIP_KEY")
    assert (row["disabled"], row["eligible"], row["modelVisible"]) == (True, False, False)
    record = Record("Trip Kit", str(tmp_path), "git", "git:x", {"SKILL.md": "1"}, version="abc")
    assert status.installed(record, Changes())["changed"] is None
    row["installed"] = status.installed(record, Changes(changed=("SKILL.md",)))
    told = status.summary([row])
    assert told["summary"]["missingRequirements"] == told["summary"]["changedSinceInstall"] == 1
    assert told["disabled"] == ["Trip Kit"]
    assert told["changedSinceInstall"] == [{"name": "Trip Kit", "added": [], "changed": ["SKILL.md"], "gone": []}]
