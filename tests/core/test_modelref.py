from __future__ import annotations

import pytest

from garra.core.modelref import Ref, split


@pytest.mark.req("MODEL-03")
def test_the_first_slash_cuts() -> None:
    assert split("openrouter/anthropic/x") == Ref("openrouter", "anthropic/x")
    assert split(" OpenAI/gpt-6 ") == Ref("openai", "gpt-6")


def test_a_bare_name_has_no_provider() -> None:
    assert split("opus") == Ref("", "opus")
    assert str(split("opus")) == "opus"
    assert str(split("a/b/c")) == "a/b/c"
