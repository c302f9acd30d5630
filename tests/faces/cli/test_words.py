"""What the commands say, and what they read from their arguments."""

from __future__ import annotations

import json
from typing import Any

import pytest

from garra.core.errors import UserError
from garra.faces.cli import agent_exec, logs, models_probe, onboard, output, pairing, parsing, turn
from garra.faces.cli.status import primary_model
from garra.faces.cli.turn import Outcome


def test_a_value_may_begin_with_a_dash() -> None:
    options = {"-m": "--message", "--message": "--message"}
    assert parsing.joined(["-m", "-rf", "--json"], options) == ["--message=-rf", "--json"]
    assert parsing.joined(["--message", "--json"], options) == ["--message=--json"]
    assert parsing.joined(["-m"], options) == ["-m"]
    assert parsing.joined(["--", "-m", "x"], options) == ["--", "-m", "x"]


def test_a_message_is_text_whatever_bytes_came() -> None:
    assert turn.message_of("h\udce9llo", "", None) == "h\ufffdllo"
    assert turn.message_of("", "-", lambda: "piped") == "piped"
    for empty in ("", "  \n"):
        with pytest.raises(UserError, match="no message"):
            turn.message_of(empty, "", None)


@pytest.mark.parametrize(
    ("config", "agent"),
    [
        ({}, "main"),
        ({"agents": {"list": [{"id": "cook"}, {"id": "main"}]}}, "cook"),
        ({"agents": {"list": [{"id": "cook"}, {"id": "home", "default": True}]}}, "home"),
        ({"agents": {"list": [5, {"name": "no id"}]}}, "main"),
    ],
)
def test_the_agent_meant_when_none_is_named(config: dict[str, Any], agent: str) -> None:
    assert turn.default_agent(config) == agent


def test_the_model_as_it_is_configured() -> None:
    assert primary_model({"agents": {"defaults": {"model": {"primary": "a/b"}}}}) == "a/b"
    assert primary_model({"agents": {"defaults": {"model": "a/b"}}}) == "a/b"
    assert primary_model({"agents": []}) is None


def test_an_envelope_for_scripts_says_how_it_went() -> None:
    body = agent_exec.envelope(Outcome("aborted", {"payloads": [], "meta": {}}, "stopped"))
    assert (body["ok"], body["status"], body["model"], body["error"]) == (
        False, "error", None, {"message": "stopped", "kind": "error"},
    )  # fmt: skip
    assert "usage" not in body
    parts = {"payloads": [{"text": "a"}, {"text": None}, {"text": "b"}]}
    assert agent_exec.envelope(Outcome("ok", parts))["final"] == "a\n\nb"


def test_what_others_wrote_cannot_steer_the_terminal() -> None:
    assert output.harmless("a\x1b[31mb\x07\x9bc\td\ne é 你") == "a[31mbc\td\ne é 你"
    assert output.table([("x\x1b]0;t\x07\ny", "z")], ("one", "two")).splitlines()[1:] == ["x]0;t y  z"]
    line = '{"time": "2026-01-01T00:00:00+00:00", "level": "info", "subsystem": "s", "message": "a\\u001b[2Jb"}'
    assert logs.readable(line).endswith(r"info  s: a\x1b[2Jb")
    assert logs.readable("no json") == "no json"


def test_onboarding_keeps_what_stands_and_asks_for_what_fits() -> None:
    asked = onboard._parser().parse_args(["--non-interactive", "--model", "a/b", "--gateway-port", "5"])
    present = {"gateway": {"mode": "remote", "auth": {"token": "mine"}}}
    assert onboard.wanted(asked, present) == {
        "gateway": {"port": 5},
        "agents": {"defaults": {"model": {"primary": "a/b"}}},
    }
    fresh = onboard.wanted(onboard._parser().parse_args([]), {})
    assert (fresh["gateway"]["mode"], len(fresh["gateway"]["auth"]["token"])) == ("local", 48)


def test_a_message_of_the_log_is_one_line_and_steers_no_terminal() -> None:
    entry = {"time": "", "level": "info", "subsystem": "x", "message": "a\r\nb\x1b[2J", "error": "c\nd\x07"}
    assert logs.readable(json.dumps(entry)).splitlines() == [r" info  x: a\r\nb\x1b[2J", "  c", r"  d\x07"]


def test_who_asks_to_be_let_in_cannot_look_like_another() -> None:
    row = {
        "channel": "telegram",
        "accountId": "two",
        "senderId": "6\x1b6",
        "code": "ABCDEFGH",
        "expiresAt": "2026-01-01T12:30:00",
    }
    cells = pairing._waiting({**row, "metadata": {"name": 'evil" telegram\u202e 42'}})
    assert cells == ("telegram", "two", r"6\x1b6", r'"evil\" telegram\u202e 42"', "ABCDEFGH", "12:30 UTC")


def test_who_answered_instead_is_told_with_the_reason() -> None:
    def blob(wanted: str, *attempts: dict[str, str]) -> dict[str, Any]:
        receipt = {"requested": {"provider": "p", "model": wanted}, "effective": {"provider": "p", "model": "b"}}
        told = {**receipt, "rerouted": wanted != "b"}
        return {"meta": {"agentMeta": {"terminalReceipt": told}, "executionTrace": {"attempts": list(attempts)}}}

    failed = {"provider": "p", "model": "a", "result": "timeout"}
    assert turn.rerouted(blob("a", failed)) == "p/b answered instead of p/a: it did not answer in time"
    assert turn.rerouted(blob("a")) == "p/b answered instead of p/a: it rests after a fault"
    assert turn.rerouted(blob("b")) == turn.rerouted({"meta": {}}) == ""


def test_a_cut_answer_is_called_so() -> None:
    row = {"model": "p/m", "status": "unknown", "reasonCode": "cut_stream", "error": "it broke"}
    assert models_probe.line(row) == "p/m: cut off: it broke"
    assert models_probe.line({**row, "reasonCode": "odd"}) == "p/m: unknown: it broke"
