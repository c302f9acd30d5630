"""The chat in the terminal has no door of its own: all it asks is a public method, and each wants a right."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, WebSocketException
from websockets.sync.client import ClientConnection, connect
from websockets.sync.server import ServerConnection, serve

from garra.core.scopes import ADMIN, APPROVALS, PAIRING, QUESTIONS, READ, TALK, WRITE
from garra.gateway import table
from garra.testing.model_server import ModelServer, Say
from tests.e2e.program import Program, awaited, gateway, model, port, speaking
from tests.e2e.terminal import Terminal

pytestmark = [pytest.mark.e2e, pytest.mark.needs("tmux"), pytest.mark.timeout(60)]

SCOPES = {ADMIN, APPROVALS, PAIRING, QUESTIONS, READ, TALK, WRITE}


@dataclass
class Recorder:
    """A pipe to a gateway that keeps what goes each way."""

    upstream: str
    asked: list[dict[str, Any]] = field(default_factory=list)
    answered: list[dict[str, Any]] = field(default_factory=list)

    def serve(self, client: ServerConnection) -> None:
        with connect(self.upstream, max_size=None, compression=None) as up, ThreadPoolExecutor(1) as pool:
            pool.submit(self._pass, up, client, self.answered)
            self._pass(client, up, self.asked)
            up.close()

    def _pass(
        self,
        source: ServerConnection | ClientConnection,
        to: ServerConnection | ClientConnection,
        kept: list[dict[str, Any]],
    ) -> None:
        with suppress(ConnectionClosed):
            for frame in source:
                kept.append(json.loads(frame))
                to.send(frame)
        with suppress(WebSocketException):
            to.close()


@contextmanager
def recorded(upstream: str) -> Iterator[tuple[Recorder, str]]:
    recorder = Recorder(upstream)
    with serve(recorder.serve, "127.0.0.1", 0, max_size=None, compression=None) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield recorder, f"ws://127.0.0.1:{server.socket.getsockname()[1]}"
        server.shutdown()
        thread.join(5)


@pytest.mark.req("GW-17")
def test_each_call_of_the_chat_is_a_public_method_that_asks_for_a_right(tmp_path: Path) -> None:
    program = Program(tmp_path)
    terminal = Terminal(program)
    with model(ModelServer()) as server:
        program.configure(**speaking(server.url, gateway={"auth": {"mode": "token", "token": "t"}}))
        server.then(Say("It is kelp."))
        with gateway(program), recorded(f"ws://127.0.0.1:{port(program)}") as (recorder, url):
            terminal.start("chat", "--url", url, "--token", "t")
            try:
                _use(terminal)
            finally:
                terminal.close()

    called = {frame["method"] for frame in recorder.asked if frame["type"] == "req"} - {"connect"}
    assert {"chat.send", "chat.history", "sessions.list", "models.list"} <= called
    hello = next(frame["payload"] for frame in recorder.answered if frame.get("payload", {}).get("type") == "hello-ok")
    assert called <= set(hello["features"]["methods"])
    public = table.document()["methods"]
    assert {public[name]["scope"] for name in called} <= SCOPES


def _use(terminal: Terminal) -> None:
    terminal.shows("connected  main")
    terminal.type("what is it?")
    terminal.shows("It is kelp.")
    terminal.type("/status")
    terminal.shows("model fake/fake")
    for command, title in (("/sessions", "Conversations"), ("/models", "Models"), ("/agents", "Agents")):
        terminal.type(command)
        terminal.shows(title)
        terminal.press("Escape")
        _gone(terminal, title)
    terminal.type("sleep:20")
    terminal.shows("Esc stops")
    terminal.press("Escape")
    terminal.shows("stopped")
    terminal.press("C-d")
    terminal.shows("left-with-0")


def _gone(terminal: Terminal, text: str) -> None:
    awaited(lambda: text not in terminal.screen, what=lambda: f"{text!r} gone from\n{terminal.screen}")
