"""Any answer, in every platform's format: valid, whole, in order, and within the limits."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from garra.core import markup
from garra.core.markup import Block, Document, Span
from garra.core.pieces import Frame, pieces
from garra.core.render import STYLES, render
from garra.domains.delivery.markdown import Reader
from tests.domains.delivery.telegram_html import seen, units

READER = Reader()
FAMILY = "👩‍👩‍👧‍👦"
WORDS = """word|**bold**|*it*|_it_|~~gone~~|`a<b`|``x`y``|[a label](https://e.org/a_(b)?c=1&d=2)|**un|`|[x](|<b>tag</b>
a & b < c|https://e.org/x_y*z*|![pic](https://e.org/p.png)|中文。没有空格的一句话，很长|**加粗。**后|👍🏽|🇩🇪🇫🇷|e\u0301|\ud83d
a\\*b|&lt;|***|snake_case_name|1. x|# no|\u200b"""
STARTS = ["- ", "* ", "1. ", "12) ", "  - ", "   1. ", "> ", "> > ", "# ", "#### ", "- > ", "    "]
_BITS = st.sampled_from([*(word for line in WORDS.split("\n") for word in line.split("|")), "||s||", FAMILY, "x" * 90])
_LINE = st.lists(_BITS, min_size=1, max_size=12).map(" ".join)
_LINES = st.lists(_LINE, max_size=8)
_CODE = st.builds(
    lambda mark, info, lines: "\n".join((mark + info, *lines, mark)),
    st.sampled_from(["```", "~~~~", "````"]),
    st.sampled_from(["", "py", "c++ x"]),
    _LINES,
)
_TABLE = _LINES.map(lambda rows: "| a | b |\n|---|---|\n" + "\n".join(f"| {row} | x |" for row in rows))
_BLOCK = st.one_of(
    _LINE, _LINE, _CODE, st.builds("".join, st.tuples(st.sampled_from(STARTS), _LINE)), _TABLE, st.just("---")
)
ANSWERS = st.lists(st.tuples(_BLOCK, st.sampled_from(["\n", "\n\n"])).map("".join), max_size=12).map("".join) | st.text(
    max_size=300
)
TELEGRAM = Frame(120, "utf16", ("telegram-html", "plain"))


def letters(text: str) -> str:
    """The words, whatever parts them; without what frames a table drawn as code."""
    return "".join(text.split())


def told(document: Document) -> str:
    return letters(render(document, "plain"))


def squeezed(text: str) -> str:
    """Without what frames a table, and without spaces, the unseen one too: a message of nothing else is not sent."""
    return re.sub(r"[>|─+\-\s\u200b]", "", text)


@settings(max_examples=120, deadline=None)
@given(ANSWERS)
@example("**a" * 200)
@example("<" * 400)
@example(FAMILY * 40)
@example("[" + "l" * 500 + "](https://e.org)")
@example("- - - a\n  1. b\n> c\n>> d")
@example("---\n> > word word\n\n> > " + "x" * 89)
def test_pieces_are_whole_in_order_and_fit(text: str) -> None:
    document = READER.read(text)
    cut = pieces(document, TELEGRAM)
    for piece in cut:
        markup_text, plain = piece.texts
        assert units(seen(markup_text)) <= 120
        assert units(plain) <= 120
        assert markup.visible(plain) or "─" in plain
    parts = (_words(block) for piece in cut for block in piece.document)
    words = "".join(map(_words, document))
    assert squeezed("".join(parts)) == (squeezed(words) if markup.visible(words) else "")


@settings(max_examples=60, deadline=None)
@example(
    "- word [a label](https://e.org/a_(b)?c=1&d=2) **un 👩\u200d👩\u200d👧\u200d👦 1. x https://e.org/x_y*z*\n",
    "chars",
    64,
)
@given(ANSWERS, st.sampled_from(["chars", "utf16", "bytes"]), st.integers(64, 400))
def test_every_format_keeps_to_every_unit(text: str, unit: markup.Unit, limit: int) -> None:
    document = READER.read(text)
    for name in (*STYLES, "matrix-html"):
        if name.startswith("telegram-"):
            continue
        for piece in pieces(document, Frame(limit, unit, (name,))):
            assert markup.size(piece.texts[0], unit) <= limit or name == "matrix-html"


@settings(max_examples=80, deadline=None)
@given(ANSWERS)
@example("\u200b\n\n- \u200b\n")
def test_what_is_written_as_markdown_reads_the_same(text: str) -> None:
    document = READER.read(text)
    if any(block.kind == "table" for block in document):
        return
    again = READER.read(render(document, "markdown"))
    assert letters("".join(map(_words, again))) == letters("".join(map(_words, document)))


def _words(block: Block) -> str:
    return markup.words(block.spans) + block.code + markup.grid(block.rows)


def test_a_text_is_read_once_and_shown_everywhere() -> None:
    said = "# Title\nSee **bold `code`** and [docs](https://e.org/?a=1&b=2).\n- one\n  1. two\n\n> said"
    text = f"{said}\n\n```py\nif a < b:\n```"
    document = READER.read(text)
    assert render(document, "telegram-html") == (
        "<b>Title</b>\nSee <b>bold </b><code>code</code> and "
        '<a href="https://e.org/?a=1&amp;b=2">docs</a>.\n• one\n  1. two\n\n<blockquote>said</blockquote>\n\n'
        '<pre><code class="language-py">if a &lt; b:</code></pre>'
    )
    assert render(document, "slack-mrkdwn") == (
        "*Title*\nSee bold `code` and <https://e.org/?a=1&amp;b=2|docs>.\n• one\n  1. two\n\n> said\n\n"
        "```\nif a &lt; b:\n```"
    )
    assert render(document, "matrix-html") == (
        "<h1>Title</h1><p>See <strong>bold </strong><code>code</code> and "
        '<a href="https://e.org/?a=1&amp;b=2">docs</a>.</p><ul><li>one<ol><li>two</li></ol></li></ul>'
        '<blockquote><p>said</p></blockquote><pre><code class="language-py">if a &lt; b:\n</code></pre>'
    )
    assert render(document, "plain") == (
        "Title\nSee bold code and docs (https://e.org/?a=1&b=2).\n• one\n  1. two\n\n> said\n\nif a < b:"
    )


@pytest.mark.parametrize(
    ("text", "href"),
    [
        ("see https://e.org/a_b_c*d*.", "https://e.org/a_b_c*d"),
        ("(https://e.org/a_(b))", "https://e.org/a_(b)"),
        ("**https://e.org/x**", "https://e.org/x"),
        ("<https://e.org/%7Ex>", "https://e.org/%7Ex"),
    ],
)
def test_an_address_stays_as_it_was_written(text: str, href: str) -> None:
    spans = [span for block in READER.read(text) for span in block.spans if span.href]
    assert [(span.text, span.href) for span in spans] == [(href, href)]


@pytest.mark.parametrize(
    ("text", "bold"),
    [
        ("**注意：**这里", "注意："),
        ("他说**“你好”**吧", "“你好”"),
        ("**加粗**后", "加粗"),
        ("**a.** b", "a."),
        ("a**。**b", None),
        ("2 ** 3", None),
    ],
)
def test_bold_beside_letters_that_no_space_parts(text: str, bold: str | None) -> None:
    found = [span.text for span in READER.read(text)[0].spans if "bold" in span.marks]
    assert found == ([bold] if bold else [])


def test_what_only_looks_like_an_address_is_text() -> None:
    assert not any(span.href for text in ("a://b", "https://", "://x") for span in READER.read(text)[0].spans)
    assert READER.read("[https://a.b/c](https://d.e)")[0].spans == (Span("https://a.b/c", (), "https://d.e"),)


def test_words_that_markdown_hides_are_shown() -> None:
    assert render(READER.read("[](https://e.org)"), "plain") == "[](https://e.org)"
    assert render(READER.read("```\n```"), "plain") == "```\n```"
    assert render(READER.read("see [a][1]\n\n[1]: https://e.org"), "plain") == "see [a][1]\n\n[1]: https://e.org"
    assert READER.read("  \n") == ()


def test_an_empty_item_is_an_item() -> None:
    assert render(READER.read("-\n- - x\n1. > \n\nend"), "plain").split() == ["•", "•", "•", "x", "1.", "end"]


def test_halves_of_characters_are_joined_or_replaced() -> None:
    assert render(READER.read("\ud83d\ude00 \ud83d"), "plain") == "😀 \ufffd"


@pytest.mark.req("CH-14", "MSG-13")
def test_a_long_answer_with_a_code_block_is_cut_in_three() -> None:
    code = "\n".join(f"line {number:04d} = call({number})" for number in range(110))
    text = "\n\n".join(("word " * 500, f"```python\n{code}\n```", "more " * 800))
    assert 8_500 < len(text) < 9_500
    frame = Frame(4_000, "utf16", ("telegram-html", "markdown", "plain"))
    cut = pieces(READER.read(text), frame)
    assert len(cut) == 3
    assert all(units(seen(piece.texts[0])) <= 4_000 for piece in cut)
    assert all(piece.texts[1].count("```") % 2 == 0 for piece in cut)
    assert letters("".join(piece.texts[2] for piece in cut)) == told(READER.read(text))


@pytest.mark.req("CH-14")
def test_a_code_block_longer_than_a_message_is_closed_and_opened_again() -> None:
    code = "\n".join(f"x{number} = {number}" for number in range(1_500))
    cut = pieces(READER.read(f"```py\n{code}\n```"), Frame(4_000, "utf16", ("telegram-html", "markdown", "plain")))
    assert len(cut) > 3
    for piece in cut:
        assert piece.texts[0].startswith('<pre><code class="language-py">')
        assert piece.texts[0].endswith("</code></pre>")
        assert piece.texts[1].startswith("```py\n")
        assert piece.texts[1].endswith("\n```")
    assert "\n".join(piece.texts[2] for piece in cut) == code


def test_unbalanced_marks_of_three_thousand_words_arrive_whole() -> None:
    words = [f"w{number}" for number in range(3_000)]
    words[100], words[700], words[1_500], words[2_200] = "**w100", "`w700", "<b>w1500", "[w2200](http://x"
    cut = pieces(READER.read(" ".join(words)), Frame(4_000, "utf16", ("telegram-html", "plain")))
    got = re.findall(r"w(\d+)", " ".join(seen(piece.texts[0]) for piece in cut))
    assert [int(number) for number in got] == list(range(3_000))
    assert all(units(seen(piece.texts[0])) <= 4_000 for piece in cut)
