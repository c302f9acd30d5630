"""`garra config` as a person runs it: the real program, its words and its exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from garra.core.redact import SENTINEL
from tests.config.place import Installation

pytestmark = pytest.mark.e2e


@pytest.fixture
def here(tmp_path: Path) -> Installation:
    return Installation(tmp_path)


def garra(here: Installation, *words: str, text: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "garra", "config", *words],
        env={"HOME": str(here.home), "PATH": "/usr/bin:/bin", **here.env},
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.req("BOOT-14")
def test_set_get_and_unset(here: Installation) -> None:
    here.write("{ // mine\n  gateway: { port: 1 },\n}\n")
    assert garra(here, "set", "gateway.port", "18790").stdout.startswith("gateway.port is set to 18790.")
    assert garra(here, "get", "gateway.port").stdout == "18790\n"
    done = garra(here, "set", "gateway.auth.token", "12345678")
    assert "12345678" not in done.stdout + done.stderr
    assert garra(here, "get", "gateway.auth.token").stdout == f"{SENTINEL}\n"
    assert garra(here, "get", "gateway.auth.token", "--reveal").stdout == "12345678\n"
    assert json.loads(garra(here, "get", "gateway", "--json").stdout)["auth"] == {"token": SENTINEL}
    assert garra(here, "unset", "gateway.auth").returncode == 0
    assert here.text == "{ // mine\n  gateway: { port: 18790 },\n}\n"


def test_one_clear_line_on_failure(here: Installation) -> None:
    here.write("{ gateway: { port: 1 } }")
    for words, code, line in [
        (("get", "gateway.bind"), 1, "garra: gateway.bind is not set; the default applies\n"),
        (("set", "gateway.port", "x"), 1, "garra: not written: gateway.port: Invalid input: expected a valid integer"),
        (("set", "gateway.port", "x", "--strict-json"), 1, "garra: the value is not JSON"),
        (("unset", "gateway.bind"), 1, "garra: gateway.bind is not set in "),
        (("get", "a..b"), 1, "garra: 'a..b' is no path"),
        (("patch", "--file", "/absent"), 1, "garra: /absent: "),
        (("restore",), 1, "garra: no last good configuration"),
    ]:
        done = garra(here, *words)
        assert (done.returncode, done.stdout) == (code, "")
        assert done.stderr.startswith(line)
        assert done.stderr.count("\n") == 1
    failed = json.loads(garra(here, "get", "no.such", "--json").stdout)
    assert failed["error"] == {
        "type": "cli_error",
        "message": "Unknown config path: no.such. Run garra config schema to see valid paths.",
    }
    assert garra(here).returncode == 2
    assert garra(here, "set", "x").returncode == 2


@pytest.mark.req("BOOT-12", "COF-18", "COF-24")
def test_validate_tells_everything_and_exits_by_it(here: Installation) -> None:
    here.env |= {"GARRA_COMPAT": "openclaw"}
    provider = {"baseUrl": "http://x/v1", "apiKey": "${COFFER_PROVIDER_KEY}", "models": [{"id": "m", "name": "M"}]}
    here.write(json.dumps({"models": {"providers": {"coffer": provider}}}))
    done = garra(here, "validate")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Config valid: " in done.stdout
    assert "1 warning(s):\n  ! models.providers.coffer.apiKey: Missing env var" in done.stdout
    blob = json.loads(garra(here, "validate", "--json").stdout)
    assert (blob["valid"], [warning["path"] for warning in blob["warnings"]]) == (
        True,
        ["models.providers.coffer.apiKey"],
    )
    del provider["models"]
    here.write(json.dumps({"models": {"providers": {"coffer": provider}}, "gateway": {"port": "x"}}, indent=1))
    done = garra(here, "validate")
    assert done.returncode == 1
    assert "custom model providers must declare models" in done.stderr
    assert "line 11: gateway.port: Invalid input" in done.stderr
    blob = json.loads(garra(here, "validate", "--json").stdout)
    assert (blob["ok"], blob["valid"], len(blob["issues"])) == (False, False, 2)


@pytest.mark.req("BOOT-15")
def test_restore_brings_the_last_good_one_back(here: Installation) -> None:
    garra(here, "set", "gateway.port", "5")
    here.write("{ broken")
    assert garra(here, "set", "gateway.port", "6").returncode == 1
    assert garra(here, "get", "gateway.port").returncode == 1
    assert garra(here, "restore").returncode == 0
    assert garra(here, "get", "gateway.port").stdout == "5\n"


def test_merge_patch_schema_and_file(here: Installation) -> None:
    garra(here, "set", "models.providers.x", '{ models: [{ id: "a", name: "A" }], baseUrl: "http://x" }')
    garra(here, "set", "models.providers.x", '{ models: [{ id: "b", name: "B" }] }', "--merge")
    done = garra(here, "patch", "--file", "-", text="{ models: { providers: { x: { baseUrl: 'http://y' } } } }")
    assert done.returncode == 0
    provider = json.loads(garra(here, "get", "models.providers.x").stdout)
    assert provider == {"models": [{"id": "a", "name": "A"}, {"id": "b", "name": "B"}], "baseUrl": "http://y"}
    assert json.loads(garra(here, "schema").stdout)["properties"]["gateway"]
    assert garra(here, "file").stdout == f"{here.file}\n"
    assert json.loads(garra(here, "file", "--json").stdout) == {"path": str(here.file)}
    assert garra(here, "patch", "--file", "-", text="[]").returncode == 1
