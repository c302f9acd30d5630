"""Envelopes read: `envelopes/*.json` are in the shape of Slack's documentation, type and payload."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from garra.builtin.channels.slack.api import form, pause
from garra.builtin.channels.slack.codec import Facts, Me, Reader
from garra.builtin.channels.slack.emoji import NAMES, named, shown
from garra.builtin.channels.slack.outgoing import carries, change, mark, post
from garra.builtin.channels.slack.position import PLACES, Position, Spot, moment, ms, position
from garra.builtin.channels.slack.spoken import escaped, silenced
from garra.sdk.channel import Address, Button, Ignored, Inbound, Media, SendFailed
from garra.testing.channels import outbound

ENVELOPES = Path(__file__).parent / "envelopes"
ME = Me("U0BOT", "B0BOT", "T123ABC456", "garra")
DIRECT = Address("slack", "default", "D024BE91L", "direct", team="T123ABC456")
ROOM = Address("slack", "default", "C024BE91L", "channel", team="T123ABC456")
SECRETS = ("XXYYZZ", "verification-token", "hooks.slack.com", "12321423423")


def envelope(name: str) -> tuple[str, Any]:
    found = json.loads((ENVELOPES / f"{name}.json").read_text())
    return found["type"], found["payload"]


def read(name: str, facts: Facts | None = None, reactions: str = "own") -> Inbound | Ignored:
    return Reader("default", ME, reactions).read(*envelope(name), facts or Facts())


def threaded(ts: str) -> Address:
    return Address("slack", "default", "C024BE91L", "channel", ts, team="T123ABC456")


T = "T123ABC456"
SAID = {"type": "message", "user": "U42", "text": "x", "ts": "1736207085.539649", "channel": "D1", "channel_type": "im"}


def author(said: dict[str, Any], **payload: Any) -> str:
    found = Reader("default", ME).read("events_api", {"event_id": "E1", **payload, "event": {**SAID, **said}}, FACTS)
    assert isinstance(found, Inbound)
    assert found.sender.name == ("" if "/" in found.sender.id else "Ann")
    assert not found.own
    return found.sender.id


FACTS = Facts("im", "Ann", "ann")


def test_an_id_is_one_of_its_workspace_alone() -> None:
    assert author({}) == author({"team": T, "user_team": T, "source_team": T}, team_id=T) == "U42"
    for key in ("team", "user_team", "source_team"):
        assert author({"team": T, key: "T2"}, team_id=T) == "T2/U42"
        assert author({key: "T2", "user": ME.user}) == f"T2/{ME.user}"
    edit = {"message": {**SAID, "edited": {"ts": "1736207086.000100"}}, "subtype": "message_changed", "user_team": "T2"}
    assert author(edit) == "T2/U42"
    joined = {"type": "member_joined_channel", "team": "T2"}
    assert author(joined) == "T2/U42"


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        ("events_api", {"team_id": "T2", "event_id": "E1", "event": SAID}),
        ("events_api", {"team_id": T, "context_team_id": "T2", "event_id": "E1", "event": SAID}),
        ("events_api", {"team_id": T, "authorizations": [{"team_id": "T2"}], "event_id": "E1", "event": SAID}),
        ("slash_commands", {"team_id": "T2", "command": "/garra", "user_id": "U42", "channel_id": "D1", "text": "x"}),
        ("interactive", {"team": {"id": "T2"}, "type": "block_actions", "user": {"id": "U42"}}),
    ],
)
def test_what_is_for_another_workspace_is_not_heard(kind: str, payload: dict[str, Any]) -> None:
    found = Reader("default", ME).read(kind, payload, FACTS)
    assert isinstance(found, Ignored)
    assert found.reason == "another-workspace"


def test_a_shared_channel_of_another_workspace_is_heard_through_ours() -> None:
    assert author({"team": T}, team_id="T2", authorizations=[{"team_id": "T2"}, {"team_id": T}]) == "U42"
    assert author({"team": T}, team_id="T2", context_team_id=T) == "U42"


def test_who_presses_a_button_is_of_a_workspace_too() -> None:
    kind, payload = envelope("button")
    for team, name in ((T, ""), ("T2", "T2/")):
        found = Reader("default", ME).read(kind, {**payload, "user": {**payload["user"], "team_id": team}}, FACTS)
        assert isinstance(found, Inbound)
        assert found.sender.id == name + payload["user"]["id"]


SEEN: dict[str, dict[str, Any]] = {
    "direct_text": {"id": "1736207085.539649", "event": "message", "address": DIRECT, "text": "¿Qué tal? :wave:",
                    "mentioned": False, "timestamp": 1_736_207_085_539, "own": False},
    "channel_plain": {"address": ROOM, "mentioned": False, "text": "anyone here?"},
    "channel_mention": {"mentioned": True, "text": "/status"},
    "app_mention": {"id": "1736207085.539649", "event": "message", "address": ROOM, "mentioned": True,
                    "text": "look at the page (https://a.example/?q=1&r=2) & #general"},
    "mention_inside": {"mentioned": True,
                       "text": "ask @U0BOT or @bo @here @team a@b.c https://a.example 1 < 2"},
    "thread_reply": {"address": threaded("1736207000.000100"), "mentioned": False},
    "thread_of_the_bot": {"address": threaded("1736207000.000100"), "mentioned": True},
    "thread_root": {"address": ROOM},
    "group_dm": {"address": Address("slack", "default", "G024BE91L", "group", team="T123ABC456")},
    "files": {"text": "look", "media": (
        Media("image", "F1 https://files.slack.com/files-pri/T1-F1/download/cat.png", "cat.png", "image/png", 120_000),
        Media("voice", "F2 https://files.slack.com/files-pri/T1-F2/voice.m4a", "voice.m4a", "audio/mp4", 9000),
        Media("file", "F4 ", "", "application/octet-stream", None))},
    "me_message": {"text": "waves"},
    "from_a_bot": {"text": "Build 7 failed", "own": False},
    "from_an_old_bot": {"text": "hi"},
    "own": {"own": True},
    "edited": {"id": "1736207085.539649:edit:1736207145.000000", "event": "edit", "text": "corrected",
               "address": DIRECT, "timestamp": 1_736_207_145_000},
    "deleted": {"event": "other", "data": "deleted", "reply_to": "1736207085.539649", "id": "Ev123ABC456"},
    "joined": {"event": "membership", "data": "joined:U061F7AUR", "address": ROOM},
    "reaction": {"event": "reaction", "data": "👍", "reply_to": "1736207000.000100", "address": ROOM},
    "reaction_own_emoji": {"data": ":party-parrot:"},
    "reaction_taken_back": {"event": "reaction", "data": ""},
    "button": {"id": "button:1736207000.000100:1736207150.000300", "event": "button", "data": "approve:7",
               "mentioned": True, "reply_to": "1736207000.000100", "reply_text": "Run it?",
               "address": threaded("1736206000.000100")},
    "command": {"event": "message", "text": "what now?", "mentioned": True, "address": ROOM},
    "command_alone": {"text": "/help", "address": DIRECT},
}  # fmt: skip


@pytest.mark.parametrize("name", SEEN)
def test_what_an_envelope_says(name: str) -> None:
    found = read(name)
    assert isinstance(found, Inbound)
    assert {key: getattr(found, key) for key in SEEN[name]} == SEEN[name]
    assert not any(secret in repr(found.raw) for secret in SECRETS)


IGNORED = {
    "preview_made": "service",
    "joined_notice": "service",
    "reaction_to_others": "reaction-not-wanted",
    "reaction_to_a_file": "ingest-null",
    "modal": "ingest-null",
    "home_opened": "ingest-null",
    "no_such_user": "malformed",
    "empty": "ingest-null",
    "unknown": "ingest-null",
}


@pytest.mark.parametrize("name", IGNORED)
def test_what_is_of_no_use(name: str) -> None:
    found = read(name)
    assert isinstance(found, Ignored)
    assert found.reason == IGNORED[name]


def test_every_envelope_here_is_looked_at() -> None:
    assert {path.stem for path in ENVELOPES.glob("*.json")} == SEEN.keys() | IGNORED.keys()


def test_who_said_it() -> None:
    facts = Facts(name="Ann", handle="ann")
    said, bot, old, pressed = (
        read(name, facts) for name in ("channel_plain", "from_a_bot", "from_an_old_bot", "button")
    )
    assert isinstance(said, Inbound)
    assert isinstance(bot, Inbound)
    assert isinstance(old, Inbound)
    assert isinstance(pressed, Inbound)
    assert (said.sender.id, said.sender.name, said.sender.handle, said.sender.is_bot) == (
        "U061F7AUR",
        "Ann",
        "ann",
        False,
    )
    assert (bot.sender.id, bot.sender.is_bot) == ("U0OTHER", True)
    assert (old.sender.id, old.sender.is_bot) == ("bot:B0OLD", True)
    assert pressed.sender.id == "U061F7AUR"


def test_a_mention_in_a_group_of_people_is_told_apart_by_what_is_known() -> None:
    found = read("app_mention", Facts(kind="mpim"))
    assert found.address is not None
    assert found.address.kind == "group"
    assert isinstance(read("reaction_to_others", reactions="all"), Inbound)
    assert isinstance(read("reaction", reactions="off"), Ignored)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=10,
)
KINDS = ["events_api", "interactive", "slash_commands", "some_day"]


@given(st.sampled_from(KINDS), JSON, st.sampled_from(sorted(SEEN)), st.text(max_size=12))
def test_nothing_that_comes_stops_the_reading(kind: str, odd: Any, name: str, key: str) -> None:
    reader = Reader("default", ME)
    assert isinstance(reader.read(kind, odd, Facts()), Inbound | Ignored)
    known, payload = envelope(name)
    for wrong in (key, "event", "user", "channel", "message", "actions", "user_id", "trigger_id"):
        assert isinstance(reader.read(known, {**payload, wrong: odd}, Facts()), Inbound | Ignored)
    for wrong in (key, "channel", "user", "ts", "thread_ts", "files", "item", "message", "type", "text", "subtype"):
        event = {**payload.get("event", {}), wrong: odd}
        assert isinstance(reader.read(known, {**payload, "event": event}, Facts()), Inbound | Ignored)


# ---- the position


def test_a_position_is_kept_and_what_is_none_is_the_beginning() -> None:
    here = Position("T1").heard(Spot("C1"), "10.000002").heard(Spot("C1", "9.000001"), "11.000001")
    assert position(here.text(), "T1") == here
    assert position(here.text(), "T2") == Position("T2")
    for odd in (None, "", "{", "[]", '{"team": "T1"}', '{"team": "T1", "last": [[1]]}', '{"team": "T1", "last": 3}'):
        assert position(odd, "T1") == Position("T1")
    assert here.heard(Spot("C1"), "10.000001").last[Spot("C1")] == "10.000002"
    for number in range(PLACES + 5):
        here = here.heard(Spot(f"C{number}"), f"{number + 20}.000000")
    assert len(here.last) == PLACES
    assert moment("1736207085.539649") > moment("1736207085.053964") > moment("odd")
    assert ms("1736207085.539649") == 1_736_207_085_539


# ---- what is sent


def test_words_call_nobody() -> None:
    assert silenced("<!channel> <@U1> <#C1> <https://a.example|x> <!x|y>") == (
        "&lt;!channel> &lt;@U1> &lt;#C1> <https://a.example|x> &lt;!x|y>"
    )
    assert escaped("<!here> a & b") == "&lt;!here&gt; a &amp; b"
    sent = post(outbound(DIRECT, "<!here> *x*"), "D1", [("unfurl_links", False)])
    assert (sent["text"], sent["mrkdwn"], sent["unfurl_links"]) == ("&lt;!here&gt; *x*", False, False)
    formatted = post(outbound(DIRECT, "*x* <!here>", format="slack-mrkdwn"), "D1", [])
    assert (formatted["text"], formatted["mrkdwn"]) == ("*x* &lt;!here>", True)


def test_a_thread_is_answered_in_it_and_an_answer_opens_one() -> None:
    assert post(outbound(threaded("9.000001"), "x", reply_to="10.000001"), "C1", [])["thread_ts"] == "9.000001"
    assert post(outbound(ROOM, "x", reply_to="10.000001"), "C1", [])["thread_ts"] == "10.000001"
    for odd in ("", "odd", "slash:1"):
        assert post(outbound(ROOM, "x", reply_to=odd), "C1", [])["thread_ts"] is None


def test_a_message_is_known_by_what_it_carries() -> None:
    sent = post(outbound(ROOM, "x"), "C1", [])
    assert carries({"metadata": sent["metadata"]}, "out:1")
    assert not carries({"metadata": sent["metadata"]}, "out:2")
    assert not carries({}, "out:1")
    assert len(mark("out:1")) == 32


def test_buttons_stand_below_the_words() -> None:
    row = (Button("Yes", "y:1"), Button("No", "n:1"))
    blocks = post(outbound(ROOM, "w" * 3500, buttons=(row,), format="slack-mrkdwn"), "C1", [])["blocks"]
    assert [block["type"] for block in blocks] == ["section", "section", "actions"]
    assert [(one["value"], one["action_id"]) for one in blocks[2]["elements"]] == [
        ("y:1", "garra:0"),
        ("n:1", "garra:1"),
    ]
    assert change(outbound(ROOM, "x"), "C1", "9.000001")["blocks"] == []
    for wrong in ((row * 13,), ((Button("x", ""),),), ((Button("x", "d" * 2001),),)):
        with pytest.raises(SendFailed) as failed:
            post(outbound(ROOM, "x", buttons=wrong), "C1", [])
        assert failed.value.fault == "refused"


def test_emojis_have_names() -> None:
    assert named("👍") == "+1"
    assert named("✍️") == "writing_hand"
    assert named(":party-parrot:") == "party-parrot"
    assert named("") == ""
    assert shown("+1") == "👍"
    assert all(shown(name) == emoji for emoji, name in NAMES.items())


def test_a_form_carries_every_letter() -> None:
    assert form({"text": "a&b=ü +", "flag": True, "list": [1], "none": None}) == (
        b"text=a%26b%3D%C3%BC%20%2B&flag=true&list=%5B1%5D"
    )
    assert pause({"retry-after": "7"}) == 7
    assert pause({"retry-after": "soon"}) == pause({}) == 30
