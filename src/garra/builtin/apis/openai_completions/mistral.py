"""Mistral's own dialect: thoughts are parts of what was said, and a session stays on the machine that knows it."""

from __future__ import annotations

from dataclasses import replace

from garra.builtin.apis.openai_completions.api import OpenAICompletions
from garra.builtin.apis.openai_completions.dialect import MISTRAL, Dialect
from garra.sdk.model import Model, ModelRequest


class MistralConversations(OpenAICompletions):
    """`sdk.model.Api` for `/chat/completions` of Mistral."""

    family = "mistral-conversations"

    def dialect(self, model: Model) -> Dialect:
        return replace(MISTRAL, thinking=str(model.compat.get("thinkingFormat", MISTRAL.thinking)))

    def headers(self, request: ModelRequest, key: str | None) -> dict[str, str]:
        affinity = {"x-affinity": request.session} if request.session else {}
        return affinity | super().headers(request, key)
