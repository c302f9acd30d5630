"""References to secrets: fetched from where they are, told in one line where they cannot be."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from garra.config import view
from garra.config.live import Live
from garra.config.load import Snapshot, load
from garra.config.paths import Paths, resolve
from garra.config.peek import peek
from garra.config.write import Writer
from garra.core.errors import NotFound
from garra.io.env import Environment
from garra.io.secrets import Entry, Store

KEY = "sk-known-5f3c9a7e1b2d4c6f8a0e"


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return resolve({"GARRA_STATE_DIR": str(tmp_path), "HOME": str(tmp_path)})


def written(paths: Paths, reference: Any, providers: Mapping[str, Any] | None = None, **more: Any) -> None:
    body = {
        "secrets": {"providers": providers or {}},
        "models": {"providers": {"openai": {"apiKey": reference}}},
        **more,
    }
    paths.config_file.write_text(json.dumps(body))


def loaded(paths: Paths, env: Mapping[str, str] | None = None) -> Snapshot:
    return load(paths, Environment(dict(env or {})))


def key(found: Snapshot) -> str:
    secret = found.config.models.providers["openai"].api_key
    assert secret is not None
    return secret.reveal()


def program(folder: Path, body: str, mode: int = 0o700) -> str:
    path = folder / "give"
    path.write_text(f"#!{os.path.realpath(sys.executable)}\nimport json, sys, os, time\n{body}\n")
    path.chmod(mode)
    return str(path)


ANSWER = f"""
asked = json.load(sys.stdin)
json.dump({{"protocolVersion": 1, "values": {{each: {KEY!r} for each in asked["ids"]}}}}, sys.stdout)
"""


def ref(source: str, name: str, provider: str = "p") -> dict[str, str]:
    return {"source": source, "provider": provider, "id": name}


def test_from_the_environment(paths: Paths) -> None:
    written(paths, ref("env", "OPENAI_API_KEY", "default"))
    assert key(loaded(paths, {"OPENAI_API_KEY": KEY})) == KEY


def test_from_the_store(paths: Paths) -> None:
    Store(paths.secrets).set("OPENAI_API_KEY", KEY, Entry())
    written(paths, ref("store", "OPENAI_API_KEY", "default"))
    found = loaded(paths)
    assert key(found) == KEY
    assert KEY in view.known_secrets(found)


def test_from_a_file_of_ones_own(paths: Paths, tmp_path: Path) -> None:
    file = tmp_path / "own.json"
    file.write_text(json.dumps({"openai": {"api/key": KEY}}))
    file.chmod(0o600)
    written(paths, ref("file", "/openai/api~1key"), {"p": {"source": "file", "path": str(file)}})
    assert key(loaded(paths)) == KEY


def test_from_a_program_by_the_protocol(paths: Paths, tmp_path: Path) -> None:
    written(paths, ref("exec", "a/key"), {"p": {"source": "exec", "command": program(tmp_path, ANSWER)}})
    assert key(loaded(paths)) == KEY


def test_from_a_program_that_prints_it_with_the_environment_it_was_given(paths: Paths, tmp_path: Path) -> None:
    body = "print(os.environ['WHERE'] + ' '.join(sorted(set(os.environ) - {'LC_CTYPE'})))"
    provider = {"source": "exec", "command": program(tmp_path, body), "jsonOnly": False, "passEnv": ["WHERE"]}
    written(paths, ref("exec", "value"), {"p": provider})
    assert key(loaded(paths, {"WHERE": "key-", "OTHER": "x"})) == "key-WHERE"


@pytest.mark.parametrize(
    ("body", "more", "told"),
    [
        ("print('Sorry: ' + 'x' * 20)", {}, "does not answer as a provider of secrets does"),
        ("time.sleep(20)", {"timeoutMs": 200}, "did not answer within 0.2 s"),
        ("sys.exit(3)", {}, "ended with 3"),
        ("print('x' * 5000)", {"maxOutputBytes": 1000}, "printed more than 1000 bytes"),
        (
            "json.dump({'protocolVersion': 1, 'values': {}, 'errors': {'a/key': {'code': 'NOT_FOUND'}}}, sys.stdout)",
            {},
            "the program does not give it (NOT_FOUND)",
        ),
        ("json.dump({'protocolVersion': 1, 'values': {'a/key': ''}}, sys.stdout)", {}, "it is empty there"),
    ],
)
def test_a_program_that_does_not_give_it(
    paths: Paths, tmp_path: Path, body: str, more: dict[str, Any], told: str
) -> None:
    written(paths, ref("exec", "a/key"), {"p": {"source": "exec", "command": program(tmp_path, body), **more}})
    found = loaded(paths)
    with pytest.raises(NotFound) as fault:
        key(found)
    assert "models.providers.openai.apiKey: exec:p:a/key" in str(fault.value)
    assert told in str(fault.value)
    assert any(told in issue.message for issue in found.warnings)
    assert "Sorry" not in repr(found.warnings)


@pytest.mark.parametrize(
    ("reference", "providers", "told"),
    [
        (ref("env", "NOPE", "default"), {}, 'Missing env var "NOPE"'),
        (ref("env", "HOME"), {"p": {"source": "env", "allowlist": []}}, "the provider's allowlist does not name HOME"),
        (ref("env", "HOME", "other"), {}, 'declare it: secrets.providers.other with source "env"'),
        (ref("file", "/a"), {"p": {"source": "env"}}, 'declare it: secrets.providers.p with source "file"'),
        (ref("file", "/a"), {"p": {"source": "file", "path": "/nowhere"}}, "No such file or directory"),
        (ref("store", "nope", "default"), {}, "its id must be capital letters"),
        (ref("store", "NOPE", "default"), {}, "`garra secrets set NOPE` puts it there"),
        (ref("exec", "../a"), {"p": {"source": "exec", "command": "/bin/true"}}, "its id must be letters"),
        (ref("exec", "a"), {"p": {"source": "exec", "command": "true"}}, "must be an absolute path"),
        (ref("exec", "a"), {"p": {"source": "exec", "command": "/nowhere/x"}}, "No such file"),
        (ref("env", "HOME", "No Name"), {}, "is no name of a provider"),
    ],
)
def test_what_cannot_be_had_is_never_empty(
    paths: Paths, reference: Any, providers: Mapping[str, Any], told: str
) -> None:
    written(paths, reference, providers)
    found = loaded(paths, {"HOME": "/home/x"})
    assert any(told in issue.message for issue in found.warnings), found.warnings
    secret = found.config.models.providers["openai"].api_key
    assert secret is not None
    assert not secret
    with pytest.raises(NotFound):
        secret.reveal()


@pytest.mark.parametrize("spoilt", ["shared", "link", "hard"])
def test_a_file_that_others_may_read_or_change_is_not_taken(paths: Paths, tmp_path: Path, spoilt: str) -> None:
    file = tmp_path / "key.txt"
    file.write_text(KEY)
    file.chmod(0o644 if spoilt == "shared" else 0o600)
    if spoilt == "link":
        (tmp_path / "other").symlink_to(file)
        file = tmp_path / "other"
    if spoilt == "hard":
        os.link(file, tmp_path / "other")
    written(paths, ref("file", "value"), {"p": {"source": "file", "path": str(file), "mode": "singleValue"}})
    assert not loaded(paths).config.models.providers["openai"].api_key


@pytest.mark.parametrize("spoilt", ["shared", "link", "elsewhere"])
def test_a_program_that_others_may_change_is_not_run(paths: Paths, tmp_path: Path, spoilt: str) -> None:
    command = program(tmp_path, ANSWER, 0o777 if spoilt == "shared" else 0o700)
    if spoilt == "link":
        (tmp_path / "other").symlink_to(command)
        command = str(tmp_path / "other")
    more = {"trustedDirs": ["/usr/bin"]} if spoilt == "elsewhere" else {}
    written(paths, ref("exec", "a/key"), {"p": {"source": "exec", "command": command, **more}})
    assert not loaded(paths).config.models.providers["openai"].api_key


async def test_what_was_fetched_before_serves_on(paths: Paths, tmp_path: Path) -> None:
    command = program(tmp_path, ANSWER)
    written(paths, ref("exec", "a/key"), {"p": {"source": "exec", "command": command}})
    live = await asyncio.to_thread(Live, paths, Environment({}))
    assert key(live.snapshot) == KEY
    program(tmp_path, "sys.exit(1)")
    found = await live.reload()
    assert key(found) == KEY
    assert any("the value fetched before serves on" in issue.message for issue in found.warnings)
    written(paths, ref("exec", "another/key"), {"p": {"source": "exec", "command": command}})
    assert not (await live.reload()).config.models.providers["openai"].api_key


def test_a_look_at_the_configuration_asks_no_program_for_what_it_does_not_need(paths: Paths, tmp_path: Path) -> None:
    command = program(tmp_path, f"open({str(tmp_path / 'ran')!r}, 'w').close()\n{ANSWER}")
    written(paths, ref("exec", "a/key"), {"p": {"source": "exec", "command": command}})
    assert peek(paths, {})["models"]["providers"]["openai"]["apiKey"] == ""
    assert not (tmp_path / "ran").exists()
    gateway = {"auth": {"token": ref("exec", "token")}}
    written(paths, ref("exec", "a/key"), {"p": {"source": "exec", "command": command}}, gateway=gateway)
    assert peek(paths, {})["gateway"]["auth"]["token"] == KEY


def test_a_reference_is_shown_and_written_as_one(paths: Paths) -> None:
    Store(paths.secrets).set("OPENAI_API_KEY", KEY, Entry())
    reference = ref("store", "OPENAI_API_KEY", "default")
    written(paths, reference)
    found = loaded(paths)
    shown = view.snapshot(paths, found)
    assert shown["config"]["models"]["providers"]["openai"]["apiKey"] == reference
    assert KEY not in json.dumps(shown)
    writer = Writer(paths, Environment({}))
    writer.replace(str(shown["raw"]), found.hash)
    writer.patch({"gateway": {"port": 19999}})
    writer.set("agents.defaults.timeoutSeconds", 5)
    for file in (paths.config_file, paths.last_good, paths.config_file.with_name("garra.json.bak")):
        assert not file.exists() or KEY not in file.read_text()
    assert json.loads(paths.config_file.read_text())["models"]["providers"]["openai"]["apiKey"] == reference


def test_secrets_are_not_in_what_a_snapshot_looks_like(paths: Paths) -> None:
    Store(paths.secrets).set("OPENAI_API_KEY", KEY, Entry())
    written(paths, ref("store", "OPENAI_API_KEY", "default"))
    found = loaded(paths)
    assert KEY not in repr(replace(found, resolved={}))


async def test_a_change_of_the_store_is_noticed(paths: Paths) -> None:
    store = Store(paths.secrets)
    await asyncio.to_thread(store.set, "OPENAI_API_KEY", KEY, Entry())
    written(paths, ref("store", "OPENAI_API_KEY", "default"))
    live = await asyncio.to_thread(Live, paths, Environment({}))
    told: list[str] = []
    live.subscribe(lambda _old, new: told.append(key(live.snapshot)))
    watching = asyncio.create_task(live.watch(0.01))
    await asyncio.to_thread(store.set, "OPENAI_API_KEY", "another-key-0123456789", Entry())
    async with asyncio.timeout(20):
        while not told:  # noqa: ASYNC110 - it watches a file
            await asyncio.sleep(0.01)
    watching.cancel()
    assert told == ["another-key-0123456789"]
