"""The audit of the real program: on a fresh installation, on broken ones, beside a gateway that runs."""

from __future__ import annotations

import json
import re
import stat
from pathlib import Path

import pytest

from tests.checks.security.standing import WORDS, build, expected, fixtures
from tests.e2e.program import ROOT, Program, gateway

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(60)]

BROKEN = (
    "fs.state_dir.perms_world_writable",
    "fs.config.perms_writable",
    "fs.config.perms_world_readable",
    "fs.auth_profiles.perms_writable",
    "fs.synced_dir",
    "gateway.loopback_no_auth",
    "gateway.bind_no_auth",
    "gateway.tailscale_funnel",
    "gateway.token_too_short",
    "gateway.auth_no_rate_limit",
    "gateway.trusted_proxies_missing",
    "gateway.control_ui.allowed_origins_required",
    "hooks.token_reuse_gateway_token",
    "hooks.path_root",
    "browser.control_no_auth",
    "sandbox.dangerous_bind_mount",
    "sandbox.dangerous_network_mode",
    "tools.elevated.allowFrom.<channel>.wildcard",
    "channels.<channel>.dm.open",
    "channels.<channel>.dm.scope_main_multiuser",
    "security.exposure.open_groups_with_elevated",
    "skills.workspace.symlink_escape",
    "plugins.extensions_no_allowlist",
    "plugins.code_safety",
    "config.insecure_or_dangerous_flags",
)


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path)


@pytest.mark.req("SEC-12")
def test_a_fresh_installation_shows_nothing_to_mend(program: Program) -> None:
    bare = program.run("security", "audit", "--json")
    assert (bare.code, bare.json["summary"]) == (0, {"critical": 0, "warn": 0, "info": 1})
    assert program.run("onboard", "--non-interactive").code == 0
    with gateway(program):
        deep = program.run("security", "audit", "--deep", "--json")
    assert (deep.code, deep.json["summary"]) == (0, {"critical": 0, "warn": 0, "info": 1})
    words = program.run("security", "audit").out
    assert words.rstrip().endswith("0 critical, 0 to look at, 1 to know.")


@pytest.mark.parametrize("check_id", BROKEN)
@pytest.mark.req("SEC-12", "SEC-13")
def test_a_broken_one_shows_exactly_what_is_wrong(tmp_path: Path, check_id: str) -> None:
    told = fixtures()[check_id]["bad"]
    built = build(tmp_path, told)
    ran = Program(tmp_path, built.env).run("security", "audit", "--json", *(["--deep"] if told.get("deep") else []))
    found = ran.json["findings"]
    assert {one["checkId"] for one in found} - {"summary.attack_surface"} == expected(check_id)
    critical = any(one["severity"] == "critical" for one in found)
    assert ran.code == int(critical)
    assert all({"checkId", "severity", "title", "detail"} <= set(one) for one in found)
    assert not [word for name, word in WORDS.items() if name in ("$LONG", "$OTHER") and word in ran.out]


@pytest.mark.req("SEC-14")
def test_deep_reads_code_and_names_the_lines(tmp_path: Path) -> None:
    built = build(tmp_path, fixtures()["plugins.code_safety"]["bad"])
    program = Program(tmp_path, built.env)
    assert "plugins.code_safety" not in program.run("security", "audit", "--json").out
    ran = program.run("security", "audit", "--deep", "--json")
    (one,) = [one for one in ran.json["findings"] if one["checkId"] == "plugins.code_safety"]
    assert (one["severity"], ran.code) == ("critical", 1)
    assert "index.js:1: starts programs" in one["detail"]
    assert "index.js:2: runs text as code" in one["detail"]


