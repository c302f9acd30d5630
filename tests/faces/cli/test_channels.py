"""`garra channels` on a real state folder, as a real process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


def garra(state: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(state),
        "GARRA_STATE_DIR": str(state),
        "GARRA_GATEWAY_PORT": "1",  # nobody is there, also where a gateway runs
        "NO_COLOR": "1",
        **more,
    }
    command = [sys.executable, "-m", "garra", *arguments]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=15, stdin=subprocess.DEVNULL)


def listed(state: Path, *arguments: str, **more: str) -> dict[str, Any]:
    done = garra(state, "channels", "list", "--json", *arguments, **more)
    assert (done.returncode, done.stderr) == (0, "")
    return {channel["id"]: channel for channel in json.loads(done.stdout)["channels"]}


def accounts(state: Path, **more: str) -> dict[str, Any]:
    found = listed(state, **more).get("telegram", {"accounts": []})
    return {account["accountId"]: account for account in found["accounts"]}


def written(state: Path) -> Any:
    return json.loads((state / "garra.json").read_text())["channels"]["telegram"]


def test_without_an_account_the_way_to_one_is_shown(tmp_path: Path) -> None:
    done = garra(tmp_path, "channels")
    assert "garra channels add telegram --token TOKEN" in done.stdout
    assert "telegram" in listed(tmp_path, "--all")


def test_accounts_come_and_go(tmp_path: Path) -> None:
    done = garra(tmp_path, "channels", "add", "telegram", "--token", "7:secret-token", "--set", "dmPolicy=open")
    assert (done.returncode, done.stderr) == (0, "")
    assert "secret-token" not in done.stdout
    assert written(tmp_path) == {"enabled": True, "botToken": "7:secret-token", "dmPolicy": "open"}
    garra(tmp_path, "channels", "add", "--channel", "telegram", "--account", "work", "--token", "8:b", "--name", "Work")
    assert set(accounts(tmp_path)) == {"default", "work"}
    assert accounts(tmp_path)["work"]["name"] == "Work"
    shown = garra(tmp_path, "channels", "list")
    assert "telegram/work" in shown.stdout
    assert "secret-token" not in shown.stdout
    garra(tmp_path, "channels", "remove", "telegram")
    assert not accounts(tmp_path)["default"]["enabled"]
    garra(tmp_path, "channels", "remove", "telegram", "--account", "work", "--delete")
    assert set(accounts(tmp_path)) == {"default"}


def test_a_token_from_the_environment_or_a_file(tmp_path: Path) -> None:
    done = garra(tmp_path, "channels", "add", "telegram", "--use-env")
    assert done.returncode == 1
    assert "no credential" in done.stderr
    assert accounts(tmp_path, TELEGRAM_BOT_TOKEN="7:x")["default"]["configured"]
    secret, link = tmp_path / "token", tmp_path / "link"
    secret.write_text("9:file\n")
    link.symlink_to(secret)
    garra(tmp_path, "channels", "add", "telegram", "--account", "f", "--token-file", str(secret))
    garra(tmp_path, "channels", "add", "telegram", "--account", "l", "--token-file", str(link))
    found = accounts(tmp_path)
    assert found["f"]["fault"] is None
    assert "no plain file" in found["l"]["fault"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("add",), "which channel?"),
        (("add", "telegram"), "--token-file FILE or --use-env"),
        (("add", "nowhere", "--token", "x"), "there is no channel 'nowhere' here"),
        (("remove", "telegram"), "there is no account telegram/default"),
        (("start", "telegram"), "the gateway holds the links: no gateway answers"),
        (("add", "telegram", "--token", "notatoken"), "like 123456789:AAE"),
        (("add", "telegram", "--token", "7:a b"), "does not look like its botToken"),
        (("add", "telegram", "--account", " ", "--token", "x"), "--account is empty"),
    ],
)
def test_what_cannot_be_is_told_in_a_line(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    done = garra(tmp_path, "channels", *words)
    assert done.returncode == 1
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


MANIFEST = """
id = "toy"
kind = "channel"
api = {api}
name = "Toy"
module = "channel:Toy"
[settings]
type = "object"
properties = {{ token = {{ type = "string", secret = true }}, room = {{ type = "integer" }} }}
"""


@pytest.mark.req("CH-18")
def test_a_channel_is_known_by_its_manifest_alone(tmp_path: Path) -> None:
    folder = tmp_path / "extensions" / "toy"
    folder.mkdir(parents=True)
    (folder / "manifest.toml").write_text(MANIFEST.format(api=1))
    (folder / "channel.py").write_text("raise SystemExit('this code must not run')")
    config: dict[str, Any] = {
        "plugins": {"entries": {"toy": {"enabled": True}}},
        "channels": {"toy": {"token": "t", "room": "many"}},
    }
    (tmp_path / "garra.json").write_text(json.dumps(config))
    (account,) = listed(tmp_path)["toy"]["accounts"]
    assert account["fault"].startswith("channels.toy.room: ")
    (folder / "manifest.toml").write_text(MANIFEST.format(api=99))
    assert "toy" not in listed(tmp_path, "--all")
    assert "Update Garra" in garra(tmp_path, "plugins", "list", "--json").stdout


def test_a_credential_that_replaces_another_says_so(tmp_path: Path) -> None:
    assert "telegram/default is added." in garra(tmp_path, "channels", "add", "telegram", "--token", "7:a").stdout
    again = garra(tmp_path, "channels", "add", "telegram", "--token", "8:b").stdout
    assert "is added" not in again
    assert "replaces what it had" in again


def test_the_help_of_adding_says_where_a_token_comes_from(tmp_path: Path) -> None:
    said = garra(tmp_path, "channels", "add", "telegram", "--help").stdout
    for words in ("/newbot to @BotFather", "examples:", "garra channels add telegram --token 123456789:AAE"):
        assert words in said


def test_a_status_without_a_gateway_says_what_to_do(tmp_path: Path) -> None:
    port = {"GARRA_GATEWAY_PORT": "1"}
    done = garra(tmp_path, "channels", "status", **port)
    assert "Start one with: garra gateway run" in done.stderr
    assert "garra channels add telegram --token TOKEN" in done.stdout


def test_an_account_that_needs_no_credential(tmp_path: Path) -> None:
    short = garra(tmp_path, "channels", "add", "irc", "--set", "host=irc.example.net")
    assert "channels.irc.nick: is required" in short.stderr
    done = garra(tmp_path, "channels", "add", "irc", "--set", "nick=bot", "--set", 'channels=["#room"]')
    assert (done.returncode, done.stderr) == (0, "")
    garra(tmp_path, "config", "set", "channels.irc.nickserv.password", "hunter22")
    (account,) = listed(tmp_path)["irc"]["accounts"]
    assert (account["configured"], account["fault"]) == (True, None)
    assert account["sources"]["nickserv.password"] == "config"
    assert "hunter22" not in garra(tmp_path, "config", "get", "channels.irc").stdout
