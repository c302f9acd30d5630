"""Keys that nobody names, and values that do not fit: told, at every level, and never of what OpenClaw has."""

from __future__ import annotations

import pytest

from garra.config import troubles
from garra.core.errors import ConfigInvalid
from tests.config.place import Installation, said


@pytest.mark.req("COF-20")
@pytest.mark.parametrize(
    ("text", "path", "meant"),
    [
        ("{agents: {defaults: {modle: 'a/b'}}}", "agents.defaults.modle", "model"),
        ("{agents: {list: [{id: 'a', workspce: 'x'}]}}", "agents.list[0].workspce", "workspace"),
        ("{models: {providers: {openai: {apikey: 'x'}}}}", "models.providers.openai.apikey", "apiKey"),
        ("{channels: {telegram: {dmPolcy: 'open'}}}", "channels.telegram.dmPolcy", "dmPolicy"),
        ("{channels: {irc: {accounts: {a: {alowFrom: []}}}}}", "channels.irc.accounts.a.alowFrom", "allowFrom"),
        ("{channels: {mine: {allowForm: []}}}", "channels.mine.allowForm", "allowFrom"),
        ("{mcp: {servers: {a: {comand: 'x'}}}}", "mcp.servers.a.comand", "command"),
        ("{session: {maintenance: {prnueAfter: '1d'}}}", "session.maintenance.prnueAfter", "pruneAfter"),
    ],
)
def test_a_slip_is_told_with_what_was_meant(here: Installation, text: str, path: str, meant: str) -> None:
    found = here.load(text)
    assert found.valid
    assert set(said(found)) == {path}
    assert said(found)[path].endswith(f'(kept, not used; did you mean "{meant}"?)')


def test_a_key_like_no_other_is_told_where_all_keys_are_known(here: Installation) -> None:
    found = here.load("{channels: {telegram: {foo: 1}, mine: {foo: 1}}, agents: {defaults: {qqq: 1}}}")
    assert set(said(found)) == {"channels.telegram.foo", "agents.defaults.qqq"}


@pytest.mark.req("COF-20")
def test_what_openclaw_has_is_no_slip(here: Installation) -> None:
    found = here.load(
        "{agents: {defaults: {contextPruning: {}, typingMode: 'never', heartbeat: {to: 'x', session: 'main'}},"
        " list: [{id: 'a', runtime: {}, memory: {}}]}, gateway: {tailscale: {mode: 'off'}, push: {}},"
        " channels: {defaults: {botLoopProtection: {}}, modelByChannel: {telegram: {x: 'a/b'}},"
        " telegram: {execApprovals: {}, network: {}}, whatsapp: {selfChatMode: true}, nowhere: {a: 1}},"
        " mcp: {servers: {a: {command: 'x', anythingElse: 1}}}, env: {MY_KEY: 'x'}, broadcast: {a: ['b']}}"
    )
    assert (found.warnings, found.valid) == ((), True)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ("botToken: 12", "write it in quotes"),
        ("replyToMode: 'frist'", '(allowed: "off", "first", "all", "batched"), got: "frist"'),
        ("linkPreview: 'perhaps'", "expected true or false"),
        ("textChunkLimit: 0", "expected a whole number at least 1"),
    ],
)
def test_a_value_that_its_channel_does_not_take_is_told(here: Installation, keys: str, words: str) -> None:
    found = here.load("{channels: {telegram: {" + keys + "}}}")
    assert (found.valid, len(found.warnings)) == (True, 1)
    assert words in found.warnings[0].message
    assert troubles.slips(found)


def test_a_value_that_comes_from_elsewhere_fits(here: Installation) -> None:
    found = here.load(
        "{channels: {telegram: {botToken: {source: 'env', provider: 'default', id: 'T'}, textChunkLimit: '${SIZE}'}}}"
    )
    assert [warning.path for warning in found.warnings if warning.wrong] == []


def test_a_wrong_choice_is_told_with_those_that_would_do(here: Installation) -> None:
    found = here.load("{channels: {telegram: {dmPolicy: 'opn'}}}")
    assert '(allowed: "pairing", "allowlist", "open", "disabled")' in said(found)["channels.telegram.dmPolicy"]
    (slip,) = troubles.slips(found)
    assert slip.allowed == ("pairing", "allowlist", "open", "disabled")


def test_no_change_brings_a_wrong_value_in(here: Installation) -> None:
    here.write("{channels: {telegram: {groupPolicy: 'opne'}}}")
    refused = pytest.raises(ConfigInvalid, match=r'channels.telegram.dmPolicy: allowed are "pairing", "allowlist"')
    with refused:
        here.writer.set("channels.telegram.dmPolicy", "opn")
    with refused:
        here.writer.patch({"channels": {"telegram": {"dmPolicy": "opn"}}})
    with pytest.raises(ConfigInvalid, match="botToken: expected text"):
        here.writer.set("channels.telegram.botToken", 12)
    assert here.writer.set("channels.telegram.dmPolicy", "open").valid  # what was wrong before is no hindrance
