"""Blocks as HTML."""

from __future__ import annotations

from garra.core.html import language, page
from garra.core.markup import Block, Span


def item(text: str, depth: int = 1, marker: str = "•") -> Block:
    return Block(spans=(Span(text),), depth=depth, marker=marker)


def test_lists_open_and_close() -> None:
    blocks = (item("a"), item("b", 2, "3."), item("c", 2, "4."), Block(spans=(Span("more"),), depth=2), item("d"))
    assert page(blocks) == ('<ul><li>a<ol start="3"><li>b</li><li>c<p>more</p></li></ol></li><li>d</li></ul>')
    assert page((item("a"), item("b", 1, "1."))) == "<ul><li>a</li></ul><ol><li>b</li></ol>"


def test_every_kind_of_block() -> None:
    row = ((Span("a"),), (Span("<"),))
    blocks = (
        Block("heading", (Span("H"),), level=2),
        Block("rule"),
        Block("table", rows=(row, row)),
        Block("code", code="a<b\nc", info="py x"),
        Block("code", code="x", info='"><'),
        Block(spans=(Span("q\nr", ("bold",)), Span("https://e.org/?a&b", (), "https://e.org/?a&b")), quote=2),
    )
    assert page(blocks) == (
        "<h2>H</h2><hr><table><thead><tr><th>a</th><th>&lt;</th></tr></thead>"
        "<tbody><tr><td>a</td><td>&lt;</td></tr></tbody></table>"
        '<pre><code class="language-py">a&lt;b\nc\n</code></pre><pre><code>x\n</code></pre>'
        '<blockquote><blockquote><p><strong>q<br>r</strong><a href="https://e.org/?a&amp;b">https://e.org/?a&amp;b</a>'
        "</p></blockquote></blockquote>"
    )


def test_the_language_of_a_code_block() -> None:
    assert [language(info) for info in ("py", "c++ title", "", "é", "x" * 40)] == ["py", "c++", "", "", ""]
