"""The grammar of session keys."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from garra.core import keys
from garra.core.errors import UserError
from garra.core.keys import Key, Scope, Sender

ALICE = Sender("telegram", "bot1", "12345")


@pytest.mark.req("CH-07b")
@pytest.mark.parametrize(
    ("scope", "key"),
    [
        ("main", "agent:main:main"),
        ("per-peer", "agent:main:direct:12345"),
        ("per-channel-peer", "agent:main:telegram:direct:12345"),
        ("per-account-channel-peer", "agent:main:telegram:bot1:direct:12345"),
    ],
)
def test_a_direct_message_is_kept_as_far_apart_as_the_scope_says(scope: Scope, key: str) -> None:
    assert keys.direct("main", ALICE, scope) == key


@pytest.mark.req("CH-07b")
@pytest.mark.parametrize(
    ("key", "parsed"),
    [
        ("agent:main:main", Key(keys.agent_id("main"), "main")),
        ("agent:main:direct:12345", Key(keys.agent_id("main"), "direct", "12345")),
        ("agent:a:telegram:direct:12345", Key(keys.agent_id("a"), "direct", "12345", "telegram")),
        ("agent:a:slack:work:direct:U1", Key(keys.agent_id("a"), "direct", "U1", "slack", "work")),
        ("agent:a:matrix:direct:@u:host", Key(keys.agent_id("a"), "direct", "@u:host", "matrix")),
        ("agent:a:telegram:group:-100", Key(keys.agent_id("a"), "group", "-100", "telegram")),
        ("agent:a:telegram:group:-100:topic:42", Key(keys.agent_id("a"), "group", "-100", "telegram", thread="42")),
        ("agent:a:discord:channel:12:thread:98", Key(keys.agent_id("a"), "channel", "12", "discord", thread="98")),
        ("agent:a:subagent:u-1", Key(keys.agent_id("a"), "subagent", "u-1")),
        ("agent:a:acp:u-1", Key(keys.agent_id("a"), "acp", "u-1")),
        ("agent:a:dashboard:u-1", Key(keys.agent_id("a"), "dashboard", "u-1")),
        ("agent:a:coffer-abc", Key(keys.agent_id("a"), "named", "coffer-abc")),
        ("agent:a:telegram:group", Key(keys.agent_id("a"), "named", "telegram:group")),
        ("cron:job-1", Key(None, "cron", "job-1")),
        ("hook:u-1", Key(None, "hook", "u-1")),
        ("elsewhere", Key(None, "named", "elsewhere")),
    ],
)
def test_every_form_is_taken_apart_and_is_its_own_canonical_form(key: str, parsed: Key) -> None:
    assert keys.parse(key) == parsed
    if parsed.agent is not None or parsed.kind != "named":
        assert keys.canonical(key) == key


@pytest.mark.req("CH-07b")
def test_every_form_is_built() -> None:
    assert keys.room("A", "Telegram", "group", "-100") == "agent:a:telegram:group:-100"
    assert keys.room("a", "telegram", "group", "-100", topic="42") == "agent:a:telegram:group:-100:topic:42"
    assert keys.room("a", "discord", "channel", "12", thread="98") == "agent:a:discord:channel:12:thread:98"
    assert keys.single("a", "subagent", "u-1") == "agent:a:subagent:u-1"
    assert keys.single("a", "acp", "u-1") == "agent:a:acp:u-1"
    assert keys.job("job-1") == "cron:job-1"
    assert keys.hook("u-1") == "hook:u-1"
    assert keys.main_key("a") == "agent:a:main"
    without_account = Sender("irc", "", "nick")
    assert keys.direct("a", without_account, "per-account-channel-peer") == "agent:a:irc:default:direct:nick"


@pytest.mark.req("COF-05")
@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("coffer-abc", "agent:main:coffer-abc"),
        (" coffer-abc ", "agent:main:coffer-abc"),
        ("Coffer-ABC", "agent:main:coffer-abc"),
        ("agent:main:coffer-abc", "agent:main:coffer-abc"),
    ],
)
def test_a_clients_own_name_is_a_session_of_the_main_agent(text: str, key: str) -> None:
    assert keys.canonical(text) == key


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("", "agent:work:main"),
        ("MAIN", "agent:work:main"),
        ("agent:Main:Main", "agent:main:main"),
        ("AGENT:main:Telegram:Direct:AbC", "agent:main:telegram:direct:AbC"),
        ("agent:main:signal:acc:direct:AbC==", "agent:main:signal:acc:direct:AbC=="),
        ("direct:AbC", "agent:work:direct:AbC"),
        ("Cron:Job", "cron:Job"),
        ("cron", "agent:work:cron"),
    ],
)
def test_there_is_one_spelling(text: str, key: str) -> None:
    assert keys.canonical(text, agent="work") == key


def test_the_main_conversation_may_have_another_name() -> None:
    assert keys.canonical("", main="home") == "agent:main:home"
    assert keys.canonical("agent:main:main", main="home") == "agent:main:home"
    assert keys.parse("agent:main:home", main="home").kind == "main"
    assert keys.is_main("agent:main:home", "home")
    assert not keys.is_main("agent:main:main", "home")


@pytest.mark.parametrize(
    "text", ["agent:", "agent:main", "agent:main:", "agent:../x:y", "a\nb", "x" * 513, "agent:!:a"]
)
def test_what_is_no_key_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(UserError) as caught:
        keys.canonical(text)
    assert "\n" not in caught.value.message


@pytest.mark.req("SESS-03")
def test_a_session_id_is_a_safe_file_name() -> None:
    for good in ("a", "0", "6fbf2538-1c4d-4c3a-9f0e-1234567890ab", "a.b_c-d", "x" * 128):
        assert keys.session_id(good) == good
    for bad in ("", "../x", "..", ".x", "a/b", "A", "x" * 129, "a\n", "a\x00b", "é"):
        with pytest.raises(UserError):
            keys.session_id(bad)


def test_the_agent_of_a_key() -> None:
    assert keys.agent_of("agent:work:main") == "work"
    assert keys.agent_of("cron:job-1") == "main"
    assert keys.agent_of("cron:job-1", "work") == "work"


@pytest.mark.req("CH-07b")
def test_identity_links_join_one_persons_channels() -> None:
    links = {"alice": ["telegram:12345", "Discord:777"]}
    discord = Sender("discord", "b", "777")
    for scope in ("per-peer", "per-channel-peer", "per-account-channel-peer"):
        both = {keys.direct("main", who, scope, links=links) for who in (ALICE, discord)}
        assert both == {"agent:main:direct:alice"}
    stranger = Sender("irc", "b", "12345")
    assert keys.direct("main", stranger, "per-channel-peer", links=links) == "agent:main:irc:direct:12345"


def test_nobody_takes_a_linked_name() -> None:
    links = {"alice": ["telegram:12345"]}
    thief = Sender("irc", "b", "alice")
    assert keys.direct("main", thief, "per-peer", links=links) != keys.direct("main", ALICE, "per-peer", links=links)


names = st.text(st.sampled_from("abAB:%-direct@ \n\u2028"), min_size=1, max_size=12) | st.sampled_from(
    ["direct", "group", "x:topic:1", "x:thread:1", "main", "\ud800"]
)
senders = st.builds(Sender, st.sampled_from(["telegram", "irc", "direct", "a:b"]), names, names)


@pytest.mark.req("CH-07b")
@given(senders, senders, st.sampled_from(["per-channel-peer", "per-account-channel-peer"]))
def test_two_people_never_share_a_key(one: Sender, other: Sender, scope: Scope) -> None:
    same = (one.channel, one.peer) == (other.channel, other.peer)
    if scope == "per-account-channel-peer":
        same = same and one.account.strip().lower() == other.account.strip().lower()
    assert (keys.direct("main", one, scope) == keys.direct("main", other, scope)) == same


@given(senders, st.sampled_from(["per-peer", "per-channel-peer", "per-account-channel-peer"]))
def test_a_built_key_is_canonical(sender: Sender, scope: Scope) -> None:
    key = keys.direct("main", sender, scope)
    assert keys.canonical(key) == key
    assert keys.parse(key).kind == "direct"


@given(names, names, names)
def test_no_group_forges_a_topic_of_another(group: str, other: str, topic: str) -> None:
    forged = keys.room("main", "telegram", "group", f"{group}:topic:{topic}")
    assert forged != keys.room("main", "telegram", "group", group, topic=topic)
    both = (keys.room("a", "irc", "channel", group), keys.room("a", "irc", "channel", other))
    assert (both[0] == both[1]) == (group == other)
