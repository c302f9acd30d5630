"""Mails as events, events as mails: words, threads, who is who, what is never answered, nothing slipped in."""

from __future__ import annotations

import json
import random
from email import policy
from email.message import EmailMessage
from email.parser import BytesParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from garra.builtin.channels.email import letter, outgoing, words
from garra.builtin.channels.email.codec import Place, read, root, valid
from garra.builtin.channels.email.letter import unpacked
from garra.builtin.channels.email.outgoing import From, Thread, compose, message_id
from garra.builtin.channels.email.post import fault
from garra.builtin.channels.email.proof import proven
from garra.builtin.channels.email.reading import Position, position
from garra.sdk.channel import Address, Button, File, Ignored, Inbound, Outbound, SendFailed

PLACE = Place("default", "bot@bot.example", ("mx.google.com",))
MAILS = json.loads(Path(__file__).with_name("mails.json").read_text())
OWN = From("bot@bot.example", "Böt", 1_700_000_000_000)


def event(raw: bytes, place: Place = PLACE) -> Inbound | Ignored:
    return read(letter.read(raw), place, "7.1", 5).event


@pytest.mark.parametrize("mail", MAILS, ids=[mail["name"] for mail in MAILS])
def test_mails_as_programs_write_them(mail: dict[str, Any]) -> None:
    raw = "\r\n".join(mail["raw"]).encode()
    found = letter.read(raw)
    assert (found.text, found.subject) == (mail["text"], mail["subject"])
    assert root(found) == (mail["thread"] or found.id)
    heard = event(raw)
    assert isinstance(heard, Inbound)
    assert heard.sender.id == (mail["sender"] if mail["proven"] else "")
    assert heard.address.chat == ("" if mail["proven"] else "unproven:") + mail["sender"]
    assert heard.address.kind == "direct"
    assert event(raw, Place("default", "bot@bot.example", credulous=True)).address.chat == mail["sender"]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("results", "why"),
    [
        ([], "wrote no"),
        (["mx.google.com; dmarc=pass header.from=example.org"], ""),
        (["mx.google.com 1; dmarc=pass (p=none; x) header.from=example.org"], ""),
        (["MX.Google.com; spf=pass smtp.mailfrom=example.org"], "neither"),
        (["mx.google.com; dkim=pass header.d=org"], "neither"),
        (["mx.google.com; dkim=pass header.d=evil.org; dkim=fail header.d=example.org"], "neither"),
        (["mx.google.com; dkim=pass header.d=x.example.org"], "neither"),
        (['mx.google.com; dkim=fail reason="; dmarc=pass header.from=example.org"'], "neither"),
        (["mx.google.com; dkim=fail (dmarc=pass header.from=example.org)"], "neither"),
        (["mx.google.com; none"], "neither"),
        (["mx.google.com; dmarc=pass"], "neither"),
        (["other.net; dmarc=fail", "mx.google.com; dmarc=pass header.from=example.org"], "topmost"),
        (["mx.google.com; dmarc=fail", "mx.google.com; dmarc=pass header.from=example.org"], "DMARC did not"),
        (["mx.google.com.evil.net; dmarc=pass header.from=example.org"], "topmost"),
        ([""], "topmost"),
    ],
)  # fmt: skip
def test_only_the_topmost_word_of_the_right_server_counts(results: list[str], why: str) -> None:
    found = proven("example.org", results, ("mx.google.com",))
    assert why in found
    assert bool(found) == bool(why)
    assert proven("example.org", results, ()) != ""


@pytest.mark.parametrize(
    "sender",
    [
        "ann@example.org, mallory@evil.net",
        "ann@example.org <mallory@evil.net>",
        "friends: ann@example.org;",
        "ann",
        "",
        "<@evil.net:ann@example.org>",
        "ann@example.org\r\nFrom: mallory@evil.net",
    ],
)
def test_a_from_that_can_be_read_in_two_ways_is_nobodys(sender: str) -> None:
    raw = f"From: {sender}\r\nMessage-ID: <1@x>\r\n\r\nhi".encode()
    found = event(raw, Place("default", "bot@bot.example", credulous=True))
    assert isinstance(found, Ignored)
    quoted = b'From: "mallory@evil.net" (a@b) <ann@example.org>\r\n\r\nhi'
    good = event(quoted, Place("default", "bot@bot.example", credulous=True))
    assert isinstance(good, Inbound)
    assert good.sender.id == "ann@example.org"


