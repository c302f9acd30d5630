"""What the doctor's checks find, on real folders and sockets."""

from __future__ import annotations

import asyncio
import json
import socket
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from garra.checks import engine
from garra.checks.all import examine
from garra.checks.finding import Finding, Ground
from garra.config.load import load
from garra.config.paths import resolve
from garra.config.write import Writer
from garra.domains.exec import approvals_rules
from garra.domains.plugins import scaffold
from garra.io import lock
from garra.io.env import Environment
from garra.io.store.db import Database
from garra.io.store.shelf import Shelf
from garra.runs import switch

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


def test_a_channel_whose_packages_are_missing_is_told(here: Installation) -> None:
    folder = here.paths.extensions / "parrot"
    folder.mkdir(parents=True)
    (folder / "manifest.toml").write_text(
        'id = "parrot"\nkind = "channel"\nname = "Parrot"\nmodule = "x:X"\nextra = "p"\nimports = ["no_such_module"]\n'
    )
    here.write('{"plugins": {"entries": {"parrot": {"enabled": true}}}}')
    assert not here.faults("packages")
    here.write('{"plugins": {"entries": {"parrot": {"enabled": true}}}, "channels": {"parrot": {"enabled": true}}}')
    (found,) = here.faults("packages")
    assert found.what.startswith("Parrot needs packages that are not installed")
    assert found.where == "channels.parrot"


def test_a_tool_whose_packages_are_missing_is_told_unless_it_is_off(here: Installation) -> None:
    folder = here.paths.extensions / "owl"
    folder.mkdir(parents=True)
    (folder / "owl.lock").write_text("owl==1.0 --hash=sha256:00\n")
    manifest = 'id = "owl"\nkind = "tool"\nname = "Owl"\nmodule = "x:X"\nextra = "owl"\n'
    (folder / "manifest.toml").write_text(f'{manifest}better = ["no_such_module"]\n')
    here.write('{"plugins": {"entries": {"owl": {"enabled": true}}}}')
    (found,) = (each for each in here.found("packages") if "Owl" in each.what)
    assert (found.level, "run `garra plugins install owl`" in found.what) == ("note", True)
    (folder / "manifest.toml").write_text(f'{manifest}imports = ["no_such_module"]\n')
    (found,) = here.faults("packages")
    assert found.level == "warn"
    here.write("{}")
    assert not [each for each in here.found("packages") if "Owl" in each.what]


def test_a_browser_that_is_switched_on_and_not_there_is_told(here: Installation) -> None:
    assert not here.found("browser")
    here.write('{"browser": {"enabled": true, "executablePath": "/no/such/program"}}')
    (found,) = here.found("browser")
    assert found.level == "warn"
    assert "browser.executablePath /no/such/program is no program" in found.what


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
    (fault,) = chosen("anthropic/claude-sonnet-5")
    assert fault.how == "export ANTHROPIC_API_KEY"
    assert not chosen("own/anything")
    (fine,) = here.found("model")
    assert fine.what == "own/anything is chosen, and there is a key for it (it was not asked)"


def test_a_model_may_be_named_by_its_alias_or_be_a_file(here: Installation, tmp_path: Path) -> None:
    def found(ref: str) -> Finding:
        defaults = {"model": {"primary": ref}, "models": {"own/anything": {"alias": "Fast"}}}
        here.write(json.dumps({**OWN, "agents": {"defaults": defaults}}))
        return here.found("model")[0]

    assert found("fast").level == "ok"
    fault = found("slow")
    assert (fault.level, "write it as provider/model" in fault.what) == ("bad", True)
    file = tmp_path / "small.gguf"
    assert (found(str(file)).level, "No such file" in found(str(file)).what) == ("bad", True)
    file.write_bytes(b"text")
    assert "is no GGUF model file" in found(str(file)).what
    file.write_bytes(b"GGUF")
    assert "a model file on this machine" in found(str(file)).what


