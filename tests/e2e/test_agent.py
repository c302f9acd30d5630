"""`garra agent`: the contract that programs which run an agent as a child rely on."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from garra.testing.model_server import ModelServer, Say
from tests.e2e.program import Program, awaited, gateway, model, speaking

pytestmark = pytest.mark.e2e


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model(ModelServer()) as running:
        yield running


@pytest.fixture
def program(tmp_path: Path, server: ModelServer) -> Program:
    made = Program(tmp_path)
    made.configure(**speaking(server.url, gateway={"auth": {"mode": "token", "token": "t"}}))
    return made


def coffer(key: str, text: str) -> tuple[str, ...]:
    """The very argument list of a program that manages agents."""
    return ("agent", "--agent", "main", "--session-key", key, "-m", text, "--json", "--local")


def shown(blob: dict[str, Any]) -> str:
    """The answer as such a program reads it: the payloads, else the final text."""
    texts = [part["text"] for part in blob["payloads"] if part.get("text")]
    return "\n\n".join(texts) or blob["meta"]["finalAssistantVisibleText"]


@pytest.mark.req("COF-01", "COF-03")
def test_the_exact_arguments_and_the_exact_shape(program: Program) -> None:
    ran = program.run(*coffer("coffer-1", "say hello"))
    assert ran.code == 0
    blob = ran.json
    meta = blob["meta"]
    assert shown(blob).startswith("pong")
    assert blob["payloads"][0]["mediaUrl"] is None
    assert meta["completion"] == {"stopReason": "stop", "finishReason": "stop"}
    trace = meta["executionTrace"]
    assert (trace["winnerProvider"], trace["winnerModel"], trace["fallbackUsed"]) == ("fake", "fake", False)
    assert trace["attempts"][0]["result"] == "success"
    assert meta["agentMeta"]["sessionFile"] == "agent:main:coffer-1"
    assert (meta["aborted"], meta["stopReason"]) == (False, "stop")
    assert meta["durationMs"] >= 0


@pytest.mark.req("COF-01")
@pytest.mark.parametrize(
    "text", ["-rf / --json is no option here", "--local", "-m", "x" * 100_000], ids=["dash", "option", "same", "long"]
)
def test_any_text_is_a_message(program: Program, server: ModelServer, text: str) -> None:
    assert program.run(*coffer("coffer-1", text)).code == 0
    said = json.dumps(server.requests[-1].body["messages"][-1])
    assert json.dumps(text)[1:-1] in said


@pytest.mark.req("COF-02")
def test_standard_output_is_one_object_at_any_log_level(program: Program) -> None:
    for level in ("trace", "debug", "error"):
        ran = program.run("--log-level", level, *coffer("coffer-1", 'tool:exec {"command": "echo out; echo err >&2"}'))
        assert ran.code == 0
        assert shown(ran.json) == "tool done"


@pytest.mark.req("COF-02")
def test_a_failure_is_an_object_too_and_the_reason_is_on_standard_error(program: Program) -> None:
    for words in (coffer("coffer-1", "fail:400"), coffer(" ", "hello"), ("agent", "--json", "--local", "-m", "")):
        ran = program.run(*words)
        assert ran.code == 1
        assert ran.json["ok"] is False
        assert ran.json["error"]["type"] == "cli_error"
        assert ran.json["error"]["message"] in ran.err
        assert "Traceback" not in ran.err
    down = program.run("agent", "-m", "hello", "--json")
    assert (down.code, down.json["ok"]) == (1, False)
    assert "garra gateway run" in down.err


@pytest.mark.req("COF-04")
def test_a_slow_reader_and_an_unread_error_stream_block_nothing(program: Program, server: ModelServer) -> None:
    server.then(Say("y" * 2_000_000))
    argv = program.argv("--log-level", "trace", *coffer("coffer-1", "much"))
    with subprocess.Popen(argv, env=program.variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout is not None
        taken = child.stdout.read(1000)
        time.sleep(0.5)
        assert child.poll() is None
        taken += child.stdout.read()
        assert child.wait(10) == 0
    assert len(shown(json.loads(taken))) == 2_000_000


@pytest.mark.req("COF-04", "COF-05")
def test_a_killed_turn_leaves_a_conversation_that_goes_on(program: Program, server: ModelServer) -> None:
    first = program.run(*coffer("coffer-9", "remember the word kelp")).json
    argv = program.argv(*coffer("coffer-9", "sleep:30"))
    with subprocess.Popen(argv, env=program.variables, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
        awaited(lambda: any("sleep:30" in request.raw.decode() for request in server.requests))
        child.send_signal(signal.SIGKILL)
    second = program.run(*coffer("coffer-9", "which word?")).json
    assert second["meta"]["agentMeta"]["sessionId"] == first["meta"]["agentMeta"]["sessionId"]
    sent = json.dumps(server.requests[-1].body["messages"])
    assert "remember the word kelp" in sent
    assert "which word?" in sent


@pytest.mark.req("COF-05")
def test_another_key_is_another_conversation(program: Program, server: ModelServer) -> None:
    one = program.run(*coffer("coffer-a", "the word is agar")).json
    other = program.run(*coffer("coffer-b", "hello")).json
    assert one["meta"]["agentMeta"]["sessionId"] != other["meta"]["agentMeta"]["sessionId"]
    assert "agar" not in json.dumps(server.requests[-1].body["messages"])


@pytest.mark.req("COF-06")
def test_local_needs_no_gateway_and_hands_over_to_one_that_runs(program: Program) -> None:
    alone = program.run(*coffer("coffer-1", "first")).json
    with gateway(program):
        handed = program.run(*coffer("coffer-1", "second"))
        assert handed.code == 0
        through = program.run("agent", "--session-key", "coffer-1", "-m", "third", "--json").json
    assert set(handed.json) == set(alone) == {"payloads", "meta"}
    assert set(handed.json["meta"]) == set(alone["meta"])
    ids = {body["meta"]["agentMeta"]["sessionId"] for body in (alone, handed.json, through["result"])}
    assert len(ids) == 1
    assert (through["status"], through["summary"]) == ("ok", "completed")
    assert program.run(*coffer("coffer-1", "fourth")).code == 0


@pytest.mark.req("OV-02")
def test_a_run_outlives_its_client_and_another_reads_the_result(program: Program, server: ModelServer) -> None:
    with gateway(program):
        argv = program.argv("agent", "--session-key", "long", "-m", "sleep:1.5")
        with subprocess.Popen(
            argv, env=program.variables, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as child:
            awaited(lambda: bool(server.requests))
            child.kill()
        awaited(lambda: "slept" in history(program), 10)
        assert history(program).count("slept") == 1


def history(program: Program) -> str:
    params = json.dumps({"sessionKey": "agent:main:long", "limit": 10})
    return json.dumps(program.run("gateway", "call", "chat.history", "--params", params, "--json").json["messages"])


def test_plain_output_is_the_reply_alone_and_a_message_may_come_from_a_file(program: Program, tmp_path: Path) -> None:
    (tmp_path / "task.md").write_text("hello from a file")
    ran = program.run("agent", "--local", "--message-file", str(tmp_path / "task.md"))
    assert (ran.code, ran.out.splitlines()) == (0, [ran.out.strip()])
    assert ran.out.endswith("hello from a file\n")
    assert program.run("agent", "--local", "--message-file", "-", text="from a pipe").out.endswith("from a pipe\n")
    assert program.run("agent", "--local", "--message-file", "/nonexistent").code == 1
    assert "no channel" in program.run("agent", "--local", "-m", "x", "--deliver").err


def test_exec_is_for_scripts(program: Program, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    ran = program.run("agent", "exec", 'tool:exec {"command": "pwd"}', "--json", "--cwd", str(work))
    assert (ran.code, ran.json["ok"], ran.json["final"]) == (0, True, "tool done")
    assert not (program.state / "agents").exists()
    failed = program.run("agent", "exec", "fail:400", "--json")
    assert (failed.code, failed.json["status"]) == (1, "error")
    assert failed.json["error"]["message"] in failed.err
    late = program.run("agent", "exec", "sleep:20", "--timeout", "0.5", "--json")
    assert (late.code, late.json["status"]) == (2, "timeout")


def test_what_comes_on_standard_input_is_answered(program: Program, server: ModelServer) -> None:
    server.then(Say("Paris."), Say("Lisbon."))
    ran = program.run(text="What is the capital of France?\n")
    assert (ran.code, ran.out) == (0, "Paris.\n")
    nothing = program.run(text="")
    assert (nothing.code, nothing.out) == (1, "")
    assert "nothing came" in nothing.err
    with gateway(program):
        assert program.run(text="And of Portugal?").out == "Lisbon.\n"
    assert "capital of France" in json.dumps(server.requests[-1].body["messages"])
