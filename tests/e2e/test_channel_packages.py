"""A channel whose packages are not there: one line everywhere, then installed by the real pip, then served."""

from __future__ import annotations

import base64
import hashlib
import json
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from tests.e2e.program import Program, awaited, gateway

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

LINE = "Parrot needs packages that are not installed yet: run `garra channels install parrot`"
MANIFEST = """\
id = "parrot"
kind = "channel"
name = "Parrot"
module = "channel:Parrot"
extra = "parrot"
imports = ["parrot_speech"]
[settings]
type = "object"
[settings.properties]
token = { type = "string", secret = true }
"""
CODE = """\
import asyncio
import importlib
from garra.sdk.channel import Identity, Limits

class Parrot:
    limits = Limits(text=100, beat_s=0)
    def __init__(self, account, ports):
        pass
    async def run(self, receive, pulse):
        speech = importlib.import_module("parrot_speech")
        pulse.connected(Identity("1", speech.NAME))
        pulse.alive()
        await asyncio.Event().wait()
    async def send(self, message):
        return "1"
"""


class Own(Program):
    """An installation whose Python is its own, so that installing touches nobody else's."""

    def argv(self, *words: str) -> list[str]:
        return [str(self.home / "venv/bin/python"), "-P", "-m", "garra", *words]

    @property
    def site(self) -> Path:
        return next((self.home / "venv/lib").glob("python*/site-packages"))


def wheel(folder: Path) -> str:
    """A package `parrot-speech` 1.0 in `folder`; its sha256."""
    folder.mkdir()
    module, info = b"NAME = 'Polly'\n", "parrot_speech-1.0.dist-info"
    meta = b"Metadata-Version: 2.1\nName: parrot-speech\nVersion: 1.0\n"
    tags = b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files = {"parrot_speech.py": module, f"{info}/METADATA": meta, f"{info}/WHEEL": tags}
    record = "".join(
        f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}\n"
        for name, data in files.items()
    )
    target = folder / "parrot_speech-1.0-py3-none-any.whl"
    with zipfile.ZipFile(target, "w") as file:
        for name, data in {**files, f"{info}/RECORD": f"{record}{info}/RECORD,,\n".encode()}.items():
            file.writestr(name, data)
    return hashlib.sha256(target.read_bytes()).hexdigest()


def installation(home: Path, *, digest: str = "") -> Own:
    """Its Python finds Garra, pip and what they need in ours, and installs beside itself."""
    home.mkdir(exist_ok=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home / "venv")], check=True)
    program = Own(home, env={"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(home / "mirror")})
    source = Path(__file__).resolve().parents[2] / "src"
    (program.site / "tested.pth").write_text(f"{source}\n{sysconfig.get_path('purelib')}\n")
    program.configure(
        plugins={"entries": {"parrot": {"enabled": True}}},
        gateway={"auth": {"mode": "token", "token": "t" * 32}},
        channels={"parrot": {"enabled": True, "token": "x"}},
    )
    folder = program.state / "extensions" / "parrot"
    folder.mkdir(parents=True)
    (folder / "manifest.toml").write_text(MANIFEST)
    (folder / "channel.py").write_text(CODE)
    found = wheel(home / "mirror")
    (folder / "parrot.lock").write_text(f"parrot-speech==1.0 \\\n    --hash=sha256:{digest or found}\n")
    return program


def test_it_is_installed_and_a_running_gateway_takes_it_up(tmp_path: Path) -> None:
    program = installation(tmp_path / "home")
    assert LINE in program.run("channels", "list").out
    assert LINE in program.run("doctor").out
    with gateway(program) as process:
        shown = program.run("channels", "status")
        assert LINE in shown.out, shown.out + shown.err
        probed = program.run("channels", "status", "--probe", "--json").json["channelAccounts"]["parrot"][0]
        assert probed["probe"] == {"ok": False, "error": LINE}
        done = program.run("channels", "add", "parrot", "--token", "y")
        assert done.code == 0, done.out + done.err
        assert "parrot_speech 1.0" in done.err or "putting 1 package in place" in done.err
        assert "parrot/default was there already" in done.out
        awaited(lambda: "Polly" in program.run("channels", "status").out, what=lambda: program.run("channels").out)
        assert process.poll() is None
        assert "Traceback" not in (program.home / "gateway.log").read_text()
    for kind in ("channels", "plugins"):
        again = program.run(kind, "install", "parrot")
        assert (again.code, again.out, again.err) == (0, "Parrot has all it needs.\n", "")
    nobody = program.run("plugins", "install", "brwser")
    assert "there is no plugin 'brwser' here; did you mean browser?" in nobody.err


def test_installing_alone_is_enough_for_a_running_gateway(tmp_path: Path) -> None:
    program = installation(tmp_path / "home")
    with gateway(program):
        done = program.run("channels", "install", "parrot", "--json")
        assert done.json == {"channel": "parrot", "installed": True}, done.err
        awaited(lambda: "Polly" in program.run("channels", "status").out)


def test_what_cannot_be_installed_says_why_and_how(tmp_path: Path) -> None:
    program = installation(tmp_path / "a", digest="0" * 64)
    done = program.run("channels", "add", "parrot", "--token", "y")
    assert done.code == 1
    assert "Parrot's packages are not installed" in done.err
    assert "HASH" in done.err.upper()
    assert json.loads(program.config.read_text())["channels"]["parrot"]["token"] == "x"
    written = program.run("channels", "add", "parrot", "--token", "z", "--no-install")
    assert LINE in written.err
    assert json.loads(program.config.read_text())["channels"]["parrot"]["token"] == "z"

    program.env["PIP_NO_INDEX"] = "0"
    program.env["PIP_INDEX_URL"] = "http://ann:secret-word@127.0.0.1:9/simple"
    program.env["PIP_RETRIES"] = "0"
    program.env["PIP_FIND_LINKS"] = ""
    away = program.run("channels", "install", "parrot")
    assert away.code == 1
    assert "secret-word" not in away.out + away.err
