"""A group of commands: what a wrong word is told, and what the group alone says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faces.cli.test_channels import garra

GROUPS = ("channels", "config", "devices", "gateway", "message", "messages", "models", "pairing", "plugins", "sessions")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("channels lst", "no command 'lst' under channels; did you mean list?"),
        ("gateway stats", "no command 'stats' under gateway; did you mean status?"),
        ("models sett", "no command 'sett' under models; did you mean set?"),
        ("config gte", "no command 'gte' under config; did you mean get?"),
        ("plugins make", "no command 'make' under plugins; there are: list, install, new"),
        ("agent hello", "no command 'hello' under agent; there are: exec"),
    ],
)
def test_a_wrong_word_is_one_line(tmp_path: Path, line: str, said: str) -> None:
    done = garra(tmp_path, *line.split())
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"garra: {said}\n")


def test_every_group_says_it(tmp_path: Path) -> None:
    for group in GROUPS:
        done = garra(tmp_path, group, "xyzzy")
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        assert done.stderr.startswith(f"garra: no command 'xyzzy' under {group}; ")


def test_a_group_says_what_stands_below_it(tmp_path: Path) -> None:
    said = garra(tmp_path, "gateway", "--help").stdout
    for name in ("run", "status", "probe", "call", "schema"):
        assert f"  garra gateway {name} " in said
    assert "--port" in garra(tmp_path, "gateway", "run", "--help").stdout
    assert "whether it works" in garra(tmp_path, "plugins", "list", "--help").stdout
    assert "how to switch it on" in " ".join(garra(tmp_path, "plugins", "new", "--help").stdout.split())


def test_plugins_alone_lists_them(tmp_path: Path) -> None:
    assert garra(tmp_path, "plugins").stdout == garra(tmp_path, "plugins", "list").stdout
    assert garra(tmp_path, "plugins", "--json").stdout.startswith("{")
