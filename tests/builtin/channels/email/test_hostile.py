"""Mails that are made to be taken for another's, to stop what comes behind them, or to take for ever."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from garra.builtin.channels.email import letter
from garra.builtin.channels.email.codec import Place, known, read
from garra.builtin.channels.email.markup import Tag, scan
from garra.builtin.channels.email.proof import HEAD_CHARS, proven
from garra.builtin.channels.email.reading import Position, position
from garra.builtin.channels.email.words import from_html, own
from garra.sdk.channel import Ignored, Inbound

PLACE = Place("default", "bot@bot.example", ("mx.test",))
GOOD = b"Authentication-Results: mx.test; dmarc=pass header.from=example.org"
ANN = b"From: Ann <ann@example.org>"


def heard(*heads: bytes, body: bytes = b"hello") -> Inbound | Ignored:
    raw = b"\r\n".join([*heads, b"", body])
    found = letter.read(raw, lambda one: known(one, PLACE))
    return read(found, PLACE, "1.1", 1).event


def by(*heads: bytes, body: bytes = b"hello") -> str:
    event = heard(*heads, body=body)
    return event.sender.id if isinstance(event, Inbound) else ""


@pytest.mark.parametrize(
    "findings",
    [
        "; dmarc=fail header.from=example.org; dmarc=pass header.from=example.org",
        "; dmarc=pass header.from=example.org; dmarc=fail header.from=example.org",
        "; dmarc=pass header.from=example.org; dmarc=none",
        "; dmarc=fail header.from=example.org; dkim=pass header.d=example.org",
        "; dmarc=pass header.from=evil.example header.from=example.org",
        "; dmarc=pass header.from=example.org header . from=example.org",
        "; dkim=pass header.d=evil.example header.d=example.org",
        "; dkim=pass header.d=example.org header.i=@evil.example",
        "; dmarc/2=pass header.from=example.org",
        '; dmarc=pass reason="header.from=example.org"',
        '; dmarc=pass reason=" header.from=example.org "',
        '; dmarc=pass "header.from=example.org',
        "; dmarc=pass (header.from=example.org",
        "; dmarc=pass) header.from=example.org",
        " 2; dmarc=pass header.from=example.org",
        " 1 1; dmarc=pass header.from=example.org",
        "; dmarc=passed header.from=example.org",
        "; dmarc=pass header.from=example.org;" + " x" * HEAD_CHARS,
        "; dmarc=pass header.from=example.org; dmarc",
    ],
)
def test_what_can_be_read_in_two_ways_proves_nothing(findings: str) -> None:
    assert proven("example.org", [f"mx.test{findings}"], ("mx.test",))


@pytest.mark.parametrize(
    "findings",
    [
        "; dmarc=pass header.from=example.org",
        ' 1; spf=fail smtp.mailfrom="a;b"@x.org; dmarc=pass (p=none; (x\\)) y) header.from=EXAMPLE.org.;',
        "; dkim=fail header.d=example.org; dkim=pass header.d=example.org header.i=@mail.example.org header.b=a+/=",
        "; x-score=5.0; dmarc/1=pass(p=none) action=none header.from=example.org",
        "; dmarc=none; dkim=pass header.i=@example.org",
    ],
)
def test_what_servers_write_is_believed(findings: str) -> None:
    assert proven("example.org", [f"mx.test{findings}"], ("mx.test",)) == ""


@pytest.mark.parametrize("text", ["(" * 7_000, '"' * 7_001, "\\" * 7_001, "a;" * 3_500, "(a)" * 2_000, "a.b=" * 1_500])
def test_a_long_header_is_read_in_one_pass(text: str) -> None:
    assert proven("example.org", [f"mx.test; dmarc=pass {text}"], ("mx.test",))


@pytest.mark.parametrize("end", [b"\r", b"\r\r", b"\x0b", b"\x0c", b"\x1c", b"\xc2\x85", b"\xe2\x80\xa8"])
def test_no_header_hides_in_another(end: bytes) -> None:
    assert by(b"X-Junk: a" + end + GOOD, ANN) == ""
    assert by(GOOD, ANN, b"X-Junk: a" + end + b"From: evil@evil.example") == "ann@example.org"
    assert by(GOOD, b"X-Junk: a" + end + ANN, b"From: x@evil.example") == ""
    assert by(b"X-Junk: a" + end + end + b"b", GOOD, ANN) == "ann@example.org"


@pytest.mark.parametrize(
    "heads",
    [
        (b"From: \xff@evil.example",),
        ("From: ann@\uff45xample.org".encode(),),
        (b"From: a@b.c", b"Message-ID: <\xff@x>"),
        (b"From: a@b.c", b"References: <\xff@x>", b"In-Reply-To: \xff"),
        (b"From: =?utf-7?q?+2AA-?= <ann@example.org>", b"Subject: =?unicode_escape?q?=5Cud800?="),
        (b"From: ann@example.org\0",),
    ],
)
def test_raw_bytes_are_taken_for_nobody_and_stop_nothing(heads: tuple[bytes, ...]) -> None:
    found = letter.read(b"\r\n".join([*heads, b"", b"\xff"]))
    kept = Position(1, 2, 3, found.id)
    assert position(kept.text()) == kept
    for text in (kept.text(), found.subject, found.text, *found.references, found.answers):
        assert text.encode() is not None
    assert by(GOOD, *heads) in {"", "ann@example.org"}


def test_two_ids_of_raw_bytes_stay_two() -> None:
    one, other = (letter.read(b"Message-ID: <%b@x>\r\n\r\n" % odd).id for odd in (b"\xff", b"\xfe"))
    assert one != other


def test_a_strangers_markup_is_not_read() -> None:
    html = (ANN, b"Subject: Hi", b"Content-Type: text/html")
    stranger, friend = (heard(*heads, body=b"<p>words</p>") for heads in (html, (GOOD, *html)))
    assert isinstance(stranger, Inbound)
    assert isinstance(friend, Inbound)
    assert (stranger.text, friend.text) == ("Hi", "Hi\n\nwords")
    plain = heard(ANN, body=b"w" * 100_000)
    assert isinstance(plain, Inbound)
    assert len(plain.text) == letter.STRANGERS_CHARS


COSTLY = [
    "<a ", "<!--", "</a", "<![", "&", "<", "<a \"'>", '<a href="x>', "<a href=http://x>y</a>", "a<b>", "</td><div>",
    "<blockquote>x", "<pre>\n", "<div>", "<script>", "<li>", "<a =", "&#xd800;", "On ", "\n", "1" * 399 + "\n",
    "1" * 390 + " wrote:\n", "Am " + "schrieb " * 45 + ":\n", " " * 398 + ":\n",
]  # fmt: skip


@pytest.mark.parametrize("piece", COSTLY)
def test_words_are_found_in_one_pass(piece: str) -> None:
    """What grew with the square of its length took minutes here, and the test's time is short."""
    text = own(from_html(piece * (letter.TEXT_CHARS // len(piece))))
    assert len(text) < 4 * letter.TEXT_CHARS


@pytest.mark.parametrize("head", [b"From", b"Content-Type", b"Content-Disposition", b"Subject", b"References"])
@pytest.mark.parametrize("value", [b'"', b"(", b"a@b.c,", b"=?utf-8?q?x?= ", b"a=b;", b"\\", b"<"])
def test_a_header_without_end_is_read_up_to_a_point(head: bytes, value: bytes) -> None:
    with suppress(*letter.BROKEN):  # recorded as malformed
        found = letter.read(head + b": " + value * 100_000 + b"\r\n\r\nhello")
        assert len(found.subject) <= letter.HEAD_CHARS


def test_parts_in_parts_are_read_up_to_a_point() -> None:
    nested = b"".join(
        b"--b%d\r\nContent-Type: multipart/mixed; boundary=b%d\r\n\r\n" % (at, at + 1) for at in range(1_000)
    )
    found = letter.read(b"Content-Type: multipart/mixed; boundary=b0\r\n\r\n" + nested + b"x\n" * 1_000_000)
    assert len(found.parts) < letter.PARTS


def test_tags_are_read_as_browsers_do() -> None:
    markup = "a &lt; b<!-- <b> -->c<P CLASS='x > y' id=z>d</p\n>< 1 <script>'<i>'</b></SCRIPT ><?x?>e<br/>f<unclosed"
    assert list(scan(markup)) == [
        "a < b",
        "c",
        Tag("p", said=" CLASS='x > y' id=z"),
        "d",
        Tag("p", closes=True, said="\n"),
        "<",
        " 1 ",
        Tag("script"),
        Tag("script", closes=True, said=" "),
        "e",
        Tag("br", said="/"),
        "f",
    ]
    assert Tag("a", said=" CLASS='x &gt; y' id=z id=w").attributes() == {"class": "x > y", "id": "z"}
    assert list(scan('<a "x>b<i>c')) == [Tag("a", said=' "x'), "b", Tag("i"), "c"]


@given(st.text(st.sampled_from("<>/!-?ab\"'= &\n")))
def test_no_markup_breaks_the_reader(markup: str) -> None:
    assert from_html(markup).count("\0") == 0
