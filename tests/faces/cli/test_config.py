"""What `garra config` says after a change, as a real process."""

from __future__ import annotations

import json
from pathlib import Path

from tests.faces.cli.test_channels import garra


def test_what_waits_for_a_restart_is_named(tmp_path: Path) -> None:
    said = garra(tmp_path, "config", "set", "gateway.port", "18600").stdout
    assert said == "gateway.port is set to 18600. A running gateway takes gateway.port over when it is restarted.\n"
    said = garra(tmp_path, "config", "set", "session.dmScope", "main").stdout
    assert said.endswith("A running gateway takes it over within a second.\n")
    said = garra(tmp_path, "config", "unset", "gateway.port").stdout
    assert said == "gateway.port is no longer set. A running gateway takes gateway.port over when it is restarted.\n"


def test_a_gateway_that_does_not_follow_the_file_has_to_be_restarted(tmp_path: Path) -> None:
    garra(tmp_path, "config", "set", "gateway.reload.mode", "off")
    said = garra(tmp_path, "config", "set", "session.dmScope", "main").stdout
    assert said.endswith("A running gateway takes it over when it is restarted.\n")


def test_a_plugin_that_is_not_there_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "extensions" / "dice"
    garra(tmp_path, "plugins", "new", "tool", "dice", "--dir", str(folder.parent))
    done = garra(tmp_path, "config", "set", "plugins.entries.dce.enabled", "true")
    assert done.returncode == 0
    assert "plugins.entries.dce: no plugin is called dce; did you mean dice?" in done.stderr
    found = json.loads(garra(tmp_path, "config", "validate", "--json").stdout)
    assert (found["valid"], [row["path"] for row in found["warnings"]]) == (True, ["plugins.entries.dce"])
    assert "see garra plugins list" in garra(tmp_path, "config", "set", "plugins.entries.qqqq.enabled", "true").stderr
    garra(tmp_path, "config", "unset", "plugins.entries.dce")
    garra(tmp_path, "config", "unset", "plugins.entries.qqqq")
    assert garra(tmp_path, "config", "set", "plugins.entries.dice.enabled", "true").stderr == ""


def test_plugins_that_are_no_object_are_only_not_valid(tmp_path: Path) -> None:
    (tmp_path / "garra.json").write_text('{"plugins": "dice"}')
    done = garra(tmp_path, "config", "validate")
    assert done.returncode == 1
    assert "Config is invalid" in done.stderr


def test_a_value_that_cannot_be_used_is_refused_and_those_that_can_are_named(tmp_path: Path) -> None:
    done = garra(tmp_path, "config", "set", "channels.telegram.dmPolicy", "opn")
    assert (done.returncode, done.stdout) == (1, "")
    assert '"pairing", "allowlist", "open", "disabled"' in done.stderr
    assert not (tmp_path / "garra.json").exists()
    done = garra(tmp_path, "config", "set", "channels.telegram.replyToMode", "frist")
    assert (done.returncode, '"first"' in done.stderr) == (1, True)


def test_what_a_channel_says_is_text_stays_text(tmp_path: Path) -> None:
    garra(tmp_path, "config", "set", "channels.telegram.accounts.a.botToken", "12")
    found = json.loads((tmp_path / "garra.json").read_text())
    assert found["channels"]["telegram"]["accounts"]["a"]["botToken"] == "12"


def test_only_what_was_set_is_warned_of(tmp_path: Path) -> None:
    (tmp_path / "garra.json").write_text('{"gateway": {"prot": 1}}')
    done = garra(tmp_path, "config", "set", "agents.defaults.modle", "a/b")
    assert (
        done.stderr == '  ! agents.defaults.modle: Unrecognized key: "modle" (kept, not used; did you mean "model"?)\n'
    )
    assert garra(tmp_path, "config", "set", "session.dmScope", "main").stderr == ""
    (tmp_path / "patch.json").write_text('{"channels": {"irc": {"hsot": "x"}}}')
    done = garra(tmp_path, "config", "patch", "--file", str(tmp_path / "patch.json"))
    assert (done.stderr.count("\n"), "channels.irc.hsot" in done.stderr) == (1, True)
    assert "gateway.prot" in garra(tmp_path, "config", "validate").stdout


def test_plugins_stand_in_order_and_a_broken_one_tells_no_long_path(tmp_path: Path) -> None:
    for name, manifest in (("zebra", "id ="), ("ant", "id =")):
        folder = tmp_path / "extensions" / name
        folder.mkdir(parents=True)
        (folder / "manifest.toml").write_text(manifest)
    shown = garra(tmp_path, "plugins", "list").stdout
    names = [line.split()[0] for line in shown.splitlines()[1:]]
    assert names == sorted(names)
    assert str(tmp_path) not in shown
