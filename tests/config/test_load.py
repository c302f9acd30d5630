from __future__ import annotations

import contextlib
import hashlib
import json

import pytest

from garra.config.load import keep
from garra.config.peek import look, peek
from garra.core.errors import NotFound
from tests.config.place import Installation, said

PROVIDER = '{ baseUrl: "http://127.0.0.1:1/v1", api: "openai-completions", %s }'


@pytest.mark.req("BOOT-11")
def test_json5_with_comments_loads(here: Installation) -> None:
    found = here.load("// mine\n{ gateway: { port: 1234, /* here */ }, }\n")
    assert (found.valid, found.source, found.config.gateway.port) == (True, "file", 1234)
    assert found.hash == hashlib.sha256(found.raw.encode()).hexdigest()


def test_without_a_file_the_defaults_hold(here: Installation) -> None:
    found = here.load()
    assert (found.valid, found.exists, found.source, found.config.gateway.port) == (True, False, "defaults", 18789)
    assert here.load("{}").valid


@pytest.mark.req("BOOT-12", "COF-19")
def test_a_missing_variable_is_a_warning_and_no_literal_goes_on(here: Installation) -> None:
    text = (
        '{ models: { providers: { coffer: { api: "openai-completions", baseUrl: "http://x/v1",'
        ' apiKey: "${COFFER_PROVIDER_KEY}", headers: { h: "k ${COFFER_PROVIDER_KEY}" }, models: [{id:"m",name:"M"}] },'
        ' other: { baseUrl: "http://y", apiKey: "k", models: [] } } }, gateway: { port: "${NO_PORT}" } }'
    )
    found = here.load(text)
    assert found.valid
    path = "models.providers.coffer.apiKey"
    assert said(found)[path] == 'Missing env var "COFFER_PROVIDER_KEY" - feature using this value will be unavailable'
    coffer, other = (found.config.models.providers[name] for name in ("coffer", "other"))
    assert coffer.api_key is not None
    assert not coffer.api_key
    with pytest.raises(NotFound, match="COFFER_PROVIDER_KEY"):
        coffer.api_key.reveal()
    assert not coffer.headers["h"]
    assert other.api_key is not None
    assert other.api_key.reveal() == "k"
    assert found.config.gateway.port == 18789
    assert "${" not in json.dumps(found.resolved)
    here.env["COFFER_PROVIDER_KEY"] = "sesame"
    there = here.load().config.models.providers["coffer"]
    assert there.api_key is not None
    assert (there.api_key.reveal(), there.headers["h"].reveal()) == ("sesame", "k sesame")


@pytest.mark.req("COF-18")
@pytest.mark.parametrize(
    ("provider", "issues"),
    [
        (PROVIDER % "", {"models.providers.x.models": "custom model providers must declare models"}),
        ("{ models: [] }", {"models.providers.x.baseUrl": "custom model providers must declare baseUrl"}),
        (PROVIDER % "models: [{ id: 'm' }]", {"models.providers.x.models[0].name": "Invalid input"}),
        (PROVIDER % "models: [{ name: 'M' }]", {"models.providers.x.models[0].id": "Invalid input"}),
        (PROVIDER % "models: []", {}),
        (PROVIDER % "models: [{ id: 'm', name: 'M' }]", {}),
    ],
)
def test_a_provider_of_ones_own_declares_its_models(here: Installation, provider: str, issues: dict[str, str]) -> None:
    found = here.load("{ models: { providers: { x: " + provider + " } } }")
    assert found.valid == (not issues)
    assert {issue.path for issue in found.issues} == set(issues)
    assert all(issue.message.startswith(issues[issue.path]) for issue in found.issues)


@pytest.mark.parametrize("name", ["openai", "ollama", "z.ai", "local"])
def test_a_provider_in_the_box_needs_only_what_differs(here: Installation, name: str) -> None:
    assert here.load(json.dumps({"models": {"providers": {name: {"apiKey": "k"}}}})).valid


def test_all_faults_are_named_at_once_with_path_and_line(here: Installation) -> None:
    found = here.load(
        '{\n gateway: {\n  port: "abc",\n  reload: { mode: "zz" } },\n'
        ' agents: { list: [{ id: "a" }, { id: "A" }, {}], entries: { a: {} } },\n'
        " channels: { t: { allowFrom: [{}] } },\n"
        " cron: { maxConcurrentRuns: 0 }, session: [] }"
    )
    assert [(issue.path, issue.line) for issue in found.issues] == [
        ("gateway.port", 3),
        ("gateway.reload.mode", 4),
        ("session", 7),
        ("channels.t.allowFrom[0]", 6),
        ("cron.maxConcurrentRuns", 7),
    ]
    assert found.issues[1].allowed == ("off", "hybrid")
    assert found.issues[1].message == 'Invalid input (allowed: "off", "hybrid"), got: "zz"'
    assert found.issues[4].message.endswith("received 0")
    assert found.issues[3].joined == "channels.t.allowFrom.0"
    twice = here.load('{ agents: { list: [{ id: "a" }, { id: "A" }, {}], entries: { a: {} } } }')
    assert [issue.path for issue in twice.issues] == ["agents.list[1].id", "agents.list[2].id", "agents.entries.a"]


