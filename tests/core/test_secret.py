from __future__ import annotations

import pytest

from garra.core.errors import NotFound
from garra.core.secret import Secret


def test_shows_nothing() -> None:
    secret = Secret("hunter2")
    assert "hunter2" not in f"{secret} {secret!r} {[secret]} {secret!s:>10}"
    assert secret.reveal() == "hunter2"
    assert secret


def test_a_missing_one_says_what_is_lacking() -> None:
    secret = Secret("${NOPE}", missing="models.providers.x.apiKey: NOPE is not set")
    assert not secret
    assert repr(secret) == "Secret(missing)"
    with pytest.raises(NotFound, match="NOPE is not set"):
        secret.reveal()


def test_is_compared_by_its_text() -> None:
    assert Secret("a") == Secret("a")
    assert Secret("a") != Secret("b")
    assert Secret("a") != "a"
    assert len({Secret("a"), Secret("a"), Secret("b")}) == 2
