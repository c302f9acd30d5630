"""Tables where a platform has none."""

from __future__ import annotations

import pytest

from garra.core.markup import Block, Document, Span
from garra.core.render import render
from garra.core.tables import Tables, tabled


def cell(text: str) -> tuple[Span, ...]:
    return (Span(text),)


TABLE: Document = (
    Block(spans=(Span("Before."),)),
    Block(
        kind="table",
        rows=(
            (cell("Name"), cell("Age"), cell("City")),
            (cell("Ann"), cell("7"), cell("Rome")),
            ((Span("bob", ("code",)),), cell("12"), cell("Bern"), cell("more")),
        ),
    ),
)


@pytest.mark.parametrize(
    ("how", "shown"),
    [
        ("block", "Before.\n\n```\nName | Age | City\n"),
        ("code", "Before.\n\n```\nName | Age | City\n"),
        (
            "bullets",
            "Before.\n\n**Ann**\n- Age: 7\n- City: Rome\n`bob`\n- Age: 12\n- City: Bern\n- more",
        ),
    ],
)
def test_a_table_is_written_as_wished(how: Tables, shown: str) -> None:
    assert render(tabled(TABLE, how), "markdown").startswith(shown)


def test_off_leaves_it_as_it_was_typed() -> None:
    typed = "| Name | Age | City |\n| --- | --- | --- |\n| Ann | 7 | Rome |\n| bob | 12 | Bern | more |"
    assert render(tabled(TABLE, "off"), "plain") == f"Before.\n\n{typed}"


def test_only_block_keeps_a_table_where_the_format_has_tables() -> None:
    assert "<table>" in render(tabled(TABLE, "block"), "matrix-html")
    assert "<pre>" in render(tabled(TABLE, "code"), "matrix-html")


def test_small_tables() -> None:
    one = (Block(kind="table", rows=((cell("Only"),), (cell("a"),), ())),)
    assert render(tabled(one, "bullets"), "plain") == "a"
    assert tabled((Block(kind="table"),), "bullets") == ()
    assert render(tabled((Block(kind="table"),), "off"), "plain") == ""
    assert tabled(TABLE[:1], "off") == TABLE[:1]
