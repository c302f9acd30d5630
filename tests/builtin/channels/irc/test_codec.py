"""Messages of IRC as events."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from garra.builtin.channels.irc.codec import Me, Reader, addressed, timestamp_ms
from garra.builtin.channels.irc.line import Line, read
from garra.builtin.channels.irc.settings import settings
from garra.core.secret import Secret
from garra.sdk.channel import Account, Ignored, Inbound

ME = Me("Garra", "Garra!~g@h")


def event(raw: str, account: str = "", **more: Any) -> Inbound | Ignored:
    line = read(raw.encode())
    assert line is not None
    return Reader("default", more.pop("me", ME), map(str, count(1)).__next__, **more).read(line, account, 5)


def inbound(raw: str, account: str = "", **more: Any) -> Inbound:
    found = event(raw, account, **more)
    assert isinstance(found, Inbound)
    return found


def test_a_direct_message_of_somebody_logged_in() -> None:
    found = inbound("@time=2026-01-02T03:04:05.678Z;msgid=m1 :Ann!~a@h PRIVMSG Garra :hello", "Ann[X]")
    assert (found.id, found.sender.id, found.sender.name, found.text) == ("m1", "ann{x}", "Ann", "hello")
    assert (found.address.chat, found.address.kind, found.timestamp) == ("ann{x}", "direct", 1767323045678)
    assert not found.own


@pytest.mark.parametrize("account", ["", "*", "ann!~a@h"])
def test_a_nick_is_no_identity(account: str) -> None:
    assert inbound(":Ann!~a@h PRIVMSG Garra :hello", account).sender.id == ""
    by_name = inbound(":Ann!~a@h PRIVMSG Garra :hello", account, by_name=True)
    assert (by_name.sender.id, by_name.address.chat) == ("ann!~a@h", "ann!~a@h")


@given(st.text(), st.text(), st.booleans())
def test_no_nick_passes_for_an_account(nick: str, host: str, by_name: bool) -> None:
    line = Line("PRIVMSG", ("Garra", "x"), f"{nick}!{host}")
    found = Reader("default", ME, lambda: "1", by_name).read(line, "", 1)
    assert isinstance(found, Inbound)
    assert found.sender.id == "" or "!" in found.sender.id


def test_a_channel_is_a_group() -> None:
    found = inbound(":Ann!a@h PRIVMSG @#Room :Garra: what now", "ann")
    assert (found.address.chat, found.address.kind, found.mentioned, found.text) == ("#room", "group", True, "what now")
    assert inbound(":Ann!a@h PRIVMSG +mod :x", "ann", me=Me("g", signs="#+")).address.chat == "+mod"
    assert not inbound(":Ann!a@h PRIVMSG #room :Garras", "ann").mentioned


def test_actions_replies_bots_and_our_own() -> None:
    found = inbound("@bot;+draft/reply=m0 :Ann!a@h PRIVMSG #r :\x01ACTION waves at garra\x01", "ann")
    assert (found.text, found.mentioned, found.sender.is_bot, found.reply_to) == (
        "* Ann waves at garra",
        True,
        True,
        "m0",
    )
    assert inbound(":garra!~g@h PRIVMSG #r :hi").own


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (":a!b@c PRIVMSG Garra :\x01VERSION\x01", "ctcp-version"),
        (":a!b@c NOTICE Garra :an automatic word", "notice"),
        (":a!b@c PRIVMSG Garra :\x02\x02", "ingest-null"),
    ],
)
def test_what_it_has_no_use_for(raw: str, reason: str) -> None:
    found = event(raw)
    assert isinstance(found, Ignored)
    assert found.reason == reason


@pytest.mark.parametrize(
    ("text", "said", "mentioned"),
    [
        ("garra: /status", "/status", True),
        ("Garra, hi", "hi", True),
        ("@garra hi", "hi", True),
        ("hi garra!", "hi garra!", True),
        ("garra:", "garra:", True),
        ("garra_ hi", "garra_ hi", False),
        ("hi", "hi", False),
    ],
)
def test_addressed(text: str, said: str, mentioned: bool) -> None:
    assert addressed(text, "Garra") == (said, mentioned)


def test_times() -> None:
    assert timestamp_ms("2026-01-02T03:04:05Z") == 1767323045000
    assert timestamp_ms("yesterday") == timestamp_ms("") == 0


def test_settings() -> None:
    own = settings(Account("default", {"host": "h", "nick": "my[bot]", "channels": ["#a key", "b", " "]}))
    assert (own.port, own.tls, own.username, own.channels) == (6697, True, "mybot", (("#a", "key"), ("#b", "")))
    assert not own.services.on
    plain = {"tls": False, "nickserv": {"password": Secret("p"), "account": "acc", "enabled": True}}
    other = settings(Account("default", {"host": "h", "nick": "n", **plain}))
    assert (other.port, other.services.on, other.services.account) == (6667, True, "acc")
    assert "p'" not in repr(other.services)
