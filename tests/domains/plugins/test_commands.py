"""Commands of plugins: listed from manifests, never in the place of another, and contained when they fail."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from garra.config.paths import Paths, resolve
from garra.core.errors import UserError
from garra.domains.plugins import commands, load
from garra.domains.plugins.commands import Found

pytestmark = pytest.mark.req("BOOT-03")
MANIFEST = 'id = "{id}"\nkind = "plugin"\n[[command]]\nname = "{command}"\nsummary = "s"\nmodule = "code:run"\n'
SHIPPED = frozenset({"status"})


class Here:
    config: Mapping[str, Any] = {}
    state = Path("/nowhere")

    def call(self, method: str, params: Mapping[str, Any] | None = None) -> Any:
        raise UserError(f"{method} is refused")


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return resolve({"HOME": str(tmp_path)})


def plugin(paths: Paths, name: str, command: str, code: str = "") -> None:
    folder = paths.extensions / name
    folder.mkdir(parents=True)
    (folder / "manifest.toml").write_text(MANIFEST.format(id=name, command=command))
    (folder / "code.py").write_text(code)


def find(paths: Paths, *on: str, **more: Any) -> Found:
    return commands.find(paths, {"entries": {name: {"enabled": True} for name in on}, **more}, SHIPPED)


def test_those_of_plugins_that_are_on_are_there_and_no_code_runs(paths: Paths) -> None:
    plugin(paths, "a", "greet", "raise RuntimeError")
    plugin(paths, "b", "other")
    found = find(paths, "a")
    assert [one.command.name for one in found.brought] == ["greet"]
    assert found.named("greet") == found.brought[0]
    assert found.named("other") is None
    assert find(paths, "a", enabled=False).brought == ()
    assert find(paths, "a", deny=["a"]).brought == ()


def test_whose_command_it_would_be_is_known_of_one_that_is_off(paths: Paths) -> None:
    plugin(paths, "a", "greet")
    found = commands.off(paths, {"deny": ["a"]}, "greet")
    assert found is not None
    assert (found.id, found.reason) == ("a", "denied by plugins.deny")
    assert commands.off(paths, {"entries": {"a": {"enabled": True}}}, "greet") is None
    assert commands.off(paths, {}, "other") is None


def test_a_name_that_is_taken_is_refused_in_a_line(paths: Paths) -> None:
    for name, command in (("a", "status"), ("b", "greet"), ("c", "greet")):
        plugin(paths, name, command)
    found = find(paths, "a", "b", "c")
    assert [(one.plugin.id, one.command.name) for one in found.brought] == [("b", "greet")]
    assert [name for name, _ in found.refused] == ["a", "c"]
    assert "Garra has one" in found.refused[0][1]
    assert "plugin b has one" in found.refused[1][1]


@pytest.mark.parametrize(
    "settings", [{}, {"entries": []}, {"entries": {"a": 1}}, {"deny": "a", "allow": 3, "entries": None}]
)
def test_settings_that_are_none_switch_nothing_on(paths: Paths, settings: Mapping[str, Any]) -> None:
    plugin(paths, "a", "greet")
    assert commands.find(paths, settings, SHIPPED) == Found()


def outcome(paths: Paths, code: str) -> int:
    plugin(paths, paths.home.name.replace("_", "-").lower(), "greet", code)
    (one,) = find(paths, paths.home.name.replace("_", "-").lower()).brought
    return load.command(one.plugin, one.command, ["x"], Here())


@pytest.mark.parametrize(("gives", "code"), [("None", 0), ("3", 3), ("len(arguments)", 1)])
def test_its_exit_code_is_that_of_the_program(paths: Paths, gives: str, code: int) -> None:
    assert outcome(paths, f"def run(arguments, context):\n    return {gives}\n") == code


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("import nothing_of_that_name", "does not load: ModuleNotFoundError"),
        ("def other(): ...", "code has no run"),
        ("def run(arguments, context):\n    raise KeyError('two\\nlines')", r"greet failed: KeyError: .*two"),
        ("def run(arguments, context):\n    return 'done'", "no exit code"),
        ("def run(arguments):\n    return 0", "greet failed: TypeError"),
    ],
)
def test_a_broken_one_is_a_line_that_names_its_plugin(paths: Paths, code: str, says: str) -> None:
    with pytest.raises(load.Broken, match=says) as caught:
        outcome(paths, code)
    assert caught.value.message.startswith("plugin ")
    assert "\n" not in caught.value.message


def test_what_it_says_itself_is_said(paths: Paths) -> None:
    with pytest.raises(UserError, match="health is refused"):
        outcome(paths, "def run(arguments, context):\n    context.call('health')\n")
