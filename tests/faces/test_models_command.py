"""`garra models` as a person and a program use it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from garra.config.paths import resolve
from garra.domains.plugins import scaffold
from garra.faces.cli.models import run
from garra.faces.cli.place import Place
from garra.io.env import Environment

Ask = Callable[..., tuple[int, str, str]]


@pytest.fixture
def ask(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Ask:
    def asked(*words: str, **variables: str) -> tuple[int, str, str]:
        env = Environment({"HOME": str(tmp_path), "GARRA_STATE_DIR": str(tmp_path), **variables})
        code = run(words, Place(env, resolve(env)))
        said = capfd.readouterr()
        return code, said.out, said.err

    return asked


def test_status_says_what_the_first_run_found(ask: Ask) -> None:
    code, out, _ = ask("status", "--json")
    found = json.loads(out)
    assert code == 0
    assert found["defaultModel"] is None
    assert found["found"]["how"] in {"small", "server", "none", "installed"}
    shown = ask()[1].splitlines()
    if found["found"]["how"] != "none":
        assert shown.pop(0) == "No model is set. The first turn would pick this one:"
    assert shown == [found["found"]["words"]]


def test_set_then_status_and_list(ask: Ask) -> None:
    code, out, err = ask("set", "zai/glm-5.2")
    assert (code, out) == (0, "zhipu/glm-5.2 is chosen; it answers once there is a key.\n")
    assert "ZAI_API_KEY" in err
    found = json.loads(ask("status", "--json", ZAI_API_KEY="secret-words")[1])
    assert (found["resolvedDefault"], found["available"]) == ("zhipu/glm-5.2", True)
    assert ask("set", "zai/glm-5.2", ZAI_API_KEY="secret-words")[1:] == ("zhipu/glm-5.2 answers from now on.\n", "")
    code, out, _ = ask("list", "--json", "--provider", "zai", ZAI_API_KEY="secret-words")
    assert json.loads(out)["models"][0]["key"] == "zhipu/glm-5.2"
    assert "secret-words" not in out
    assert "WINDOW" in ask("list", "--all")[1]


def test_set_keeps_a_model_written_as_text(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "garra.json").write_text('{agents: {defaults: {model: "groq/x" /* mine */}}}')
    assert ask("set", "mistral/nosuch", "--json")[0] == 0
    text = (tmp_path / "garra.json").read_text()
    assert '"mistral/nosuch" /* mine */' in text
    assert "misspelt" in ask("set", "mistral/nosuch")[2]


@pytest.mark.parametrize(
    ("words", "code", "line"),
    [
        (("set", "nosuch/x"), 1, "no provider 'nosuch'"),
        (("list", "--all", "--provider", "nosuch"), 1, "no provider 'nosuch'; there are "),
        (("install-local", "nope"), 1, "no local model 'nope'"),
        (("set",), 2, "required"),
        (("list", "--what"), 2, "--what"),
    ],
)
def test_bad_input_is_one_clear_line(ask: Ask, words: tuple[str, ...], code: int, line: str) -> None:
    found, _, err = ask(*words)
    assert found == code
    assert line in err
    if code == 1:
        assert err.count("\n") == 1
        assert json.loads(ask(*words, "--json")[1])["error"]["message"].startswith(line)


def test_a_provider_without_a_key_has_a_next_step(ask: Ask) -> None:
    line = "anthropic has no key here. `garra models list --all --provider anthropic` lists what could be used.\n"
    assert ask("list", "--provider", "anthropic")[:2] == (0, line)


@pytest.mark.parametrize("more", [(), ("--all",)])
def test_a_server_of_ones_own_has_what_it_has(ask: Ask, more: tuple[str, ...]) -> None:
    assert ask("list", "--provider", "ollama", *more)[:2] == (
        0, "No model of ollama is known by name, for its server knows them: use ollama/MODEL.\n"
    )  # fmt: skip
    assert "misspelt" not in ask("set", "ollama/mine")[2]


def test_the_bad_news_of_a_choice_comes_first(tmp_path: Path) -> None:
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "GARRA_STATE_DIR": str(tmp_path)}
    command = [sys.executable, "-m", "garra", "models", "set", "mistral/nosuch"]
    both = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=15)
    lines = both.stdout.splitlines()
    assert ["misspelt" in lines[0], "no key" in lines[1], "is chosen" in lines[2]] == [True, True, True]


def test_the_provider_of_a_plugin_is_known(ask: Ask, tmp_path: Path) -> None:
    scaffold.write("provider", "zeta", tmp_path / "extensions" / "zeta")
    assert ask("list", "--all", "--provider", "zeta")[0] == 1
    (tmp_path / "garra.json").write_text('{"plugins": {"entries": {"zeta": {"enabled": true}}}}')
    assert "zeta/example-large" in ask("list", ZETA_API_KEY="1")[1]
    assert ask("set", "zeta/example-large", ZETA_API_KEY="1")[:2] == (0, "zeta/example-large answers from now on.\n")


def test_install_local_lists_what_there_is(ask: Ask) -> None:
    rows = json.loads(ask("install-local", "--json")[1])["models"]
    assert [row["name"] for row in rows] == ["smollm2", "qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b"]
    assert "1117 MB" in ask("install-local")[1]


def test_help(ask: Ask) -> None:
    assert ask("--help")[0] == 0
    assert "install-local" in ask("-h")[1]
    assert "--set" in ask("install-local", "--help")[1]


@pytest.mark.parametrize("step", [("set",), ("set-image",)])
def test_an_empty_name_chooses_nothing(tmp_path: Path, step: tuple[str, ...]) -> None:
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "GARRA_STATE_DIR": str(tmp_path)}
    command = [sys.executable, "-m", "garra", "models", *step, " "]
    ran = subprocess.run(command, env=env, capture_output=True, text=True, timeout=15, stdin=subprocess.DEVNULL)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr == "garra: name a model as provider/model; see `garra models list`\n"
    assert not (tmp_path / "garra.json").exists()
