"""`garra models refresh`, `scan` and `probe` against servers on this machine."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from garra.config.paths import resolve
from garra.faces.cli.models import run
from garra.faces.cli.place import Place
from garra.io.env import Environment
from tests.core.test_catalog import ROUTER

Ask = Callable[..., tuple[int, str, str]]
FREE = [
    {"id": "a/small-3b:free", "context_length": 32_000, "pricing": {"prompt": "0"}},
    {"id": "a/large-70b:free", "context_length": 64_000},
    {"id": "a/paid", "context_length": 999_000},
]
PAGES: dict[str, Any] = {
    "/v1/catalog": ROUTER,
    "/v1/usage": {"budget": {"limitMicros": 20_000_000, "spentMicros": 1_500_000}},
    "/open/models": {"data": FREE},
}


class Page(BaseHTTPRequestHandler):
    """What the servers say."""

    def do_GET(self) -> None:
        found = PAGES.get(self.path)
        body = json.dumps(found).encode()
        self.send_response(404 if found is None else 200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        return


@pytest.fixture
def address() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def ask(tmp_path: Path, address: str, capfd: pytest.CaptureFixture[str]) -> Ask:
    providers = {
        "clawrouter": {"baseUrl": address, "apiKey": "router-key"},
        "openrouter": {"baseUrl": f"{address}/open", "apiKey": "k"},
        "lost": {"baseUrl": f"{address}/lost", "models": []},
    }
    (tmp_path / "garra.json").write_text(json.dumps({"models": {"mode": "replace", "providers": providers}}))

    def asked(*words: str) -> tuple[int, str, str]:
        env = Environment({"HOME": str(tmp_path), "GARRA_STATE_DIR": str(tmp_path)})
        code = run(words, Place(env, resolve(env)))
        said = capfd.readouterr()
        return code, said.out, said.err

    return asked


@pytest.mark.req("MODEL-21")
def test_what_servers_offer_is_kept_and_listed(ask: Ask) -> None:
    code, out, _ = ask("refresh")
    assert code == 1
    assert "clawrouter: 4 models, $1.50 of $20.00 spent this month" in out
    assert "openrouter: 3 models" in out
    assert "lost: " in out
    for _ in range(2):
        assert ask("refresh", "--provider", "openrouter", "--json")[0] == 0
    listed = json.loads(ask("list", "--provider", "clawrouter", "--json")[1])
    assert [each["key"] for each in listed["models"]] == [
        "clawrouter/openai/gpt-5.5", "clawrouter/openai/old", "clawrouter/anthropic/claude-x",
        "clawrouter/google/gemini-x",
    ]  # fmt: skip
    assert ask("list", "--refresh", "--plain", "--provider", "openrouter")[1].split()[-1] == "openrouter/a/paid"


def test_free_models(ask: Ask) -> None:
    found = json.loads(ask("scan", "--no-probe", "--json")[1])
    assert [each["id"] for each in found["models"]] == ["a/large-70b:free", "a/small-3b:free"]
    assert "64k" in ask("scan", "--no-probe", "--min-params", "8")[1]
    assert "small" not in ask("scan", "--no-probe", "--min-params", "8")[1]
    assert ask("scan", "--no-probe", "--set-default")[0] == 1


def test_a_probe_without_a_gateway(ask: Ask, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "garra", "models", "probe", "lost/x", "--probe-timeout", "4000", "--json"]
    env = {"HOME": str(tmp_path), "GARRA_STATE_DIR": str(tmp_path), "PATH": "/usr/bin:/bin"}
    ran = subprocess.run(words, env=env, capture_output=True, check=False, timeout=60)
    (row,) = json.loads(ran.stdout)["results"]
    assert (ran.returncode, row["model"], row["status"]) == (1, "lost/x", "unknown")
    assert ask("probe", "--probe-timeout", "0")[0] == 2