def test_no_secret_is_in_an_issue(here: Installation) -> None:
    found = here.load("{ gateway: { auth: { token: 123456789, mode: 'token' } }, hooks: { token: [987654321] } }")
    assert len(found.issues) == 2
    assert not any("456" in str(issue) or "987" in str(issue) for issue in found.issues)


def test_unknown_keys_are_kept_and_warned_about(here: Installation) -> None:
    found = here.load("{ gateway: { prot: 1 }, bogus: {}, channels: { mine: { anything: 1 } }, mcp: { servers: {} } }")
    assert found.valid
    assert set(said(found)) == {"gateway.prot", "bogus"}
    assert 'did you mean "port"?' in said(found)["gateway.prot"]
    assert found.config.gateway.model_extra == {"prot": 1}


def test_a_searcher_that_nobody_knows_is_told(here: Installation) -> None:
    here.write('{"tools": {"web": {"search": {"provider": "gogle"}}}}')
    (said,) = here.load().warnings
    assert (said.path, said.wrong) == ("tools.web.search.provider", True)
    assert '"brave", "duckduckgo"' in said.message
    here.write('{"tools": {"web": {"search": {"provider": "SearXNG"}}}}')
    assert here.load().warnings == ()


def test_an_unknown_choice_that_safety_depends_on_is_the_closed_one(here: Installation) -> None:
    found = here.load(
        '{ gateway: { bind: "everywhere", auth: { mode: "nope" } }, tools: { exec: { security: "yes" } },'
        ' channels: { telegram: { groupPolicy: "opne", dmPolicy: "", accounts: { a: { dmPolicy: "x" } } } } }'
    )
    assert found.valid
    assert len(found.warnings) == 6
    assert "read as 'allowlist'" in said(found)["channels.telegram.groupPolicy"]
    telegram = found.config.channels["telegram"]
    assert (telegram.group_policy, telegram.dm_policy) == ("allowlist", "disabled")
    assert telegram.accounts["a"].dm_policy == "disabled"
    assert (found.config.gateway.bind, found.config.gateway.auth.mode) == ("loopback", "token")
    assert found.config.tools.exec.security == "deny"


@pytest.mark.req("BOOT-15")
@pytest.mark.parametrize("garbage", ["{ gateway: { port:", "\x00\x01", "[]", "{ gateway: { port: 'x' } }", "null"])
def test_a_broken_file_is_a_state_and_the_last_good_serves(here: Installation, garbage: str) -> None:
    assert here.load(garbage).source == "defaults"
    keep(here.paths, here.load("{ gateway: { port: 4321 } }"))
    found = here.load(garbage)
    assert (found.valid, found.source, found.config.gateway.port) == (False, "last-good", 4321)
    assert found.issues
    keep(here.paths, found)
    assert here.paths.last_good.read_text() == "{ gateway: { port: 4321 } }"
    assert here.text == garbage


def test_syntax_faults_have_line_and_column(here: Installation) -> None:
    found = here.load("{\n  a: 1,\n  b: [1,, 2]\n}")
    assert found.issues[0].message == "line 3, column 9: expected a value, found ','"
    here.file.write_bytes(b"{ a: '\xff' }")
    assert "UTF-8" in here.load().issues[0].message


@pytest.mark.req("COF-08", "COF-17", "COF-20", "COF-24")
def test_what_a_manager_of_openclaw_writes_is_accepted(here: Installation) -> None:
    written = {
        "mcp": {
            "servers": {
                "coffer": {"command": "coffer", "args": ["mcp"], "env": {"A": "b"}},
                "off": {"command": "x", "enabled": False},
            }
        },
        "models": {
            "providers": {
                "coffer": {
                    "api": "anthropic-messages",
                    "baseUrl": "http://127.0.0.1:8080",
                    "apiKey": "${COFFER_PROVIDER_KEY}",
                    "models": [{"id": "m", "name": "M"}],
                }
            }
        },
        "agents": {"defaults": {"model": {"primary": "coffer/m", "fallbacks": ["openai/gpt-5"]}}},
        "plugins": {"slots": {"memory": "none"}},
    }
    here.env["COFFER_PROVIDER_KEY"] = "k"
    found = here.load(json.dumps(written, indent=2) + "\n")
    assert (found.valid, found.warnings, found.issues) == (True, (), ())
    config = found.config
    assert config.plugins.slots.memory == "none"
    assert config.agents.defaults.model.primary == "coffer/m"
    assert config.agents.defaults.model.fallbacks == ("openai/gpt-5",)
    assert (config.mcp.servers["coffer"].enabled, config.mcp.servers["off"].enabled) == (True, False)
    assert here.load("{ plugins: {} }").config.plugins.slots.memory is None


