"""Recorded events, read. `events/events.json` is what a Synapse 1.163 showed the bot of what its people sent, with the
contents that Element, FluffyChat and older clients make.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from garra.builtin.channels.matrix import outgoing
from garra.builtin.channels.matrix.codec import Answered, Place, Reader, target
from garra.builtin.channels.matrix.outgoing import HTML, Stored
from garra.builtin.channels.matrix.settings import Threads, settings
from garra.builtin.channels.matrix.text import Me, plain, unquoted, user_id
from garra.core.render import render
from garra.domains.delivery.markdown import Reader as Markdown
from garra.sdk.channel import Account, Address, Button, File, Ignored, Inbound, Outbound, SendFailed

EVENTS: dict[str, dict[str, Any]] = json.loads((Path(__file__).parent / "events" / "events.json").read_text())
ME = Me("@garra:localhost", "DEVICE", "Garra")
READER = Reader("default", ME)
ROOM = "!room:localhost"
PLACE = Place(ROOM, "direct", {"@ann:localhost": "Ann"})
HERE = Address("matrix", "default", ROOM, "direct")
FIRST, MINE = EVENTS["text"]["event_id"], EVENTS["bot"]["event_id"]
BOTS = Answered(ME.id, "I said this")


def read(name: str, answered: Answered = Answered()) -> Inbound | Ignored:  # noqa: B008 - a frozen value
    return READER.read(EVENTS[name], PLACE, answered)


SEEN: dict[str, dict[str, Any]] = {
    "text": {
        "event": "message",
        "address": HERE,
        "text": "hello ✓ 你好",
        "mentioned": False,
        "reply_to": "",
        "own": False,
    },
    "bot": {"event": "message", "own": True, "text": "I said this"},
    "reply_with_fallback": {"text": "and why?", "reply_to": MINE, "mentioned": False},
    "reply": {"text": "and why?", "reply_to": MINE, "mentioned": True},
    "thread": {"text": "in a thread", "reply_to": "", "address": Address("matrix", "default", ROOM, "direct", FIRST)},
    "thread_reply": {"reply_to": MINE, "address": Address("matrix", "default", ROOM, "direct", FIRST)},
    "pill": {"text": "/status", "mentioned": True},
    "mention": {"text": "what now?", "mentioned": True},
    "name": {"text": "hey garra, what now?", "mentioned": True},
    "notice": {"text": "I am a program", "mentioned": False},
    "emote": {"text": "* waves"},
    "edit": {"event": "edit", "text": "hello again", "reply_to": FIRST},
    "reaction": {"event": "reaction", "data": "👍", "reply_to": MINE},
    "image": {"event": "message", "text": ""},
    "image_caption": {"text": "look at this cat"},
    "location": {"text": "Location: 48.85,2.35"},
    "poll": {"text": "[poll: Tea?: yes / no]"},
    "joined": {"event": "membership", "data": "bot:join"},
}


@pytest.mark.parametrize("name", SEEN)
def test_what_is_seen(name: str) -> None:
    event = read(name)
    assert isinstance(event, Inbound)
    assert {key: getattr(event, key) for key in SEEN[name]} == SEEN[name]
    assert event.id == EVENTS[name]["event_id"]
    assert event.timestamp == EVENTS[name]["origin_server_ts"]
    assert event.raw == EVENTS[name]


@pytest.mark.parametrize(
    ("name", "reason"),
    [("redacted", "redacted"), ("redaction", "redaction"), ("named", "ingest-null"), ("verification", "verification")],
)
def test_what_is_of_no_use(name: str, reason: str) -> None:
    event = read(name)
    assert isinstance(event, Ignored)
    assert event.reason == reason
    assert event.id.startswith(EVENTS[name]["event_id"])


def test_who_wrote_is_an_id_with_a_name_for_display() -> None:
    event = read("text")
    assert isinstance(event, Inbound)
    assert (event.sender.id, event.sender.name, event.sender.is_bot) == ("@ann:localhost", "Ann", False)
    notice = read("notice")
    assert isinstance(notice, Inbound)
    assert notice.sender.is_bot


def test_files_are_told_with_what_they_are_read_by() -> None:
    kinds = {}
    for name in ("image", "image_caption", "voice", "file_encrypted", "sticker"):
        event = read(name)
        assert isinstance(event, Inbound)
        (media,) = event.media
        kinds[name] = (media.kind, media.name, media.mime, media.size)
    assert kinds == {
        "image": ("image", "cat.png", "image/png", 15),
        "image_caption": ("image", "cat.png", "image/png", 15),
        "voice": ("voice", "Voice message.ogg", "audio/ogg", 15),
        "file_encrypted": ("file", "plan.pdf", "application/pdf", 15),
        "sticker": ("sticker", "a cat", "image/webp", 15),
    }
    locked = read("file_encrypted")
    assert isinstance(locked, Inbound)
    assert json.loads(locked.media[0].ref)["key"]["k"] == "a2V5"


def test_an_answer_to_the_bot_addresses_it() -> None:
    event = read("reply_with_fallback", BOTS)
    assert isinstance(event, Inbound)
    assert (event.mentioned, event.reply_text) == (True, "I said this")
    assert target(EVENTS["thread"]) == ""
    assert target(EVENTS["thread_reply"]) == MINE
    assert target(EVENTS["reaction"]) == MINE


@pytest.mark.parametrize(
    ("threads", "name", "thread"),
    [("off", "thread", ""), ("inbound", "thread", FIRST), ("always", "text", FIRST), ("inbound", "text", "")],
)
def test_where_answers_go(threads: Threads, name: str, thread: str) -> None:
    event = READER.read(EVENTS[name], Place(ROOM, "group", {}, threads))
    assert isinstance(event, Inbound)
    assert event.address.thread == thread


def test_a_mention_of_somebody_else_is_none() -> None:
    content = {"msgtype": "m.text", "body": "garra, hm", "m.mentions": {"user_ids": ["@garra:elsewhere"]}}
    event = READER.read({**EVENTS["text"], "content": content}, PLACE)
    assert isinstance(event, Inbound)
    assert not event.mentioned
    for body in ("garrapata", "a.garra@mail", "x@garra:localhost2", "ask @garra:elsewhere"):
        event = READER.read({**EVENTS["text"], "content": {"msgtype": "m.text", "body": body}}, PLACE)
        assert isinstance(event, Inbound)
        assert not event.mentioned, body


def test_the_name_alone_is_still_a_message() -> None:
    event = READER.read({**EVENTS["text"], "content": {"msgtype": "m.text", "body": "@Garra"}}, PLACE)
    assert isinstance(event, Inbound)
    assert (event.text, event.mentioned) == ("@Garra", True)
    named = {"msgtype": "m.text", "body": "Garra", "m.mentions": {"user_ids": [ME.id]}}
    event = READER.read({**EVENTS["text"], "content": named}, PLACE)
    assert isinstance(event, Inbound)
    assert (event.text, event.mentioned) == ("Garra", True)


json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.sampled_from(["m.room.message", "m.replace"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
KEYS = ("type", "sender", "event_id", "content", "state_key", "origin_server_ts")


@given(st.sampled_from(sorted(EVENTS)), st.dictionaries(st.sampled_from(KEYS), json_like, max_size=4))
def test_no_event_breaks_the_reader(name: str, changes: dict[str, Any]) -> None:
    event = READER.read({**EVENTS[name], **changes}, PLACE)
    assert isinstance(event, Ignored) or (event.sender.id and event.id)


@given(st.sampled_from(sorted(EVENTS)), st.dictionaries(st.text(max_size=12), json_like, max_size=4))
def test_no_content_breaks_the_reader(name: str, changes: dict[str, Any]) -> None:
    content = {**EVENTS[name]["content"], **changes, "m.relates_to": changes}
    event = {**EVENTS[name], "content": content}
    assert isinstance(READER.read(event, PLACE), Inbound | Ignored)
    assert isinstance(target(event), str)


def test_a_fallback_is_cut_and_a_quotation_is_kept() -> None:
    assert unquoted("> <@a:b> one\n> two\n\nyes") == "yes"
    assert unquoted("> a quotation of my own\nyes") == "> a quotation of my own\nyes"


# ---- what is sent

IN_THREAD = Address("matrix", "default", ROOM, "group", FIRST)


def out(text: str, **more: Any) -> Outbound:
    return Outbound(more.pop("key", "out:1"), more.pop("address", HERE), text, **more)


def test_words_and_their_plain_form() -> None:
    html = render(
        Markdown().read("**bold** <b> `code`\n\n1. one\n2. two\n   - deep\n\n[a link](https://x.example/?a=1&b=2)"),
        HTML,
    )
    content = outgoing.spoken(out(html, format=HTML))
    assert content["format"] == "org.matrix.custom.html"
    assert content["formatted_body"] == html
    assert content["body"].startswith("bold <b> code\n\n1. one\n2. two\n  - deep\n")
    assert "a link (https://x.example/?a=1&b=2)" in content["body"]
    assert outgoing.spoken(out("*as it is*")) == {"msgtype": "m.text", "body": "*as it is*", "m.mentions": {}}
    assert outgoing.spoken(out("quietly", silent=True))["msgtype"] == "m.notice"
    with pytest.raises(SendFailed):
        outgoing.spoken(out("  "))


def test_buttons_are_words() -> None:
    content = outgoing.spoken(out("Run it?", buttons=((Button("Yes", "y"), Button("No", "n")),)))
    assert content["body"] == "Run it?\n[Yes] [No]"


def test_where_a_message_stands() -> None:
    assert outgoing.spoken(out("a", reply_to="$x"))["m.relates_to"] == {"m.in_reply_to": {"event_id": "$x"}}
    assert outgoing.spoken(out("a", address=IN_THREAD))["m.relates_to"] == {
        "rel_type": "m.thread",
        "event_id": FIRST,
        "is_falling_back": True,
        "m.in_reply_to": {"event_id": FIRST},
    }
    answered = outgoing.spoken(out("a", address=IN_THREAD, reply_to="$x"))["m.relates_to"]
    assert (answered["is_falling_back"], answered["m.in_reply_to"]) == (False, {"event_id": "$x"})


def test_a_change_says_what_the_message_is_now() -> None:
    content = outgoing.changed("$x", out("<b>new</b>", format=HTML))
    assert content["body"] == "* new"
    assert content["m.new_content"] == outgoing.spoken(out("<b>new</b>", format=HTML))
    assert content["m.relates_to"] == {"rel_type": "m.replace", "event_id": "$x"}


def test_files() -> None:
    file = File("image", "a.png", "a.png", "image/png", 4)
    content = outgoing.attached(out("", address=IN_THREAD), file, Stored("mxc://x/1"))
    assert (content["msgtype"], content["url"], content["info"]["size"]) == ("m.image", "mxc://x/1", 4)
    assert content["m.relates_to"]["rel_type"] == "m.thread"
    locked = outgoing.attached(out(""), file, Stored(locked={"url": "mxc://x/1", "iv": "i"}))
    assert "url" not in locked
    assert locked["file"] == {"url": "mxc://x/1", "iv": "i"}


def test_a_transaction_is_the_same_for_each_try_and_for_nothing_else() -> None:
    keys = [
        outgoing.transaction(out("a"), "words"),
        outgoing.transaction(out("a", key="out:2"), "words"),
        outgoing.transaction(out("a"), 0),
        outgoing.transaction(out("a", address=Address("matrix", "default", "!other", "direct")), "words"),
    ]
    assert len(set(keys)) == 4
    assert outgoing.transaction(out("a longer try"), "words") == keys[0]
    assert all(key.isalnum() for key in keys)


def test_tables_and_quotations_have_plain_words() -> None:
    assert plain("<blockquote>said</blockquote><p>yes</p>") == "> said\nyes"
    assert plain("<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>") == "a | b\n1 | 2"
    assert plain("<pre><code>x &lt; y\n  z</code></pre>done") == "x < y\n  z\n\ndone"
    assert plain("a<br>b<hr>c") == "a\nb\n---\nc"


# ---- settings


def test_what_is_not_known_is_closed() -> None:
    own = settings(Account("default", {"homeserver": "https://x/", "autoJoin": "sometimes", "threadReplies": "hm"}))
    assert (own.homeserver, own.joining.mode, own.threads, own.encryption) == ("https://x", "off", "off", True)


def test_whose_invitations_are_of_use() -> None:
    def joining(**own: Any) -> Any:
        return settings(Account("default", {"homeserver": "https://x", **own})).joining

    assert (joining().mode, joining().direct, joining().people) == ("direct", True, None)
    assert joining(dmPolicy="allowlist", allowFrom=["matrix:@ann:x"]).people == {"@ann:x"}
    assert joining(dmPolicy="open", allowFrom=["*"]).people is None
    assert not joining(dmPolicy="disabled").direct
    assert not joining(dm={"enabled": False}).direct
    assert joining(groups={"!a:x": {}, "*": {}}).rooms == {"!a:x"}


def test_whole_ids() -> None:
    assert user_id(" matrix:user:@ann:example.org ") == "@ann:example.org"
    assert user_id("@ann") == user_id("ann:example.org") == user_id("!room:x") == ""