@pytest.mark.req("CH-23")
@pytest.mark.parametrize(
    ("head", "reason"),
    [
        ("Auto-Submitted: auto-generated", "auto-submitted"),
        ("Auto-Submitted: auto-replied (vacation)", "auto-submitted"),
        ("Precedence: Bulk", "bulk"),
        ("Precedence: list", "bulk"),
        ("List-Id: <l.example.org>", "list"),
        ("Return-Path: <>", "null-return-path"),
        ("X-Autoreply: yes", "auto-reply"),
        ("Content-Type: multipart/report; boundary=x", "report"),
        ("Auto-Submitted: no", ""),
        ("Return-Path: <ann@example.org>", ""),
    ],
)
def test_what_a_program_sent_is_never_answered(head: str, reason: str) -> None:
    found = event(f"{head}\r\nFrom: ann@example.org\r\nMessage-ID: <1@x>\r\n\r\nhi".encode())
    assert (found.reason if isinstance(found, Ignored) else "") == reason


@pytest.mark.parametrize(
    ("sender", "reason"),
    [
        ("MAILER-DAEMON@example.org", "machine"),
        ("no-reply@shop.example", "machine"),
        ("bounces+1=2@x.example", "machine"),
        ("Bot@Bot.Example", "own"),
    ],
)
def test_neither_machines_nor_oneself(sender: str, reason: str) -> None:
    found = event(f"From: {sender}\r\nMessage-ID: <1@x>\r\n\r\nhi".encode())
    assert isinstance(found, Ignored)
    assert found.reason == reason


def test_attachments_are_named_by_their_number_for_imap() -> None:
    mail = EmailMessage()
    mail["From"] = "ann@example.org"
    mail.set_content("look")
    mail.add_alternative("<p>look</p>", subtype="html")
    mail.add_attachment(b"\x89PNG" * 9, maintype="image", subtype="png", filename="dög.png")
    mail.add_attachment("a,b\n", subtype="csv", filename="t.csv")
    inner = EmailMessage()
    inner["Subject"] = "inside"
    inner.set_content("forwarded")
    mail.add_attachment(inner)
    found = event(mail.as_bytes(), Place("default", "bot@bot.example", credulous=True))
    assert isinstance(found, Inbound)
    assert found.text == "look"
    told = [(media.kind, media.ref, media.name, media.mime, media.size) for media in found.media]
    assert told[:2] == [
        ("image", "7.1/2/base64", "dög.png", "image/png", 36),
        ("file", "7.1/3/7bit", "t.csv", "text/csv", 4),
    ]
    assert found.media[2].mime == "message/rfc822"
    assert unpacked(b"aGVs\r\nbG8=", "base64") == b"hello"
    assert unpacked(b"a=3Db", "quoted-printable") == b"a=b"
    assert unpacked(b"x", "8bit") == b"x"


@given(st.binary(max_size=400))
def test_nonsense_stops_nothing(raw: bytes) -> None:
    assert event(raw).id
    assert event(b"From: a@b.example\r\n" + raw).id


def test_broken_mails_stop_nothing() -> None:
    """Each fixture with letters changed at random, as broken programs do."""
    chance = random.Random(7)
    for mail in MAILS:
        whole = "\r\n".join(mail["raw"]).encode()
        for _ in range(150):
            raw = bytearray(whole)
            for _ in range(chance.randint(1, 12)):
                raw[chance.randrange(len(raw))] = chance.randrange(256)
            assert event(bytes(raw)).id


@given(st.text(max_size=300))
def test_words_are_found_in_any_markup(text: str) -> None:
    assert isinstance(words.from_html(text), str)
    assert isinstance(words.own(text), str)


def test_long_threads_and_histories() -> None:
    odd = letter.read(f"From: a@b.example\r\nMessage-ID: <{'x' * 400}@b>\r\n\r\nhi".encode())
    assert root(odd).startswith("long-")
    many = "\n".join(["x1 wrote:"] * 5_000 + ["> a"] * 5_000)
    assert words.own(many)
    assert words.own("> only quoted\n> words") == "> only quoted\n> words"
    assert words.own("new\n-----Original Message-----\nFrom: x\n") == "new"
    assert words.own("neu\n\nAm 1.1.2026 um 10 schrieb Bot:\n\n> alt") == "neu"
    assert words.own("新\n\n在 2026年1月1日，Bot <b@x> 写道：\n> 旧") == "新"
    assert words.from_html("<pre>a\n  b</pre><blockquote>q</blockquote>") == "a\n  b\n> q"


# ---- out


def outbound(text: str = "hello", **more: Any) -> Outbound:
    address = more.pop("address", Address("email", "default", "ann@example.org", "direct", more.pop("thread", "")))
    return Outbound("out:1", address, text, **more)


