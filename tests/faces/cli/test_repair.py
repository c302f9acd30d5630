"""How a broken configuration is shown: the line, the column, and no secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from garra.config.load import load
from garra.config.paths import resolve
from garra.faces.cli.place import Place
from garra.faces.cli.repair import Look, explained
from garra.io.env import Environment

pytestmark = pytest.mark.req("BOOT-07")


def place(home: Path, text: str) -> Place:
    env = Environment({"HOME": str(home)})
    paths = resolve(env)
    paths.state.mkdir()
    paths.config_file.write_text(text)
    return Place(env, paths)


def lines(home: Path, text: str) -> list[str]:
    here = place(home, text)
    return Look(here, load(here.paths, here.env)).lines()[1:]


def test_line_column_and_what_stands_there(tmp_path: Path) -> None:
    assert lines(tmp_path, '{gateway: {\n  port: "many"}}') == [
        "  line 2, column 9: gateway.port: Invalid input: expected a valid integer, received text",
        '        port: "many"}}',
        "              ^",
    ]


def test_a_secret_on_the_line_is_not_shown_and_then_there_is_no_mark(tmp_path: Path) -> None:
    shown = lines(tmp_path, "{gateway: {auth: {token: sesame-sesame }}}")
    assert len(shown) == 2
    assert "sesame" not in "".join(shown)
    assert "line 1, column 26" in shown[0]


@pytest.mark.parametrize("text", ["", "[1]"])
def test_what_has_no_place_is_told_alone(tmp_path: Path, text: str) -> None:
    assert len(lines(tmp_path, text)) == 1


def test_without_a_last_good_one_none_is_promised(tmp_path: Path) -> None:
    here = place(tmp_path, "{")
    told = explained(here, load(here.paths, here.env))
    assert "garra repair" in told
    assert "config restore" not in told


def test_a_wrong_choice_is_a_fault_with_the_choices(tmp_path: Path) -> None:
    shown = lines(tmp_path, "{channels: {telegram: {dmPolicy: 'opn'}}}")
    assert shown[0].startswith("  line 1, column 34: channels.telegram.dmPolicy: unknown value")
    assert '"open"' in shown[0]
