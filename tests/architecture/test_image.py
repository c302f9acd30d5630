"""The Dockerfile as a text, without a container engine: what it copies exists, who it runs as, where the state is, how
it is asked whether it is well.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

from garra.config.paths import resolve
from garra.domains.upkeep import installs
from garra.io.env import Environment

ROOT = Path(__file__).resolve().parents[2]
KNOWN = {"ARG", "FROM", "WORKDIR", "COPY", "RUN", "ENV", "USER", "VOLUME", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK",
         "ENTRYPOINT", "CMD"}  # fmt: skip


def instructions(text: str) -> Iterator[tuple[str, str]]:
    """(word, rest) of each, its lines joined."""
    joined = re.sub(r"\\\n\s*", " ", "\n".join(line for line in text.splitlines() if not line.startswith("#")))
    for line in joined.splitlines():
        if line.strip():
            word, _, rest = line.strip().partition(" ")
            yield word, rest.strip()


@pytest.fixture(scope="module")
def steps() -> list[tuple[str, str]]:
    return list(instructions((ROOT / "Dockerfile").read_text()))


@pytest.fixture(scope="module")
def last(steps: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Those of the image itself, not of the stage that builds."""
    begins = [at for at, (word, _) in enumerate(steps) if word == "FROM"]
    return steps[begins[-1] :]


def one(steps: list[tuple[str, str]], word: str) -> str:
    found = [rest for each, rest in steps if each == word]
    assert len(found) == 1, word
    return found[0]


def test_every_instruction_is_one_that_is_known(steps: list[tuple[str, str]]) -> None:
    assert {word for word, _ in steps} <= KNOWN
    for word, rest in steps:
        if word in ("ENTRYPOINT", "CMD", "VOLUME"):
            assert isinstance(json.loads(rest), list), "in the form that needs no shell"


def test_what_is_copied_exists_and_is_let_in(steps: list[tuple[str, str]]) -> None:
    ignored = (ROOT / ".dockerignore").read_text().split("\n")
    let_in = {line[1:] for line in ignored if line.startswith("!")}
    assert "*" in ignored
    sources = [each for word, rest in steps if word == "COPY" and "--from" not in rest for each in rest.split()[:-1]]
    assert sources
    for source in sources:
        assert (ROOT / source).exists(), source
        assert source in let_in, f".dockerignore keeps {source} out"
    assert not let_in & {".git", ".venv", "tests", "web", "."}
    for lock in re.findall(r"requirements/(\S+?)\.lock", (ROOT / "Dockerfile").read_text()):
        assert "$" in lock or (ROOT / "requirements" / f"{lock}.lock").is_file()


def test_packages_come_by_hash_and_nothing_is_left_behind(steps: list[tuple[str, str]]) -> None:
    runs = [rest for word, rest in steps if word == "RUN"]
    installs_by_name = [run for run in runs if "pip" in run and "-r " in run]
    assert all("--require-hashes" in run and "--only-binary :all:" in run for run in installs_by_name)
    for run in runs:
        if "apt-get install" in run:
            assert "--no-install-recommends" in run
            assert "rm -rf /var/lib/apt/lists/*" in run
        assert run.count("pip wheel") + run.count("install --") == 0 or "--no-cache-dir" in run or "apt-get" in run


def test_it_runs_with_nobodys_rights_on_a_volume_of_its_own(last: list[tuple[str, str]]) -> None:
    words = [word for word, _ in last]
    assert one(last, "USER") == "1000:1000"
    assert words.index("USER") < words.index("ENTRYPOINT")
    env = dict(re.findall(r"(\w+)=(\S+)", one(last, "ENV")))
    assert json.loads(one(last, "VOLUME")) == [env["GARRA_STATE_DIR"]]
    run = one(last, "RUN")
    assert f"-m 700 {env['GARRA_STATE_DIR']}" in run
    assert one(last, "EXPOSE") == env["GARRA_GATEWAY_PORT"] == "18789"
    assert env["GARRA_GATEWAY_BIND"] == "lan"
    assert json.loads(one(last, "ENTRYPOINT"))[-1] == "garra"
    assert json.loads(one(last, "CMD")) == ["gateway", "run"]
    assert "/healthz" in one(last, "HEALTHCHECK")


def test_no_secret_is_part_of_it(steps: list[tuple[str, str]]) -> None:
    for word, rest in steps:
        if word in ("ARG", "ENV"):
            assert not re.search(r"TOKEN|PASSWORD|SECRET|_KEY", rest), rest


def test_garra_knows_that_it_is_an_image(steps: list[tuple[str, str]], tmp_path: Path) -> None:
    marks = re.findall(r"touch (\S+)", " ".join(rest for word, rest in steps if word == "RUN"))
    assert marks == ["/opt/garra/garra-image"]
    (tmp_path / Path(marks[0]).name).touch()
    assert installs.detect(resolve(Environment({"HOME": str(tmp_path)})), tmp_path).kind == "container"


def test_the_composition_publishes_to_this_machine_alone_and_wants_a_token() -> None:
    text = (ROOT / "compose.yaml").read_text()
    ports = re.findall(r'- "(.*):18789"', text)
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)
    assert "GARRA_GATEWAY_TOKEN:?" in text
    assert "cap_drop" in text


def test_what_is_ignored_stays_out() -> None:
    lines = (ROOT / ".dockerignore").read_text().split("\n")
    for name in ("src/garra/__pycache__", "src/garra/x.pyc"):
        assert any(fnmatch(name, line.removeprefix("**/")) or fnmatch(name, line) for line in lines if line[:1] != "#")
