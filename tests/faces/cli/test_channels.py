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
    done = garra(tmp_path, "channels", "add", "telegram", "--token", "7:secret-token", "--set", "dmPolicy=allowlist")
    assert (done.returncode, done.stderr) == (0, "")
    assert "secret-token" not in done.stdout
    assert written(tmp_path) == {"enabled": True, "botToken": "7:secret-token", "dmPolicy": "allowlist"}
    garra(tmp_path, "channels", "add", "--channel", "telegram", "--account", "work", "--token", "8:b", "--name", "Work")
    assert set(accounts(tmp_path)) == {"default", "work"}
    assert accounts(tmp_path)["work"]["name"] == "Work"
    shown = garra(tmp_path, "channels", "list")
    assert "telegram/work" in shown.stdout
    assert "secret-token" not in shown.stdout
    off = garra(tmp_path, "channels", "remove", "telegram").stdout
    assert "channels add telegram" in off
    assert "channels remove telegram --delete" in off
    assert {name: found["enabled"] for name, found in accounts(tmp_path).items()} == {"default": False, "work": True}
    garra(tmp_path, "channels", "add", "telegram", "--set", "dmPolicy=pairing")
    assert accounts(tmp_path)["default"]["enabled"]
    garra(tmp_path, "channels", "remove", "telegram", "--delete")
    assert set(accounts(tmp_path)) == {"work"}
    assert accounts(tmp_path)["work"]["configured"]
    garra(tmp_path, "channels", "remove", "telegram", "--account", "work", "--delete")
    assert not accounts(tmp_path)


def test_an_account_is_deleted_however_much_of_the_file_it_is(tmp_path: Path) -> None:
    garra(tmp_path, "channels", "add", "telegram", "--token", "7:a")
    garra(tmp_path, "config", "set", "channels.telegram.groups", json.dumps({"*": {"systemPrompt": "x" * 2000}}))
    done = garra(tmp_path, "channels", "remove", "telegram", "--delete")
    assert (done.returncode, done.stdout, done.stderr) == (0, "telegram/default is deleted.\n", "")
    assert not accounts(tmp_path)


def test_what_an_irc_account_shares_with_others_stays(tmp_path: Path) -> None:
    garra(tmp_path, "channels", "add", "irc", "--set", "host=irc.example.net", "--set", "nick=bot")
    garra(tmp_path, "channels", "add", "irc", "--account", "libera", "--set", "host=irc.libera.chat")
    done = garra(tmp_path, "channels", "remove", "irc", "--delete")
    assert "irc/default is off." in done.stdout
    assert "stay" in done.stdout
    found = {each["accountId"]: each for each in listed(tmp_path)["irc"]["accounts"]}
    assert {name: each["enabled"] for name, each in found.items()} == {"default": False, "libera": True}
    assert found["libera"]["fault"] is None


def test_a_token_from_the_environment_or_a_file(tmp_path: Path) -> None:
    done = garra(tmp_path, "channels", "add", "telegram", "--use-env")
    assert done.returncode == 1
    assert "TELEGRAM_BOT_TOKEN is not set" in done.stderr
    assert not accounts(tmp_path)
    env = {"TELEGRAM_BOT_TOKEN": "7:x"}
    assert garra(tmp_path, "channels", "add", "telegram", "--use-env", **env).returncode == 0
    assert accounts(tmp_path, **env)["default"]["configured"]
    secret, link = tmp_path / "token", tmp_path / "link"
    secret.write_text("9:file\n")
    link.symlink_to(secret)
    garra(tmp_path, "channels", "add", "telegram", "--account", "f", "--token-file", str(secret))
    linked = garra(tmp_path, "channels", "add", "telegram", "--account", "l", "--token-file", str(link))
    assert accounts(tmp_path)["f"]["fault"] is None
    assert "telegram/l: its botToken cannot be read" in linked.stderr
    assert "no plain file" in linked.stderr
    assert set(accounts(tmp_path, **env)) == {"default", "f"}


