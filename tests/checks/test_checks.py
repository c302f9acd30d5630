"""What the doctor's checks find, on real folders and sockets."""

from __future__ import annotations

import json
import socket
import stat
from pathlib import Path

import pytest

from garra.checks.all import examine
from garra.checks.finding import Finding, Ground
from garra.config.load import load
from garra.config.paths import resolve
from garra.config.write import Writer
from garra.io import lock
from garra.io.env import Environment

OWN = {
    "models": {
        "providers": {"own": {"api": "openai-completions", "baseUrl": "http://x/v1", "apiKey": "k", "models": []}}
    }
}


class Installation:
    def __init__(self, home: Path, **env: str) -> None:
        self.env = Environment({"HOME": str(home), "PATH": "/usr/bin:/bin", **env})
        self.paths = resolve(self.env)
        self.paths.state.mkdir(mode=0o700)

    def write(self, text: str) -> None:
        self.paths.config_file.write_text(text)
        self.paths.config_file.chmod(0o600)

    def found(self, check: str) -> list[Finding]:
        ground = Ground(self.paths, self.env, load(self.paths, self.env))
        return [finding for finding in examine(ground) if finding.check == check]

    def faults(self, check: str) -> list[Finding]:
        return [finding for finding in self.found(check) if finding.level != "ok"]


@pytest.fixture
def here(tmp_path: Path) -> Installation:
    return Installation(tmp_path)


def test_a_fresh_installation_is_well(here: Installation) -> None:
    for check in ("config", "state", "model"):
        assert not here.faults(check)


def test_a_broken_configuration_names_line_and_remedy_and_is_mended(here: Installation) -> None:
    Writer(here.paths, here.env).set("gateway.port", 18_790)
    here.write('{"gateway": {\n  "port": }}')
    first, *more = here.faults("config")
    assert any("line 2" in fault.what for fault in more)
    assert "config restore" in first.how
    assert first.mend is not None
    assert "brought the last good" in first.mend()
    assert not here.faults("config")


def test_what_was_never_good_is_left_to_a_person(here: Installation) -> None:
    here.write("{")
    assert all(fault.mend is None for fault in here.faults("config"))


@pytest.mark.parametrize(("check", "mode"), [("state", 0o700), ("config", 0o600)])
def test_what_others_can_read_is_closed(here: Installation, check: str, mode: int) -> None:
    here.write(json.dumps(OWN))
    place = here.paths.state if check == "state" else here.paths.config_file
    place.chmod(0o755)
    (fault,) = here.faults(check)
    assert fault.level == "warn"
    assert str(place) in fault.how
    assert fault.mend is not None
    fault.mend()
    assert stat.S_IMODE(place.stat().st_mode) == mode
    assert not here.faults(check)


def test_a_state_folder_that_is_a_file(here: Installation) -> None:
    here.paths.state.rmdir()
    here.paths.state.write_text("")
    (fault,) = here.faults("state")
    assert "no folder" in fault.what


def test_the_port_and_who_has_it(here: Installation) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        here.write(json.dumps({"gateway": {"port": port}}))
        (fault,) = here.faults("gateway")
        assert str(port) in fault.what
        with lock.acquire(here.paths.lock, {"pid": 7, "port": port}):
            (fine,) = here.found("gateway")
            assert (fine.level, "process 7" in fine.what) == ("ok", True)
    assert not here.faults("gateway")


def test_the_model_its_provider_and_its_key(here: Installation) -> None:
    def chosen(ref: str) -> list[Finding]:
        here.write(json.dumps({**OWN, "agents": {"defaults": {"model": {"primary": ref}}}}))
        return here.faults("model")

    assert not chosen("own/anything")
    assert "no provider is called nobody" in chosen("nobody/x")[0].what
    (fault,) = chosen("anthropic/claude-sonnet-4-5")
    assert "ANTHROPIC_API_KEY" in fault.how


def test_commands_without_a_sandbox_by_choice_are_pointed_out(here: Installation) -> None:
    here.write(json.dumps({"tools": {"exec": {"host": "gateway"}}}))
    (fault,) = here.faults("sandbox")
    assert "tools.exec.host" in fault.where
