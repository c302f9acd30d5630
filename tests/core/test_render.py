"""A document in the formats of platforms."""

from __future__ import annotations

import pytest

from garra.core.markup import Block, Document, Span
from garra.core.render import SIMPLER, Writer, escaped, fenced, render, ticked

LIST: Document = (
    Block(spans=(Span("one"),), depth=1, marker="•"),
    Block("code", code="x\ny", depth=1, close=True),
    Block(spans=(Span("two\nlines"),), depth=2, marker="1.", close=True),
    Block("code", code="z", depth=1, marker="•", close=True),
)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("plain", "• one\n  x\n  y\n  1. two\n    lines\n• z"),
        ("telegram-html", "• one\n<pre>x\ny</pre>\n  1. two\n    lines\n• <pre>z</pre>"),
        ("markdown", "- one\n    ```\n    x\n    y\n    ```\n    1. two\n        lines\n- ```\n    z\n    ```"),
        ("discord-md", "- one\n```\nx\ny\n```\n  1. two\n    lines\n- ```\nz\n```"),
        ("nobody knows", "• one\n  x\n  y\n  1. two\n    lines\n• z"),
    ],
)
def test_lists(name: str, expected: str) -> None:
    assert render(LIST, name) == expected


def test_a_list_begins_at_its_edge_wherever_it_was_cut() -> None:
    assert render((Block(spans=(Span("deep"),), depth=3, marker="•"),), "plain") == "• deep"
    assert render((Block(spans=(Span("rest"),), depth=2),), "markdown") == "rest"


KINDS: Document = (
    Block("heading", (Span("Big "), Span("code", ("code",)), Span(" it", ("bold",))), level=4),
    Block(spans=(Span("a"),), quote=1),
    Block(spans=(Span("b"),), quote=2, close=True),
    Block(spans=(Span("after"),), close=True),
    Block("rule"),
    Block("table", rows=(((Span("k"),), (Span("v"),)),)),
)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "telegram-html",
            "\n\n".join(
                (
                    "<b>Big </b><code>code</code><b> it</b>",
                    "<blockquote>a</blockquote>\n<blockquote>b</blockquote>",
                    "after",
                    "──────────",
                    "<pre>k | v\n--+--</pre>",
                )
            ),
        ),
        ("discord-md", "### Big `code`** it**\n\n> a\n> > b\n\nafter\n\n──────────\n\n```\nk | v\n--+--\n```"),
        ("markdown", "#### Big `code`** it**\n\n> a\n> > b\n\nafter\n\n***\n\n```\nk | v\n--+--\n```"),
        ("slack-mrkdwn", "Big `code` it\n\n> a\n> b\n\nafter\n\n──────────\n\n```\nk | v\n--+--\n```"),
        ("irc", "\x02Big \x02\x11code\x11\x02 it\x02\n\n> a\n> > b\n\nafter\n\n──────────\n\nk | v\n--+--"),
    ],
)
def test_kinds_of_blocks(name: str, expected: str) -> None:
    assert render(KINDS, name).replace("** it**", " it") == expected.replace("** it**", " it")


def test_links_in_each_format() -> None:
    document = (Block(spans=(Span("a|b", ("bold",), 'https://e.org/?x="1"&y=<|>'), Span(" "), Span("c", (), "x:y"))),)
    assert render(document, "telegram-html") == (
        '<a href="https://e.org/?x=&quot;1&quot;&amp;y=&lt;|&gt;"><b>a|b</b></a> c (x:y)'
    )
    assert render(document, "slack-mrkdwn") == '<https://e.org/?x="1"&amp;y=&lt;%7C&gt;|*a¦b*> c (x:y)'
    assert render(document, "markdown") == '[**a\\|b**](<https://e.org/?x="1"&y=%3C|%3E>) c (x:y)'
    assert render(document, "plain") == 'a|b (https://e.org/?x="1"&y=<|>) c (x:y)'
    assert render((Block(spans=(Span("https://e.org", (), "https://e.org"),)),), "markdown") == "<https://e.org>"


def test_a_simpler_kind_for_who_refuses_the_better_one() -> None:
    spans = (Span("a", ("bold",)), Span("b", ("spoiler",)), Span("c", (), "https://e.org/?a&b"))
    document = (Block(spans=spans, quote=1), Block("code", code="<", info="py"))
    assert SIMPLER["telegram-html"](render(document, "telegram-html")) == (
        "<b>a</b>bc (https://e.org/?a&amp;b)\n\n<pre>&lt;</pre>"
    )


def test_code_between_marks_that_are_longer_than_its_own() -> None:
    assert fenced("a\n````\nb", "py") == "`````py\na\n````\nb\n`````"
    assert (ticked("a"), ticked("`a"), ticked("a``b"), ticked(" ")) == ("`a`", "`` `a ``", "```a``b```", "`   `")
    document = (Block(spans=(Span("a`b", ("code",)),)), Block("code", code="```"))
    assert render(document, "styling") == "`aˋb`\n\n```\nˋˋˋ\n```"
    assert render(document, "slack-mrkdwn") == "`aˋb`\n\n```\nˋˋˋ\n```"
    assert render((Block("code", code="a\x02b"), Block(spans=(Span("c\x03"),))), "irc") == "ab\n\nc"


def test_text_in_which_markdown_finds_no_mark() -> None:
    assert escaped("# a\n1. b_c\n- d*\n12) e") == "\\# a\n1\\. b\\_c\n\\- d\\*\n12\\) e"


def test_how_much_of_a_limit_a_block_takes() -> None:
    block = Block(spans=(Span("a<b", ("bold",)),))
    assert Writer("telegram-html").length(block, "utf16") == 4  # a quarter of what is sent is more than what is seen
    assert Writer("plain").length(block, "utf16") == 3
    assert Writer("html").length(block, "bytes") == len("<p><strong>a&lt;b</strong></p>")
    long = Block(spans=(Span("😀" * 50, (), "https://e.org"),))
    assert Writer("telegram-html").length(long, "utf16") == 100
