"""Every kind of finding: a bad installation shows it, and nothing else; a good one does not."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies
from pydantic import ValidationError

from garra.checks.finding import Ground as Found
from garra.checks.security import deep
from garra.checks.security.audit import ORDER, Report, accepts, audit, told
from garra.checks.security.finding import Finding, catalog, found
from garra.checks.security.gather import gather
from garra.checks.security.ground import Deep, Ground
from garra.checks.security.reach import strangers
from garra.config import gate
from garra.config.load import load
from garra.config.paths import resolve
from garra.config.sections import Config
from garra.core import merge
from garra.io.env import Environment
from tests.checks.security.standing import Built, build, expected, fixtures

LIVE = {"gateway.probe_failed", "gateway.probe_unauthenticated"}
"""Those need a gateway that runs: tests/e2e/test_audit.py."""
NOBODY = argparse.Namespace(url="", token="", password="")


def judged(built: Built) -> Report:
    env = Environment(built.env)
    paths = resolve(env)
    ground = Found(paths, env, load(paths, env))
    return audit(gather(ground, deep.look(ground, NOBODY) if built.deep else None))


def ids(report: Report) -> set[str]:
    return {one.check_id for one in report.findings} - {"summary.attack_surface"}


def test_every_kind_has_both_its_fixtures() -> None:
    assert set(catalog()) == {*fixtures(), *LIVE, "summary.attack_surface"}


@pytest.mark.parametrize("check_id", sorted(fixtures()))
@pytest.mark.req("SEC-13")
def test_the_bad_one_shows_it_and_nothing_else(tmp_path: Path, check_id: str) -> None:
    assert ids(judged(build(tmp_path, fixtures()[check_id]["bad"]))) == expected(check_id)


@pytest.mark.parametrize("check_id", sorted(fixtures()))
@pytest.mark.req("SEC-13")
def test_the_good_one_does_not_show_it(tmp_path: Path, check_id: str) -> None:
    name = next(iter(expected(check_id) - set(fixtures()[check_id]["bad"].get("also", ()))), check_id)
    assert name not in ids(judged(build(tmp_path, fixtures()[check_id]["good"])))


def test_a_kind_says_what_it_is_why_and_how_it_is_mended() -> None:
    for kind in catalog().values():
        assert kind.title.strip()
        assert kind.why.endswith(".")
        assert kind.remedy or kind.id == "summary.attack_surface"
        assert set(kind.severities) <= {"info", "warn", "critical"}


def test_a_kind_is_never_of_a_severity_that_it_does_not_name() -> None:
    with pytest.raises(ValueError, match="never info"):
        found("gateway.bind_no_auth", "", "info")


def test_what_is_worse_on_an_open_port() -> None:
    said = {"gateway": {"allowRealIpFallback": True, "tools": {"allow": ["bash"]}, "auth": {"mode": "none"}}}
    near = Ground(Config.model_validate(said))
    far = Ground(Config.model_validate(said), hosts=("0.0.0.0",))
    worse = ("gateway.real_ip_fallback_enabled", "gateway.tools_invoke_http.dangerous_allow")
    for check_id in worse:
        found_by = [next(one.severity for one in audit(g).findings if one.check_id == check_id) for g in (near, far)]
        assert found_by == ["warn", "critical"]


def test_who_a_running_gateway_lets_in() -> None:
    shut = Ground(Config(), deep=Deep("ws://127.0.0.1:1", True, "nobody there"))
    assert ids(audit(shut)) == {"gateway.probe_failed"}
    naked = Ground(Config(), deep=Deep("ws://127.0.0.1:1", True, naked=True))
    assert ids(audit(naked)) == {"gateway.probe_unauthenticated"}
    assert not ids(audit(Ground(Config(), deep=Deep())))
    words = [
        next(one.detail for one in audit(ground).findings if one.check_id == "summary.attack_surface")
        for ground in (Ground(Config()), Ground(Config(), deep=Deep()), shut, naked)
    ]
    assert "asked" not in words[0]
    assert "gateway not asked: none runs" in words[1]
    assert "gateway asked at ws://127.0.0.1:1: it did not answer" in words[2]
    assert "gateway asked at ws://127.0.0.1:1: it answered" in words[3]


@pytest.mark.parametrize(("enabled", "severity"), [(True, "critical"), (None, "warn"), (False, None)])
def test_a_list_for_everybody_is_told_before_it_counts(enabled: bool | None, severity: str | None) -> None:
    said = {} if enabled is None else {"enabled": enabled}
    ground = Ground(Config.model_validate({"tools": {"elevated": {"allowFrom": {"telegram": ["*"]}, **said}}}))
    told = [one.severity for one in audit(ground).findings if one.check_id.endswith("wildcard")]
    assert told == ([severity] if severity else [])


@pytest.mark.parametrize("star", ["*", "telegram:*", "accessGroup:all"])
def test_however_everybody_is_written(star: str) -> None:
    groups = {"all": {"type": "message.senders", "members": {"*": ["*"]}}}
    said = {"accessGroups": groups, "channels": {"telegram": {"allowFrom": [star]}}}
    found_ids = ids(audit(Ground(Config.model_validate(said))))
    assert found_ids == {"channels.telegram.dm.open", "security.trust_model.multi_user_heuristic"}


def test_everybody_in_direct_messages_is_everybody_in_groups_unless_said() -> None:
    def open_to(**rules: object) -> tuple[str, ...]:
        said = {"channels": {"telegram": {"dmPolicy": "disabled", "allowFrom": ["*"], **rules}}}
        return strangers(Ground(Config.model_validate(said)))

    assert open_to() == ("telegram/default",)
    assert open_to(groupAllowFrom=["7"]) == open_to(groupPolicy="disabled") == ()
    assert open_to(groupAllowFrom=["7"], groups={"-1": {"allowFrom": ["*"]}}) == ("telegram/default",)


def test_every_account_is_judged_and_its_own_word_counts() -> None:
    channels = {"telegram": {"groupPolicy": "open", "accounts": {"a": {"groupPolicy": "allowlist"}, "b": {}}}}
    report = audit(Ground(Config.model_validate({"channels": channels})))
    (one,) = [one for one in report.findings if one.check_id == "channels.telegram.groups.open"]
    assert one.detail == "channels.telegram.groupPolicy is open."


@pytest.mark.parametrize(
    ("rule", "fits"),
    [
        ({"checkId": "a.b"}, True),
        ({"checkId": "a.b", "detailIncludes": "LONG"}, True),
        ({"checkId": "a.b", "titleIncludes": "title", "detailIncludes": "short"}, False),
        ({"checkId": "a.b.c"}, False),
        ({"detailIncludes": "long"}, False),
    ],
)
def test_what_the_owner_accepts(rule: dict[str, str], fits: bool) -> None:
    assert accepts(rule, Finding("a.b", "warn", "A title", "A long detail.")) is fits


@pytest.mark.req("SEC-12")
def test_what_is_accepted_is_counted_apart_and_that_it_is_so_is_always_told() -> None:
    rules = [{"checkId": "tools.taint_off"}, {"checkId": "security.audit.suppressions.active"}]
    said = {"tools": {"taint": {"mode": "off"}}, "security": {"audit": {"suppressions": rules}}}
    report = audit(Ground(Config.model_validate(said), tree=said))
    shown = told(report, 7)
    assert shown["summary"] == {"critical": 0, "warn": 0, "info": 2}
    assert [one["checkId"] for one in shown["suppressedFindings"]] == ["tools.taint_off"]
    assert "security.audit.suppressions.active" in {one["checkId"] for one in shown["findings"]}
    assert report.code == 0
    assert audit(Ground(Config(), hosts=("0.0.0.0",))).code == 1


CONFIGS = [merged for both in fixtures().values() if (merged := both["bad"].get("config")) and "$include" not in merged]


@given(strategies.lists(strategies.sampled_from(CONFIGS), max_size=8))
@settings(deadline=None, max_examples=150)
def test_whatever_comes_together_is_judged(chosen: list[dict[str, object]]) -> None:
    whole: dict[str, object] = {}
    for one in chosen:
        whole = merge.deep(whole, one)
    try:
        config = Config.model_validate(whole)
    except ValidationError:
        return
    for hosts in ((), ("0.0.0.0",), ("127.0.0.1",)):
        report = audit(Ground(config, whole, whole, gate.read(config, {}), hosts))
        order = [one.severity for one in report.findings]
        assert order == sorted(order, key=ORDER.index)
        assert len(set(report.findings)) == len(report.findings)
