"""What a running gateway does not take over."""

from __future__ import annotations

from garra.config import fixed
from garra.config.sections import Config


def test_where_it_listens_is_settled_at_the_start() -> None:
    before = Config.model_validate({"gateway": {"port": 1, "auth": {"token": "a"}}})
    after = Config.model_validate(
        {
            "gateway": {"port": 2, "bind": "custom", "customBindHost": "::1", "auth": {"token": "b"}},
            "logging": {"level": "debug"},
        }
    )
    assert fixed.changed(before, after) == ("gateway.port", "gateway.bind", "gateway.customBindHost")
    assert fixed.changed(before, before) == ()
