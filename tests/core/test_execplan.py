"""Where a command runs, for how long, with which environment."""

from __future__ import annotations

import pytest

from garra.core.errors import ToolFailed
from garra.core.execplan import (
    AskOwner,
    Host,
    InSandbox,
    OnHost,
    Place,
    Refused,
    check_command,
    check_environment,
    environment,
    filled,
    place,
    window_ms,
)
from garra.core.execrules import Entry, Policy

NONE = "no sandbox can start"


def where(asked: Host, configured: Host, missing: str | None = None, *, interactive: bool = False) -> Place:
    return place(asked, configured, elevated=False, missing=missing, interactive=interactive)


@pytest.mark.req("TOOL-11")
def test_with_a_sandbox_everything_runs_in_it_unless_the_owner_said_otherwise() -> None:
    shut: tuple[Host, ...] = ("auto", "sandbox")
    for asked in shut:
        for configured in shut:
            assert where(asked, configured) == InSandbox()
    assert where("auto", "gateway") == OnHost()
    assert where("gateway", "gateway") == OnHost()
    assert where("sandbox", "gateway") == InSandbox()


def test_a_call_cannot_leave_the_sandbox_by_asking() -> None:
    assert isinstance(where("gateway", "auto"), Refused)
    assert isinstance(where("gateway", "sandbox", NONE, interactive=True), Refused)


@pytest.mark.req("TOOL-11")
def test_without_a_sandbox_only_the_owner_at_a_terminal_is_asked() -> None:
    assert where("auto", "auto", NONE) == Refused("No command was run: no sandbox can start")
    assert where("auto", "auto", NONE, interactive=True) == AskOwner(NONE)
    wanted: tuple[tuple[Host, Host], ...] = (("sandbox", "auto"), ("auto", "sandbox"), ("sandbox", "gateway"))
    for asked, configured in wanted:
        assert isinstance(where(asked, configured, NONE, interactive=True), Refused)


def test_what_is_not_here() -> None:
    assert isinstance(where("node", "auto"), Refused)
    assert isinstance(where("auto", "node"), Refused)
    assert isinstance(place("auto", "gateway", elevated=True, missing=None, interactive=True), Refused)


@pytest.mark.req("TOOL-16")
def test_elevated_leaves_the_sandbox_only_where_it_may() -> None:
    assert place("auto", "auto", elevated=True, missing=None, interactive=False, barred="no") == Refused("no")
    assert place("auto", "auto", elevated=True, missing=None, interactive=False, barred="") == OnHost()
    assert isinstance(place("auto", "node", elevated=True, missing=None, interactive=False, barred=""), Refused)


def test_what_holds_where_nothing_is_said() -> None:
    assert filled(Policy(), shut_in=True) == Policy("full", "off")
    assert filled(Policy(), shut_in=False) == Policy("allowlist", "on-miss")
    assert filled(Policy("allowlist"), shut_in=True) == Policy("allowlist", "on-miss")
    assert filled(Policy("full"), shut_in=False) == Policy("full", "off")
    said = Policy("deny", "always", "full", (Entry("ls"),))
    assert filled(said, shut_in=True) == said


@pytest.mark.req("TOOL-13")
@pytest.mark.parametrize(
    "command",
    [
        "/approve a1b2 allow-once",
        "  /approve a1b2",
        "echo x; /approve a1b2",
        "sh -c '/approve x'",
        "garra approvals approve a1b2",
        "/usr/bin/garra --profile x approvals set --file f",
        "openclaw approvals approve a1b2",
        "FOO=1 garra exec-policy preset yolo",
        "garra devices approve x",
        "garra pairing approve telegram X",
        "/deny a1b2",
    ],
)
def test_the_model_answers_no_question_of_its_own(command: str) -> None:
    with pytest.raises(ToolFailed, match="given by people"):
        check_command(command)


@pytest.mark.parametrize(
    "command", ["ls /approved", "garra status", "cat docs/approve.md", "echo approvals", "ls /denying"]
)
def test_what_only_looks_like_an_answer_runs(command: str) -> None:
    check_command(command)


def test_even_a_long_line_is_looked_through_in_no_time() -> None:
    for piece in ("garra ", " -c ", "/approv", ";  ", "'", "garra approval "):
        check_command("x" + piece * (99_000 // len(piece)))


@pytest.mark.parametrize(
    ("asked", "background", "wanted"),
    [(None, False, 10_000), (1, False, 10), (50, False, 50), (10**9, False, 120_000), (-5, False, 10), (50, True, 0)],
)
def test_the_window_is_clamped(asked: int | None, background: bool, wanted: int) -> None:
    assert window_ms(asked, 10_000, background=background) == wanted


@pytest.mark.req("TOOL-09")
@pytest.mark.parametrize(
    "name",
    [
        "PATH", "path", "LD_PRELOAD", "LD_LIBRARY_PATH", "DYLD_INSERT_LIBRARIES", "PYTHONPATH", "PYTHONSTARTUP",
        "NODE_OPTIONS", "BASH_ENV", "ENV", "BASH_FUNC_ls", "PROMPT_COMMAND", "IFS", "PERL5OPT", "RUBYOPT",
        "GIT_SSH_COMMAND", "GIT_CONFIG_COUNT", "GCONV_PATH", "https_proxy", "HTTP_PROXY", "SSL_CERT_FILE", "HOME",
        "GARRA_STATE_DIR", "OPENCLAW_GATEWAY_TOKEN", "npm_config_script_shell",
    ],
)  # fmt: skip
def test_what_may_not_be_set(name: str) -> None:
    with pytest.raises(ToolFailed, match="may not be set"):
        check_environment({name: "x"})


def test_what_is_no_environment() -> None:
    for env in ({"A-B": "x"}, {"": "x"}, {"A=B": "x"}, {"A": "x\0y"}, {"A": "x" * 40_000}):
        with pytest.raises(ToolFailed, match="env:"):
            check_environment(env)
    check_environment({"CI": "1", "MY_NAME": "ok"})


def test_what_is_no_command() -> None:
    for command in ("", "  \n", "a\0b", "a\ud800", "x" * 100_001):
        with pytest.raises(ToolFailed, match="command:"):
            check_command(command)
    check_command("echo é")


def test_the_environment_is_built() -> None:
    env = environment("/w", {"CI": "1"}, ("/opt/bin",), terminal=False)
    assert env["HOME"] == "/w"
    assert env["PATH"].startswith("/opt/bin:/usr/local/sbin:")
    assert (env["CI"], env["TERM"]) == ("1", "dumb")
    assert environment("/w", {}, terminal=True)["TERM"] == "xterm-256color"