def test_a_key_that_names_an_absent_variable(here: Installation) -> None:
    providers = {"acme": {"baseUrl": "http://x/v1", "apiKey": "${ACME_API_KEY}", "models": []}}
    model = {"agents": {"defaults": {"model": {"primary": "acme/acme-large"}}}}
    here.write(json.dumps({"models": {"providers": providers}, **model}))
    (fault,) = here.faults("model")
    assert fault.how == "export ACME_API_KEY"


def test_a_model_that_is_nowhere_listed(here: Installation) -> None:
    here.write(json.dumps({"agents": {"defaults": {"model": {"primary": "anthropic/nope"}}}}))
    assert [(fault.level, "there is no key" in fault.what) for fault in here.faults("model")] == [
        ("bad", True), ("warn", False)
    ]  # fmt: skip


def switched_on(*names: str, **more: object) -> str:
    return json.dumps({"plugins": {"entries": {name: {"enabled": True} for name in names}}, **more})


def test_the_provider_of_a_plugin_is_a_provider(tmp_path: Path) -> None:
    here = Installation(tmp_path, ZETA_API_KEY="1")
    scaffold.write("provider", "zeta", here.paths.extensions / "zeta")
    here.write(switched_on("zeta", agents={"defaults": {"model": {"primary": "zeta/example-large"}}}))
    assert not here.faults("model")
    assert not here.faults("plugins")


def test_a_plugin_that_does_not_load_stands_in_the_way(here: Installation) -> None:
    scaffold.write("tool", "crooked", here.paths.extensions / "crooked")
    (here.paths.extensions / "crooked" / "tool.py").write_text("import nosuchmodule\n")
    assert not here.faults("plugins")
    here.write(switched_on("crooked"))
    (fault,) = here.faults("plugins")
    assert fault.level == "bad"
    assert "nosuchmodule" in fault.what


def test_a_plugin_that_is_wanted_and_denied(here: Installation) -> None:
    scaffold.write("tool", "unwanted", here.paths.extensions / "unwanted")
    here.write(json.dumps({"plugins": {"entries": {"unwanted": {"enabled": True}}, "deny": ["unwanted", "tools"]}}))
    assert [(fault.level, fault.what) for fault in here.faults("plugins")] == [
        ("warn", "unwanted: denied by plugins.deny")
    ]


def test_commands_without_a_sandbox_by_choice_are_pointed_out(here: Installation) -> None:
    here.write(json.dumps({"tools": {"exec": {"host": "gateway"}}}))
    (fault,) = here.faults("sandbox")
    assert "tools.exec.host" in fault.where


@pytest.mark.req("SEC-11")
def test_what_the_owner_opened_in_the_sandbox_is_pointed_out(here: Installation) -> None:
    def found(**sandbox: object) -> list[tuple[str, str]]:
        here.write(json.dumps({"agents": {"defaults": {"sandbox": sandbox}}}))
        return [(each.level, each.where.rpartition(".sandbox.")[2]) for each in here.found("sandbox")[1:]]

    assert found() == []
    assert found(mode="off") == [("warn", "mode")]
    assert found(mode="non-main") == [("note", "mode")]
    assert found(egress={"allow": ["*"]}) == [("note", "egress.allow")]
    assert found(docker={"binds": ["/etc:/x"]}) == [("warn", "docker")]
    here.write(json.dumps({"agents": {"defaults": {"sandbox": {"backend": "podman"}}}}))
    assert "podman: it is not installed" in here.found("sandbox")[0].what


def test_who_turns_voice_messages_into_words(tmp_path: Path) -> None:
    here = Installation(tmp_path, OPENAI_API_KEY="a", GROQ_API_KEY="b")

    def found(media: dict[str, object]) -> list[tuple[str, str]]:
        here.write(json.dumps({"tools": {"media": media}}))
        return [(each.level, each.what) for each in here.found("hearing")]

    able = "voice messages are turned into words by groq/whisper-large-v3-turbo, then openai/gpt-4o-transcribe"
    assert found({}) == [("ok", able)]
    assert found({"audio": {"enabled": False}})[0][1].startswith("voice messages are not turned into words")
    mixed = found({"audio": {"models": [{"provider": "mistral"}, {"type": "cli", "command": "/x/ear", "args": ["a"]}]}})
    assert [level for level, _ in mixed] == ["warn", "ok"]
    assert "no key for mistral" in mixed[0][1]
    assert mixed[1][1] == "voice messages are turned into words by ear"
    (broken,) = found({"audio": {"models": [{"type": "cli", "command": "ear"}]}})
    assert broken == ("warn", "ear: command and args must both be set")
    (tmp_path / "other").mkdir()
    (nobody,) = Installation(tmp_path / "other").found("hearing")
    assert (nobody.level, "nobody turns" in nobody.what) == ("note", True)