def test_a_variable_that_is_not_set_takes_nothing_away(tmp_path: Path) -> None:
    garra(tmp_path, "channels", "add", "telegram", "--token", "7:a")
    garra(tmp_path, "channels", "add", "telegram", "--account", "work", "--token", "8:b")
    before = written(tmp_path)
    done = garra(tmp_path, "channels", "add", "telegram", "--use-env")
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert written(tmp_path) == before
    other = garra(tmp_path, "channels", "add", "irc", "--account", "libera", "--use-env")
    assert "IRC_PASSWORD is not set" in other.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("add",), "which channel?"),
        (("add", "telegram"), "--token-file FILE or --use-env"),
        (("add", "nowhere", "--token", "x"), "there is no channel 'nowhere' here; there is discord, email"),
        (("add", "telegramm", "--token", "x"), "did you mean telegram?"),
        (("add", "telegram", "--token", "7:a", "--set", "dmPolicy=opne"), '--set dmPolicy: must be one of "pairing", '),
        (("add", "slack", "--token", "xoxb-1"), "slack/default: its appToken is missing (the App-Level Token"),
        (("add", "slack", "--token", "xoxb-1"), "give it by --set appToken=…"),
        (("add", "slack", "--token", "xoxb-1", "--set", "appToken=1"), "--set appToken gives does not look like"),
        (("add", "irc"), "its host is missing (the server's name): give it by --set host=…; its nick is missing"),
        (("add", "matrix", "--set", "homeserver=foo"), "--set homeserver: is to be the homeserver's address"),
        (("add", "matrix", "--set", "userId=bot"), "--set userId: is to be the whole id, like @bot:example.org"),
        (("add", "matrix", "--set", "homeserver=https://m.example"), "no login: give --set accessToken=…, or --set u"),
        (("add", "xmpp", "--token", "p", "--set", "jid=nonsense"), "--set jid: is to be the bot's address"),
        (("add", "email", "--token-file", "/nonexistent"), "its address is missing"),
        (("add", "telegram", "--token-file", "/nonexistent"), "its botToken cannot be read: /nonexistent: No such"),
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
    assert not (tmp_path / "garra.json").exists()


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
    assert "Start one with: " in done.stderr
    assert "gateway run" in done.stderr
    assert "garra channels add telegram --token TOKEN" in done.stdout


def test_an_account_that_needs_no_credential(tmp_path: Path) -> None:
    words = ("--set", "host=irc.example.net", "--set", "nick=bot", "--set", 'channels=["#room"]')
    done = garra(tmp_path, "channels", "add", "irc", *words)
    assert (done.returncode, done.stderr) == (0, "")
    garra(tmp_path, "config", "set", "channels.irc.nickserv.password", "hunter22")
    (account,) = listed(tmp_path)["irc"]["accounts"]
    assert (account["configured"], account["fault"]) == (True, None)
    assert account["sources"]["nickserv.password"] == "config"
    assert "hunter22" not in garra(tmp_path, "config", "get", "channels.irc").stdout


def test_what_comes_next_is_said(tmp_path: Path) -> None:
    done = garra(tmp_path, "channels", "add", "telegram", "--token", "7:a").stdout
    assert "No gateway runs here; start it:" in done
    assert "answers with a code" in done
    assert "pairing approve telegram CODE" in done
    more = garra(tmp_path, "channels", "add", "telegram", "--set", "dmPolicy=open")
    assert "is changed" in more.stdout
    assert 'without "*" in allowFrom' in more.stderr
    assert "CODE" not in more.stdout


def test_a_setting_that_nobody_reads_is_told(tmp_path: Path) -> None:
    words = ("--set", "alowFrom=[1]", "--set", "foo=1", "--set", "groups.x.requireMention=false")
    done = garra(tmp_path, "channels", "add", "telegram", "--token", "7:a", *words)
    assert done.returncode == 0
    assert "nothing here reads alowFrom; did you mean allowFrom?" in done.stderr
    assert "nothing here reads foo" in done.stderr
    assert written(tmp_path)["groups"] == {"x": {"requireMention": False}}


def test_a_webhook_that_sends_nothing_out_says_so(tmp_path: Path) -> None:
    secret = "whsec_" + "A" * 32
    done = garra(tmp_path, "channels", "add", "webhook", "--token", secret)
    assert "it has no url: nothing goes out" in done.stderr
    near = garra(tmp_path, "channels", "add", "webhook", "--set", "url=http://127.0.0.1:9/x")
    assert "called only with allowPrivateNetwork=true" in near.stderr
    fine = garra(tmp_path, "channels", "add", "webhook", "--set", "allowPrivateNetwork=true")
    assert (fine.returncode, fine.stderr) == (0, "")


def test_looking_at_one_channel(tmp_path: Path) -> None:
    port = {"GARRA_GATEWAY_PORT": "1"}
    assert "there is no channel 'foo' here" in garra(tmp_path, "channels", "status", "--channel", "foo", **port).stderr
    none = garra(tmp_path, "channels", "list", "--channel", "irc").stdout
    assert none.startswith("irc has no account. Add one: ")
    assert "channels add irc" in none
