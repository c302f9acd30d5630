"""How a model is named: `provider/model`, cut at the first slash."""

from __future__ import annotations

from typing import NamedTuple


class Ref(NamedTuple):
    """A model of a provider. `provider` is empty where only a model or an alias was named."""

    provider: str
    model: str

    def __str__(self) -> str:
        return f"{self.provider}/{self.model}" if self.provider else self.model


def split(text: str) -> Ref:
    """`openrouter/anthropic/x` is model `anthropic/x` of provider `openrouter`. Provider names are lower case."""
    provider, slash, model = text.strip().partition("/")
    return Ref(provider.strip().lower(), model.strip()) if slash else Ref("", provider)
