"""Which gateway a client talks to, and that the configured secret goes nowhere else."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from garra.client.target import Target, Wanted, find, web_socket
from garra.config.paths import Paths, resolve
from garra.core.errors import UserError
from garra.io import lock, passing

CONFIG = {"gateway": {"port": 19_000, "auth": {"mode": "token", "token": "configured"}}}


def found(home: Path, config: dict[str, Any] | None = None, wanted: Wanted | None = None, /, **env: str) -> Target:
    return find(places(home, **env), env, config or {}, wanted)


def places(home: Path, **env: str) -> Paths:
    return resolve({"HOME": str(home), **env})


def test_the_default_then_the_configuration_then_the_environment(tmp_path: Path) -> None:
    assert found(tmp_path) == Target("ws://127.0.0.1:18789", source="default")
    assert found(tmp_path, CONFIG) == Target("ws://127.0.0.1:19000", "configured", source="configuration")
    env = {"GARRA_GATEWAY_PORT": "19001", "GARRA_GATEWAY_TOKEN": "from-env"}
    assert found(tmp_path, CONFIG, **env) == Target("ws://127.0.0.1:19001", "from-env", source="environment")


def test_the_gateway_that_runs_here_is_found_by_its_lock(tmp_path: Path) -> None:
    paths = places(tmp_path)
    with lock.acquire(paths.lock, {"pid": 1, "port": 19_500}):
        assert found(tmp_path, CONFIG) == Target("ws://127.0.0.1:19500", "configured", source="running")
    assert found(tmp_path, CONFIG).source == "configuration"


async def test_the_token_of_one_run_is_asked_of_that_run(tmp_path: Path) -> None:
    paths = places(tmp_path)
    paths.state.mkdir(exist_ok=True)
    closed = await passing.hand_out(paths.key_socket, lambda: "of this run")
    try:
        for auth, config, env in (
            ({"token": "of this run"}, {}, {}),
            ({"token": "of this run"}, CONFIG, {}),
            ({"token": "given"}, {}, {"GARRA_GATEWAY_TOKEN": "given"}),
        ):
            assert await asyncio.to_thread(running, tmp_path, config, env) == auth
    finally:
        await closed()


def running(home: Path, config: dict[str, Any], env: dict[str, str]) -> dict[str, str]:
    with lock.acquire(places(home).lock, {"pid": 1, "port": 19_500}):
        return found(home, config, **env).auth


def test_a_named_gateway_never_gets_the_configured_secret(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="give the token too"):
        found(tmp_path, CONFIG, Wanted("wss://elsewhere.example"))
    with pytest.raises(UserError, match="GARRA_GATEWAY_TOKEN"):
        found(tmp_path, CONFIG, GARRA_GATEWAY_URL="ws://elsewhere.example:1")
    named = found(tmp_path, CONFIG, Wanted("https://elsewhere.example", token="theirs"))
    assert (named.url, named.auth) == ("wss://elsewhere.example", {"token": "theirs"})


def test_compatibility_mode_reads_the_originals_variables(tmp_path: Path) -> None:
    env = {"GARRA_COMPAT": "openclaw", "OPENCLAW_GATEWAY_PORT": "19002", "GARRA_GATEWAY_PORT": "1"}
    assert found(tmp_path, **env).url == "ws://127.0.0.1:19002"


@pytest.mark.parametrize("port", ["x", "0", "70000", ""])
def test_what_is_no_port_is_said(tmp_path: Path, port: str) -> None:
    with pytest.raises(UserError, match=r"gateway\.port"):
        found(tmp_path, {"gateway": {"port": port}})


def test_a_secret_that_was_not_substituted_is_none_and_none_is_printed(tmp_path: Path) -> None:
    assert found(tmp_path, {"gateway": {"auth": {"token": "${NOPE}"}}}).auth == {}
    assert "configured" not in repr(found(tmp_path, CONFIG))


def test_addresses_in_other_forms() -> None:
    assert web_socket("gate:1") == "ws://gate:1"
    assert web_socket("http://gate:1/x") == "ws://gate:1/x"
    with pytest.raises(UserError, match="ws://"):
        web_socket("ftp://gate")
