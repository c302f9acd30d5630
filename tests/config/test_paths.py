from __future__ import annotations

from pathlib import Path

import pytest

from garra.config.paths import resolve
from garra.config.sections import Config
from garra.core.errors import UserError
from tests.config.place import Installation


@pytest.mark.req("BOOT-11")
def test_variables_move_the_folder_and_the_file(tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path)}
    assert resolve(home).config_file == tmp_path / ".garra" / "garra.json"
    assert resolve({**home, "GARRA_STATE_DIR": "~/s"}).config_file == tmp_path / "s" / "garra.json"
    moved = resolve({**home, "GARRA_STATE_DIR": "/s", "GARRA_CONFIG_PATH": "/c/my.json"})
    assert (moved.state, moved.config_file, moved.last_good) == (
        Path("/s"),
        Path("/c/my.json"),
        Path("/s/my.json.last-good"),
    )
    assert resolve({**home, "GARRA_PROFILE": "dev"}).state == tmp_path / ".garra-dev"
    assert resolve({**home, "GARRA_PROFILE": "default"}).state == tmp_path / ".garra"


@pytest.mark.parametrize("name", ["../x", "a/b", "a b", ".."])
def test_a_profiles_name_is_no_path(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError, match="GARRA_PROFILE"):
        resolve({"HOME": str(tmp_path), "GARRA_PROFILE": name})


@pytest.mark.req("BOOT-11", "COF-22", "COF-23")
def test_in_compatibility_mode_it_stands_in_openclaws_place(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path), "GARRA_COMPAT": "openclaw", "GARRA_STATE_DIR": "/other"}
    paths = resolve(env)
    assert paths.compat
    assert paths.config_file == tmp_path / ".openclaw" / "openclaw.json"
    assert paths.skills == tmp_path / ".openclaw" / "skills"
    assert paths.extensions == tmp_path / ".openclaw" / "extensions"
    assert paths.workspace("main", Config()) == tmp_path / ".openclaw" / "workspace"
    moved = resolve({**env, "OPENCLAW_STATE_DIR": "/s", "OPENCLAW_CONFIG_PATH": "/c.json"})
    assert (moved.state, moved.config_file) == (Path("/s"), Path("/c.json"))
    assert moved.variable({"OPENCLAW_GATEWAY_PORT": " 5 ", "GARRA_GATEWAY_PORT": "6"}, "GATEWAY_PORT") == "5"


def test_each_agent_has_its_own_workspace(here: Installation) -> None:
    paths, home = here.paths, here.home
    assert paths.sessions("main") == paths.state / "agents" / "main" / "sessions"
    two = Config.model_validate({"agents": {"entries": {"a": {"workspace": "~/w"}, "b": {}}}})
    assert paths.workspace("a", two) == home / "w"
    assert paths.workspace("b", two) == paths.state / "workspace-b"
    common = Config.model_validate({"agents": {"defaults": {"workspace": "work"}, "list": [{"id": "a"}, {"id": "b"}]}})
    assert paths.workspace("a", common) == paths.state / "work"
    assert paths.workspace("b", common) == paths.state / "work" / "b"
    assert paths.expand("~") == home