def test_models_are_a_name_or_a_name_with_fallbacks(here: Installation) -> None:
    agents = here.load(
        '{ agents: { defaults: { model: "a/b" },'
        ' entries: { Work: { model: { primary: "c/d" } }, x: { default: true } } } }'
    ).config.agents
    assert agents.defaults.model.primary == "a/b"
    assert [agent.id for agent in agents.list] == ["Work", "x"]
    assert (agents.ids(), agents.default_id()) == (("work", "x"), "x")
    work = agents.find("work")
    assert work is not None
    assert work.model is not None
    assert (work.model.primary, work.model.fallbacks) == ("c/d", None)


@pytest.mark.req("BOOT-16")
def test_the_pause_between_blocks_is_an_agents_own_or_that_of_all(here: Installation) -> None:
    agents = here.load(
        '{ agents: { defaults: { humanDelay: { mode: "custom", minMs: 5 } },'
        ' list: [{ id: "a", humanDelay: { mode: "natural" } }, { id: "b" }] } }'
    ).config.agents
    assert agents.human_delay("a") == {"mode": "natural"}
    assert agents.human_delay("b") == {"mode": "custom", "minMs": 5}
    assert here.load("{}").config.agents.human_delay("main") == {}


def test_no_project_folder_has_a_say(here: Installation) -> None:
    project = here.home / "project"
    for name in ("garra.json", ".garra/garra.json", ".env"):
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("NAME=project" if name == ".env" else "{ gateway: { port: 6666 } }")
    with contextlib.chdir(project):
        found = here.load('{ gateway: { port: 7777, customBindHost: "${NAME}" } }')
    assert (found.config.gateway.port, found.config.gateway.custom_bind_host) == (7777, "")


def test_variables_come_from_the_process_then_dotenv_then_the_file(here: Installation) -> None:
    here.env["A"] = "process"
    here.write("A=dotenv\nexport B='dot env' \n# C=no\nD=x # note\nnonsense\n", ".env")
    found = here.load(
        '{ env: { vars: { A: "file", B: "file", C: "file" }, E: "flat" }, ui: { v: "${A} ${B} ${C} ${D} ${E}" } }'
    )
    assert found.resolved["ui"]["v"] == "process dot env file x flat"
    assert found.env["C"] == "file"


@pytest.mark.req("BOOT-11")
def test_a_peek_sees_the_same_without_types(here: Installation) -> None:
    here.env["TOKEN"] = "t"
    here.write('{ gateway: { auth: { token: "${TOKEN}" }, $include: "more.json5" } }')
    here.write("{ port: 5 }", "more.json5")
    assert peek(here.paths, here.environment) == {"gateway": {"auth": {"token": "t"}, "port": 5}}
    here.write("{")
    assert peek(here.paths, here.environment) == {}


@pytest.mark.req("BOOT-15")
def test_a_peek_at_a_broken_file_sees_the_last_good_one(here: Installation) -> None:
    keep(here.paths, here.load("{ gateway: { port: 5 } }"))
    here.write("{")
    assert peek(here.paths, here.environment) == {"gateway": {"port": 5}}
    assert look(here.paths, here.environment)[1].startswith("line 1, column 2")


@pytest.mark.req("BOOT-15")
def test_the_last_good_configuration_serves_with_its_variables(here: Installation) -> None:
    here.write("KEY=kept", ".env")
    keep(here.paths, here.load('{ env: { vars: { OTHER: "too" } } }'))
    found = here.load("{")
    assert (found.source, found.env["KEY"], found.env["OTHER"]) == ("last-good", "kept", "too")


def test_old_keys_are_read_as_todays(here: Installation) -> None:
    found = here.load(
        '{ agent: { model: "a/b", heartbeat: {} }, telegram: { dm: { policy: "open" } }, gateway: { token: "t",'
        ' bind: "0.0.0.0", reload: { mode: "hot" } }, agents: { defaults: { model: "c/d" } },'
        " audio: { transcription: { x: 1 } } }"
    )
    assert found.valid
    config = found.config
    assert config.agents.defaults.model.primary == "c/d"
    assert config.channels["telegram"].dm_policy == "open"
    assert (config.gateway.bind, config.gateway.reload.mode) == ("lan", "hybrid")
    assert config.gateway.auth.token is not None
    assert "stands at gateway.auth.token now" in said(found)["gateway.token"]
    assert config.tools.media.audio.model_extra == {"x": 1}
