"""Stanzas as events and events as stanzas; who is who; what a refusal means."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, fromstring, tostring

import pytest
from hypothesis import given
from hypothesis import strategies as st

from garra.builtin.channels.xmpp import outgoing
from garra.builtin.channels.xmpp.codec import (
    Heard,
    Occupant,
    Place,
    addressed,
    joined,
    own_id,
    read,
    room_id,
    stamp,
    stamp_ms,
)
from garra.builtin.channels.xmpp.rooms import Rooms
from garra.builtin.channels.xmpp.session import Marks
from garra.sdk.channel import Address, Button, Ignored, Inbound, Outbound, SendFailed

PLACE = Place(
    "default",
    "bot@localhost",
    {"den@rooms.localhost": "garra", "marked@rooms.localhost": "garra"},
    {"marked@rooms.localhost"},
)
STANZAS = json.loads(Path(__file__).with_name("stanzas.json").read_text())


@pytest.mark.parametrize("case", STANZAS, ids=[case["name"] for case in STANZAS])
def test_stanzas_as_servers_write_them(case: dict[str, Any]) -> None:
    event = read(Heard(fromstring(case["xml"]), Occupant(case.get("jid", ""))), PLACE, 5)
    if "ignored" in case:
        assert isinstance(event, Ignored)
        assert event.reason == case["ignored"]
        return
    assert isinstance(event, Inbound)
    assert (event.event, event.id, event.address.chat) == (case["event"], case["id"], case["chat"])
    assert (event.sender.id, event.text, event.mentioned) == (case["sender"], case["text"], case["mentioned"])
    assert (event.data, event.reply_to, event.reply_text) == tuple(
        case.get(key, "") for key in ("data", "reply_to", "reply_text")
    )
    assert event.own is case.get("own", False)
    assert [[one.kind, one.ref, one.name, one.mime] for one in event.media] == (
        [case["media"]] if "media" in case else []
    )


def test_what_an_archive_gives_is_the_same_message_as_the_live_one() -> None:
    live = read(Heard(fromstring(STANZAS[0]["xml"])), PLACE, 5)
    kept = fromstring(STANZAS[0]["xml"])
    for mark in kept.findall("{urn:xmpp:sid:0}stanza-id"):
        kept.remove(mark)
    archived = read(Heard(kept, archive="Zq1", at="2026-11-30T19:44:08Z"), PLACE, 5)
    assert archived.id == live.id
    assert isinstance(archived, Inbound)
    assert archived.timestamp == 1_796_067_848_000


def test_ids_have_the_senders_part_and_the_archives() -> None:
    assert joined("a b", "Z") == "a b Z"
    assert own_id("a b Z") == "a b"
    assert room_id("a b Z") == "Z"
    assert own_id("a") == room_id("a") == "a"
    assert joined("", "Z") == "Z"


@pytest.mark.parametrize(
    ("text", "said", "named"),
    [
        ("garra: what?", "what?", True),
        ("@Garra, what?", "what?", True),
        ("what, garra?", "what, garra?", True),
        ("garra", "garra", True),
        ("garrapata", "garrapata", False),
        ("write to garra@localhost", "write to garra@localhost", True),
        ("user@garra.example", "user@garra.example", False),
        ("", "", False),
    ],
)
def test_who_is_addressed(text: str, said: str, named: bool) -> None:
    assert addressed(text, "garra") == (said, named)
    assert addressed(text, "") == (text, False)


@given(st.text(max_size=80), st.text(max_size=40), st.integers(-5, 200), st.integers(-5, 200))
def test_nothing_in_a_stanza_stops_it(text: str, sender: str, start: int, end: int) -> None:
    xml = Element("{jabber:client}message", {"from": sender, "type": "chat"})
    body = Element("{jabber:client}body")
    body.text = text
    fallback = Element("{urn:xmpp:fallback:0}fallback", {"for": "urn:xmpp:reply:0"})
    fallback.append(Element("{urn:xmpp:fallback:0}body", {"start": str(start), "end": str(end)}))
    url = Element("{jabber:x:oob}x")
    url.append(Element("{jabber:x:oob}url"))
    xml.extend([body, fallback, url, Element("{urn:xmpp:delay}delay", {"stamp": text})])
    assert read(Heard(xml), PLACE, 5).id


def outbound(text: str = "hi", *, group: bool = False, **more: Any) -> Outbound:
    chat = "den@rooms.localhost" if group else "ann@localhost"
    address = more.pop("address", Address("xmpp", "default", chat, "group" if group else "direct"))
    return Outbound("out:1", address, text, **more)


def test_words_files_and_buttons_as_stanzas() -> None:
    found = outgoing.spoken(outbound("hi", buttons=((Button("Yes", "y"),),), reply_to="m-1 Zq1"), ["https://x/a.png"])
    first, second = (tostring(one.xml, encoding="unicode") for one in found)
    assert "hi\n[Yes]" in first
    assert 'id="m-1"' in first
    assert second.count("https://x/a.png") == 2
    assert found[0].id != found[1].id
    assert [one.id for one in found] == [one.id for one in outgoing.spoken(outbound(), ["https://x/a.png"])]
    grouped = outgoing.spoken(outbound(group=True, reply_to="m-1 Zq1"))[0].xml
    assert grouped.get("type") == "groupchat"
    assert 'id="Zq1"' in tostring(grouped, encoding="unicode")
    with pytest.raises(SendFailed):
        outgoing.spoken(outbound(" "))
    with pytest.raises(SendFailed):
        outgoing.change("m", outbound(" "), 1)


def test_no_letter_breaks_the_stream() -> None:
    evil = "a\x00b\x1b</body><message/>\ud800\ufffe\n✓"
    xml = outgoing.spoken(outbound(evil))[0].xml
    again = fromstring(tostring(xml, encoding="utf-8"))
    assert [one.text for one in again.findall("{jabber:client}body")] == ["ab</body><message/>\n✓"]


@pytest.mark.parametrize("chat", ["", "ann", "ann@", "@x", "ann@localhost/phone", "a b@x", "a\n@x", "<a@x"])
def test_no_address_is_another(chat: str) -> None:
    with pytest.raises(SendFailed) as failed:
        outgoing.spoken(outbound(address=Address("xmpp", "default", chat, "direct")))
    assert failed.value.fault == "refused"


@pytest.mark.parametrize(
    ("kind", "condition", "fault"),
    [
        ("cancel", "item-not-found", "gone"),
        ("cancel", "service-unavailable", "gone"),
        ("modify", "not-acceptable", "gone"),
        ("auth", "forbidden", "refused"),
        ("wait", "forbidden", "passing"),
        ("wait", "resource-constraint", "passing"),
        ("cancel", "remote-server-timeout", "passing"),
        ("modify", "policy-violation", "refused"),
    ],
)
def test_what_a_refusal_means(kind: str, condition: str, fault: str) -> None:
    space = "urn:ietf:params:xml:ns:xmpp-stanzas"
    xml = fromstring(
        f"<message xmlns='jabber:client' type='error' from='a@b'><error type='{kind}'><{condition} xmlns='{space}'/>"
        f"<text xmlns='{space}'>why</text></error></message>"
    )
    found = outgoing.refusal(xml)
    assert (found.fault, condition in found.message, "why" in found.message) == (fault, True, True)
    assert outgoing.refusal(fromstring("<message xmlns='jabber:client'/>")).fault == "refused"


def test_a_room_tells_who_is_in_it_and_that_we_were_put_out() -> None:
    notes = list[str]()
    rooms = Rooms(notes.append)
    rooms.nicks["den@r"] = "garra"

    def come(nick: str, jid: str = "", kind: str = "", code: str = "") -> None:
        item = f"<item jid='{jid}'/>" if jid else "<item/>"
        status = f"<status code='{code}'/>" if code else ""
        rooms.presence(
            fromstring(
                f"<presence xmlns='jabber:client' from='den@r/{nick}' type='{kind}'>"
                f"<x xmlns='http://jabber.org/protocol/muc#user'>{item}{status}</x></presence>"
            )
        )

    come("ann", "ann@localhost/p")
    assert rooms.who("den@r", "ann").jid == "ann@localhost/p"
    come("ann", kind="unavailable")
    assert rooms.who("den@r", "ann").jid == ""
    come("garra", kind="unavailable", code="110")
    assert "den@r" not in rooms.nicks
    assert notes == ["the bot was put out of the room den@r"]


def test_a_room_that_hides_people_is_not_believed_about_them() -> None:
    rooms = Rooms(lambda _: None)
    rooms.nicks["den@r"] = "garra"
    item = "<x xmlns='http://jabber.org/protocol/muc#user'><item jid='owner@localhost'/></x>"
    mark = "<occupant-id xmlns='urn:xmpp:occupant-id:0' id='m'/>"
    kept = fromstring(f"<message xmlns='jabber:client'>{item}{mark}</message>")
    assert rooms.archived("den@r", kept).jid == ""
    rooms.open.add("den@r")
    assert rooms.archived("den@r", kept).jid == "owner@localhost"
    assert rooms.archived("den@r", fromstring(f"<message xmlns='jabber:client'>{item}{item}</message>")).jid == ""
    rooms.open.clear()
    rooms.marking.add("den@r")
    rooms.presence(
        fromstring(
            f"<presence xmlns='jabber:client' from='den@r/ann'>{mark}"
            "<x xmlns='http://jabber.org/protocol/muc#user'><item jid='ann@localhost/p'/></x></presence>"
        )
    )
    assert rooms.archived("den@r", kept).jid == "ann@localhost/p"


def test_marks_of_archives_survive_nonsense() -> None:
    marks = Marks('{"a@b": ["id", "2026-01-01T00:00:00Z"]}')
    marks.set("c@d", "x", "")
    marks.set("a@b", "id2", "")
    assert Marks(marks.text()).get("a@b") == ("id2", "2026-01-01T00:00:00Z")
    assert Marks("nonsense").get("a@b") is Marks(None).get("a@b") is None
    assert stamp_ms("yesterday") == 0
    assert stamp_ms(stamp(1_796_067_848_999)) == 1_796_067_848_000