def test_a_model_that_needs_no_key_is_not_said_to_have_one(here: Installation) -> None:
    here.write(json.dumps({"agents": {"defaults": {"model": {"primary": "local/smollm2"}}}}))
    (found,) = here.found("model")
    assert (found.level, found.what) == ("ok", "local/smollm2 is chosen, a model on this machine")


def test_an_empty_configuration_is_not_none(here: Installation) -> None:
    assert here.found("config")[0].what == "no configuration: the defaults serve"
    here.write("{}")
    assert here.found("config")[0].what == f"{here.paths.config_file} sets nothing: the defaults serve"


def test_without_a_gateway_nobody_is_asked_about_channels_and_one_that_is_silent_is_told(here: Installation) -> None:
    assert here.found("channels") == []
    with lock.acquire(here.paths.lock, {"pid": 1, "port": 1}, 1.0):
        (found,) = here.found("channels")
    assert (found.level, "could not be asked" in found.what) == ("warn", True)


def test_an_engine_that_does_not_answer(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "docker").write_text("#!/bin/sh\n")
    (programs / "docker").chmod(0o755)
    answers = tmp_path / "docker.sock"
    here = Installation(tmp_path, PATH=str(programs), DOCKER_HOST=f"unix://{answers}")
    here.write(json.dumps({"agents": {"defaults": {"sandbox": {"backend": "docker"}}}}))
    assert "No such file" in here.found("sandbox")[0].what
    for head, level in ((b"HTTP/1.0 200 OK", "ok"), (b"HTTP/1.0 500 No", "warn")):
        with _answering(answers, head):
            assert here.found("sandbox")[0].level == level
    assert engine.fault("docker", {"PATH": str(programs), "DOCKER_HOST": "tcp://10.0.0.9:2376"}) == ""


@contextmanager
def _answering(path: Path, head: bytes) -> Iterator[None]:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()

        def answer() -> None:
            line, _ = server.accept()
            with line:
                line.recv(1_024)
                line.sendall(head + b"\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        yield
        thread.join(5)
    path.unlink()


def test_the_document_of_approvals(here: Installation) -> None:
    def kept(document: object) -> list[Finding]:
        async def put() -> None:
            db = Database(here.paths.db)
            await Shelf(db, approvals_rules.SPACE).set("document", document)
            await db.close()

        asyncio.run(put())
        return here.found("approvals")

    assert here.found("approvals") == []
    assert [one.level for one in kept({"version": 1, "agents": "all"})] == ["bad"]
    allowed = {"version": 1, "agents": {"main": {"allowlist": [{"id": "a", "pattern": "/usr/bin/uptime"}]}}}
    assert [(one.level, one.what) for one in kept(allowed)] == [("ok", "1 entry of what may run unasked")]


def test_a_pause_is_told(here: Installation) -> None:
    async def put() -> None:
        db = Database(here.paths.db)
        await Shelf(db, switch.SHELF).set(switch.KEY, 1_000)
        await db.close()

    assert here.found("pause") == []
    asyncio.run(put())
    (told,) = here.faults("pause")
    assert "garra resume" in told.how


def test_what_the_audit_finds_is_told_in_one_line(here: Installation) -> None:
    assert [one.level for one in here.found("security")] == ["ok"]
    here.write('{"tools": {"taint": {"mode": "off"}}}')
    assert [one.level for one in here.found("security")] == ["note"]
    here.write('{"gateway": {"auth": {"mode": "none"}}}')
    (told,) = here.faults("security")
    assert (told.level, "garra security audit" in told.how) == ("warn", True)
