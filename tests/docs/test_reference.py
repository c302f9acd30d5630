"""The pages made from the code are as the code is, and nothing in them is without its line."""

from __future__ import annotations

import pytest
from docs.make import reference
from docs.make.page import DOCS


@pytest.mark.parametrize("name", reference.PAGES)
def test_made_pages_are_as_the_code_is(name: str) -> None:
    page = DOCS / name
    assert page.read_text() == reference.PAGES[name](), "make it anew: python -m docs.make.reference"


def test_nothing_is_without_a_line() -> None:
    """A method, an event, an error code, a setting, an option, a key of the manifest."""
    assert not reference.mute(), (
        "say what it is: docs/make/words/methods.toml, the option's help, the channel's manifest"
    )