@pytest.mark.req("SEC-14")
def test_deep_asks_the_gateway_that_runs(program: Program) -> None:
    program.configure(gateway={"auth": {"mode": "none"}})
    program.config.chmod(0o600)
    with gateway(program):
        ran = program.run("security", "audit", "--deep", "--json")
    ids = {one["checkId"] for one in ran.json["findings"]}
    assert {"gateway.probe_unauthenticated", "gateway.loopback_no_auth"} <= ids
    program.configure(gateway={"auth": {"token": WORDS["$LONG"]}})
    program.config.chmod(0o600)
    with gateway(program):
        fine = program.run("security", "audit", "--deep", "--json")
        wrong = program.run("security", "audit", "--deep", "--json", "--token", "another")
    assert fine.json["summary"] == {"critical": 0, "warn": 0, "info": 1}
    assert "gateway.probe_failed" in {one["checkId"] for one in wrong.json["findings"]}


@pytest.mark.req("SEC-15")
def test_fix_closes_groups_and_files_and_says_how_to_take_it_back(program: Program) -> None:
    program.configure(
        gateway={"auth": {"mode": "none"}}, channels={"telegram": {"groupPolicy": "open", "enabled": True}}
    )
    program.state.chmod(0o755)
    program.config.chmod(0o644)
    ran = program.run("security", "audit", "--fix", "--json")
    assert ran.json["fix"]["ok"] is True
    assert {one["undo"].split()[0] for one in ran.json["fix"]["changes"]} == {"chmod", "garra"}
    after = json.loads(program.config.read_text())
    assert after["channels"]["telegram"]["groupPolicy"] == "allowlist"
    assert after["gateway"] == {"auth": {"mode": "none"}}
    assert [stat.S_IMODE(path.stat().st_mode) for path in (program.state, program.config)] == [0o700, 0o600]
    left = {one["checkId"] for one in ran.json["report"]["findings"] if one["severity"] != "info"}
    assert left == {"gateway.loopback_no_auth", "gateway.http.no_auth"}
    assert ran.code == 1
    back = [one["undo"] for one in ran.json["fix"]["changes"] if one["undo"].startswith("garra")]
    assert program.run(*back[0].split()[1:]).code == 0
    assert json.loads(program.config.read_text())["channels"]["telegram"]["groupPolicy"] == "open"


@pytest.mark.req("SEC-08")
def test_the_public_internet_needs_a_password(program: Program) -> None:
    funnel = {"tailscale": {"mode": "funnel"}, "port": 18_993}
    program.configure(gateway={**funnel, "auth": {"token": WORDS["$LONG"]}})
    ran = program.run("gateway", "run")
    assert ran.code != 0
    assert "refusing to start: gateway.tailscale.mode is funnel" in ran.err
    assert WORDS["$LONG"] not in ran.err
    program.configure(gateway={**funnel, "auth": {"mode": "password", "password": WORDS["$LONG"]}})
    with gateway(program):
        assert program.run("health").code == 0


@pytest.mark.req("SEC-16")
def test_status_says_what_a_gateway_is_and_what_it_is_not(program: Program) -> None:
    said = program.run("status").out
    assert "Trust     one owner, or a few who trust each other: a gateway is no wall between them" in said
    page = (ROOT / "docs" / "concepts" / "security.md").read_text()
    assert "One trust boundary for each gateway" in page
    assert "People who do not trust each other need gateways of their own" in page
    assert not re.search(r"tenants? (are|is) (kept )?(apart|isolated)|multi-tenant", page + said)


def test_what_the_gateway_is_started_with_is_judged_where_it_is_told(program: Program) -> None:
    hooks = {"enabled": True, "token": "${HOOKS}", "defaultSessionKey": "hook:in", "allowedAgentIds": ["main"]}
    program.configure(hooks=hooks)
    program.config.chmod(0o600)
    program.env["HOOKS"] = WORDS["$LONG"]
    assert program.run("security", "audit", "--json").json["summary"]["critical"] == 0
    ran = program.run("security", "audit", "--json", "--auth", "password", "--password", WORDS["$LONG"])
    assert [one["checkId"] for one in ran.json["findings"]][:1] == ["hooks.token_reuse_gateway_token"]
    assert WORDS["$LONG"] not in ran.out
