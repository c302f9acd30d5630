"""What nobody sees of a mail's HTML is not read: by attribute, by style, by a rule of its sheets."""

from __future__ import annotations

import time

import pytest

from garra.builtin.channels.email.hidden import SHEET_CHARS, concealed, sheets
from garra.builtin.channels.email.words import from_html


@pytest.mark.parametrize(
    "style",
    [
        "display:none", "DISPLAY : None !important", "color:red;/* x */display:/**/none", "visibility:hidden",
        "visibility:collapse", "opacity:0", "opacity: .0", "opacity:0.00;x:y", "font-size:0", "font-size:1px",
        "font-size: 0.01em", "font-size:00%", "mso-hide:all", "color:transparent", "text-indent:-9999px",
        "position:absolute;left:-9999px", "max-height:0;overflow:hidden", "width:0px;overflow-x:clip",
        "font:0px/0 a", "transform:scale(0)", "clip:rect(0 0 0 0)",
    ],
)  # fmt: skip
def test_styles_that_hide(style: str) -> None:
    assert concealed(style)


@pytest.mark.parametrize(
    "style",
    [
        "", "display:block", "opacity:0.5", "opacity:1", "opacity:.05", "font-size:10px", "font-size:0.9em",
        "font-size:1em", "max-height:0", "overflow:hidden;height:100px", "text-indent:-10px", "font:12px/1.5 a",
        "color:#000", "not-display:none-x", "font-size:2em", "margin-left:-20px",
    ],
)  # fmt: skip
def test_styles_that_do_not(style: str) -> None:
    assert not concealed(style)


@pytest.mark.parametrize(
    ("markup", "words"),
    [
        ("a<p hidden>X<p>b", "a\nb"),
        ("a<p hidden>X<div>b</div>", "a\nb"),
        ("<ul><li hidden>X<li>b</ul>c", "- b\nc"),
        ("<ul><li hidden>X<ul><li>X</ul>X</li><li>b</ul>c", "- b\nc"),
        ("<table><tr><td hidden>X<table><tr><td>X</table>X<td>b</table>c", "b\nc"),
        ("<table><tr hidden><td>X<tr><td>b</table>c", "b\nc"),
        ("<ul><li hidden>X</ul>b", "b"),
        ("<div hidden>X<div>X</div>X</div>b", "b"),
        ("<div title=hidden>a</div>", "a"),
        ("<div title='x hidden y' data-hidden=1>a</div>", "a"),
        ("<div title='' hidden>X</div>a", "a"),
        ("<input hidden>a<br hidden>b", "a\nb"),
        ("<div hidden/>X", ""),
        ("<div id=c class='a b'>a</div>", "a"),
        ("<style>.b{display:none}@media print{.a{display:none}}</style><p class='a'>a<p class='x B'>X<p>c", "a\n\nc"),
        ("<style>div > p#c , i{font-size:0}</style><p id=C>X</p>a<i>b</i>", "ab"),
    ],
)
def test_what_is_seen(markup: str, words: str) -> None:
    assert from_html(markup).replace("\n\n", "\n") == words.replace("\n\n", "\n")


def test_hostile_sheets_take_no_time() -> None:
    began = time.process_time()
    for text in ("@" * SHEET_CHARS, "a" * SHEET_CHARS, "@{" * SHEET_CHARS, "/*" * SHEET_CHARS, "a{b}" * SHEET_CHARS):
        sheets(f"<style>{text}</style>")
    assert time.process_time() - began < 2.0
    assert len(sheets("<style>.a{display:none}</style>" * 2)) == 1