def sent(message: Outbound, thread: Thread | None = None, files: Any = ()) -> EmailMessage:
    raw = compose(message, OWN, thread or Thread(), files).as_bytes()
    assert raw.isascii()
    parser: BytesParser[EmailMessage] = BytesParser(policy=policy.default)
    return parser.parsebytes(raw)


def test_an_answer_stands_in_its_thread() -> None:
    known = Thread("AW: Re: Plan", ("root@x", "mid@x", "last@x"))
    mail = sent(outbound("grüße 你好", thread="root@x", reply_to="mid@x"), known)
    assert mail["Subject"] == "Re: Plan"
    assert mail["In-Reply-To"] == "<mid@x>"
    assert mail["References"] == "<root@x> <last@x> <mid@x>"
    assert mail["Auto-Submitted"] == "auto-replied"
    assert mail["Message-ID"] == f"<{message_id('out:1', OWN.address)}>"
    assert str(mail["From"]) == "Böt <bot@bot.example>"
    assert mail.get_content().strip() == "grüße 你好"
    unknown = sent(outbound(thread="root@x"))
    assert (unknown["Subject"], unknown["In-Reply-To"]) == ("Re: your message", "<root@x>")


def test_a_mail_of_its_own() -> None:
    mail = sent(outbound("The first line\nand more", buttons=((Button("Yes", "y"), Button("No", "n")),)))
    assert mail["Subject"] == "The first line"
    assert mail["In-Reply-To"] is None
    assert mail["Auto-Submitted"] == "auto-generated"
    assert "[Yes] [No]" in mail.get_content()
    assert outgoing.subject("", "x" * 100, answer=False) == "x" * 59 + "…"


def test_files_go_along() -> None:
    file = File("file", "a/b", "übersicht\r\nX: y.txt", "text/plain", 3)
    picture = File("image", "a/c", "p.png", "image/png", 3)
    mail = sent(outbound("see"), files=[(file, b"abc"), (picture, b"png")])
    names = [(part.get_content_type(), part.get_content()) for part in mail.iter_attachments()]
    assert names == [("application/octet-stream", b"abc"), ("image/png", b"png")]
    assert mail["X"] is None


@pytest.mark.parametrize("thread", ["a@b\r\nBcc: x@y", "a@b>\r\n", "x y@z", "a<b@c"])
def test_nothing_slips_into_the_headers(thread: str) -> None:
    evil = "Hi\r\nBcc: mallory@evil.net\r\n\r\nbody"
    mail = sent(outbound(evil, thread=thread, reply_to=thread), Thread(evil, (thread,)))
    assert mail["Bcc"] is None
    assert mail["In-Reply-To"] is None
    assert [str(one) for one in mail.get_all("To", [])] == ["ann@example.org"]


@pytest.mark.parametrize(
    "to",
    ["ann@example.org\r\nBcc: x@y", "a@b,c@d", "<a@b>", "a b@c", "", "a@b\n", "unproven:a@b", '"a"@b', "ä@b.example"],
)
def test_no_address_is_two(to: str) -> None:
    with pytest.raises(SendFailed) as failed:
        compose(outbound(address=Address("email", "default", to, "direct")), OWN, Thread())
    assert failed.value.fault == "refused"
    assert not valid(to) or not to.isascii()


def test_nothing_to_send() -> None:
    with pytest.raises(SendFailed):
        compose(outbound(" \n"), OWN, Thread())


@pytest.mark.parametrize(
    ("code", "said", "more", "expected"),
    [
        (421, "closing", {}, "passing"),
        (451, "4.7.1 greylisted", {"recipient": True}, "passing"),
        (454, "4.7.0 later", {"login": True}, "passing"),
        (535, "5.7.8 no", {"login": True}, "auth"),
        (530, "5.7.0 log in first", {}, "auth"),
        (550, "5.1.1 nobody", {"recipient": True}, "gone"),
        (550, "no such user", {"recipient": True}, "gone"),
        (550, "5.7.1 spam", {"recipient": True}, "refused"),
        (552, "too big", {}, "too_large"),
        (554, "5.3.4 size", {}, "too_large"),
        (554, "5.7.1 content", {}, "refused"),
    ],
)
def test_what_an_answer_of_the_server_means(code: int, said: str, more: dict[str, bool], expected: str) -> None:
    assert fault(code, said, **more) == expected


def test_positions() -> None:
    here = Position(7, 12, 5_000, "a:b@c")
    assert position(here.text()) == here
    assert position(None) is position("x") is position("1:2:y:z") is None
