"""`garra models auth`, `aliases`, `fallbacks`, `refresh`, as a person and a program use them."""

from __future__ import annotations

import io
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from garra.config.paths import resolve
from garra.faces.cli.models import run
from garra.faces.cli.place import Place
from garra.io.env import Environment

Ask = Callable[..., tuple[int, str, str]]
KEY, TOKEN = "sk-test-0123456789abcdef", "sk-ant-oat01-0123456789abcdef"


@contextmanager
def piped(text: str) -> Iterator[None]:
    """Standard input is a pipe that has this text."""
    real, sys.stdin = sys.stdin, io.StringIO(text)
    try:
        yield
    finally:
        sys.stdin = real


@pytest.fixture
def ask(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Ask:
    def asked(*words: str, typed: str = "", **variables: str) -> tuple[int, str, str]:
        env = Environment({"HOME": str(tmp_path), "GARRA_STATE_DIR": str(tmp_path), **variables})
        with piped(typed):
            code = run(words, Place(env, resolve(env)))
        said = capfd.readouterr()
        assert KEY not in said.out + said.err
        assert TOKEN not in said.out + said.err
        return code, said.out, said.err

    return asked


def listed(ask: Ask, *words: str) -> Any:
    code, out, _ = ask("auth", "list", "--json", *words)
    assert code == 0
    return json.loads(out)


def test_a_key_that_is_pasted(ask: Ask, tmp_path: Path) -> None:
    assert ask("auth", "list")[1] == "No logins are kept. `garra models auth login --provider NAME` makes one.\n"
    assert not (tmp_path / "state.db").exists()
    code, out, _ = ask("auth", "paste-api-key", "--provider", "openai", typed=f"{KEY}\n")
    assert (code, out.split(" (")[0]) == (0, "openai:manual is kept")
    assert (tmp_path / "state.db").stat().st_mode & 0o777 == 0o600
    found = listed(ask)
    assert (found["agentId"], found["provider"]) == ("main", None)
    assert found["profiles"] == [
        {"id": "openai:manual", "provider": "openai", "type": "api_key", "label": "openai:manual"}
    ]
    told = json.loads(ask("status", "--json")[1])
    assert told["auth"]["oauth"]["profiles"][0]["status"] == "static"
    ask("set", "openai/gpt-6-sol")
    assert json.loads(ask("status", "--json")[1])["available"]
    assert ask("status", "--check")[0] == 0


def test_a_subscriptions_token(ask: Ask) -> None:
    code, _, err = ask("auth", "setup-token", typed="sk-ant-api03-x")
    assert (code, "begins with sk-ant-oat01-" in err) == (1, True)
    assert ask("auth", "paste-api-key", "--provider", "anthropic", typed=TOKEN)[0] == 1
    assert ask("auth", "setup-token", typed=TOKEN)[0] == 0
    assert listed(ask)["profiles"][0]["expiresAt"].endswith("Z")
    assert ask("auth", "paste-token", "--provider", "anthropic", "--expires-in", "12h", typed=TOKEN)[0] == 0
    ask("set", "anthropic/claude-sonnet-5")
    assert ask("status", "--check")[0] == 2
    assert "expiring" in ask("auth", "list")[1]
    assert ask("auth", "paste-token", "--provider", "anthropic", "--expires-in", "soon", typed=TOKEN)[0] == 1


@pytest.mark.req("MODEL-21")
def test_claudes_own_login_is_shown_and_used(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / ".claude").mkdir()
    login = {"accessToken": TOKEN, "expiresAt": int(time.time() * 1000) + 9_000_000}
    (tmp_path / ".claude" / ".credentials.json").write_text(json.dumps({"claudeAiOauth": login}))
    found = listed(ask, "--provider", "anthropic")["profiles"][0]
    assert (found["id"], found["managedBy"]) == ("anthropic:claude-cli", "claude")
    told = json.loads(ask("status", "--json")[1])
    assert (told["resolvedDefault"], told["available"]) == ("anthropic/claude-sonnet-5", True)
    assert "log out there" in ask("auth", "logout", "anthropic:claude-cli", "--yes")[2]
    assert json.loads((tmp_path / ".claude" / ".credentials.json").read_text())["claudeAiOauth"] == login


def test_the_order_and_the_end(ask: Ask, tmp_path: Path) -> None:
    for name in ("work", "home"):
        ask("auth", "paste-api-key", "--provider", "openai", "--profile-id", f"openai:{name}", typed=KEY)
    order = ("auth", "order", "--provider", "openai")
    assert json.loads(ask("auth", "order", "get", "--provider", "openai", "--json")[1])["order"] is None
    assert ask("auth", "order", "set", "openai:nosuch", "--provider", "openai")[0] == 1
    assert ask("auth", "order", "set", "openai:work", "openai:home", "--provider", "openai")[0] == 0
    found = json.loads(ask("auth", "order", "get", "--provider", "openai", "--json")[1])
    assert found["order"] == ["openai:work", "openai:home"]
    assert ask(*order[:2], "clear", *order[2:])[0] == 0
    (tmp_path / "garra.json").write_text('{auth: {order: {openai: ["openai:work"]}}}')
    assert ask("auth", "logout", "openai:work", "--yes")[0] == 0
    assert "openai:work" not in (tmp_path / "garra.json").read_text()
    assert [each["id"] for each in listed(ask)["profiles"]] == ["openai:home"]
    assert ask("auth", "logout", "openai:work", "--yes")[0] == 1


def test_an_agent_may_not_change_logins(ask: Ask) -> None:
    assert ask("auth", "paste-api-key", "--provider", "openai", typed=KEY, GARRA_SHELL="1")[0] == 1
    assert listed(ask)["profiles"] == []


@pytest.mark.parametrize(
    ("words", "typed", "line"),
    [
        (("login",), "", "--provider NAME"),
        (("login", "--provider", "nosuch"), "", "no provider 'nosuch'"),
        (("login", "--provider", "groq", "--method", "x"), "", "no login 'x'; there are: api-key"),
        (("login", "--provider", "groq", "--device-code"), "", "no login of the kind oauth"),
        (("login", "--provider", "local"), "", "needs no login"),
        (("login", "--provider", "groq"), "two words", "no key or token"),
        (("login", "--provider", "groq", "--profile-id", "a b"), KEY, "no name for a login"),
        (("order", "set", "--provider", "groq"), "", "name the logins"),
    ],
)
def test_bad_input(ask: Ask, words: tuple[str, ...], typed: str, line: str) -> None:
    code, out, err = ask("auth", *words, typed=typed)
    assert (code, out) == (1, "")
    assert line in err


def test_aliases(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "garra.json").write_text("{/* mine */ agents: {defaults: {model: 'groq/x'}}}")
    assert ask("aliases")[1] == "No aliases.\n"
    assert ask("aliases", "add", "fast", "openai/gpt-6-luna")[0] == 0
    assert json.loads(ask("aliases", "list", "--json")[1]) == {"aliases": {"fast": "openai/gpt-6-luna"}}
    assert ask("aliases", "add", "fast", "openai/gpt-6-sol")[0] == 0
    assert ask("aliases", "list", "--plain")[1] == "fast openai/gpt-6-sol\n"
    assert ask("aliases", "add", "a/b", "fast")[0] == 1
    assert ask("aliases", "remove", "slow")[0] == 1
    assert ask("aliases", "remove", "fast")[0] == 0
    assert "/* mine */" in (tmp_path / "garra.json").read_text()


@pytest.mark.parametrize(("step", "where"), [("fallbacks", "model"), ("image-fallbacks", "imageModel")])
def test_fallbacks(ask: Ask, tmp_path: Path, step: str, where: str) -> None:
    (tmp_path / "garra.json").write_text(json.dumps({"agents": {"defaults": {where: "groq/x"}}}))
    assert ask(step)[1] == "No fallbacks.\n"
    for name in ("openai/gpt-6-luna", "openai/gpt-6-sol", "openai/gpt-6-luna"):
        assert ask(step, "add", name)[0] == 0
    assert json.loads(ask(step, "list", "--json")[1]) == {"fallbacks": ["openai/gpt-6-sol", "openai/gpt-6-luna"]}
    assert json.loads((tmp_path / "garra.json").read_text())["agents"]["defaults"][where]["primary"] == "groq/x"
    assert ask(step, "remove", "openai/gpt-6-sol")[0] == 0
    assert ask(step, "remove", "openai/gpt-6-sol")[0] == 1
    assert ask(step, "list", "--plain")[1] == "openai/gpt-6-luna\n"
    assert ask(step, "clear")[0] == 0
    assert json.loads(ask(step, "list", "--json")[1]) == {"fallbacks": []}


def test_help_names_every_step(ask: Ask) -> None:
    code, out, _ = ask("--help")
    assert code == 0
    assert all(word in out for word in ("status", "aliases", "auth", "probe", "refresh", "scan", "install-local"))
    assert ask("auth", "--help")[0] == 0
