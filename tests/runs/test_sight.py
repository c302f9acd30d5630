"""Who reads a PDF: the model set for it, else the caller's own where it takes one."""

from __future__ import annotations

import base64
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from garra.config.sections import Config
from garra.core.errors import NotFound, ToolFailed
from garra.core.ids import AgentId
from garra.core.messages import Assistant, Image, Text
from garra.core.spending import Payer
from garra.domains.models.registry import Models
from garra.runs.sight import Sight
from garra.sdk.model import Model, ModelRequest
from garra.sdk.sight import Study
from garra.testing.clock import ManualClock

KNOWN = {
    "anthropic/claude": Model("anthropic", "claude", "anthropic-messages", "http://x", input=("text", "image")),
    "other/like": Model("other", "like", "anthropic-messages", "http://x", input=("text", "image")),
    "open/one": Model("open", "one", "openai-completions", "http://x"),
}


class Answering:
    """Models that answer with what they were given; those in `down` fail."""

    def __init__(self, *down: str) -> None:
        self.down, self.asked = down, list[ModelRequest]()

    def resolve(self, ref: str | None = None, agent_id: str = "") -> Model:
        if ref not in KNOWN:
            raise NotFound(f"no model {ref}")
        return KNOWN[ref]

    def stream(self, request: ModelRequest) -> Any:
        self.asked.append(request)

        async def result() -> Assistant:
            if request.model.ref in self.down:
                return Assistant((), 0, stop="error", error="down")
            return Assistant((Text("seven"),), 0)

        return SimpleNamespace(result=result)


def sight(models: Answering, choice: Any = None) -> Sight:
    config = Config.model_validate({"agents": {"defaults": {"pdfModel": choice} if choice else {}}})
    return Sight(lambda: cast(Models, models), lambda: config, ManualClock())


def study(model: str, *, whole: bool = True) -> Study:
    async def text() -> str:
        return "[page 1] words"

    return Study(b"%PDF-1.7", "how many?", AgentId("main"), model, text, whole)


def given(models: Answering) -> Any:
    return models.asked[-1].messages[0].content[0]


async def test_the_callers_own_is_given_the_file_where_it_takes_one() -> None:
    models = Answering()
    found = await sight(models).study(study("anthropic/claude"))
    assert found is not None
    assert (found.text, found.model, found.native) == ("seven", "anthropic/claude", True)
    assert given(models) == Image("application/pdf", base64.b64encode(b"%PDF-1.7").decode())


@pytest.mark.parametrize(
    "asked", [study("open/one"), study("other/like"), study("gone/x"), study("anthropic/claude", whole=False)]
)
async def test_else_the_caller_reads_the_text(asked: Study) -> None:
    models = Answering()
    assert await sight(models).study(asked) is None
    assert models.asked == []


async def test_the_model_set_for_it_is_asked_and_then_the_next() -> None:
    models = Answering("anthropic/claude")
    choice = {"primary": "anthropic/claude", "fallbacks": ["gone/x", "open/one"]}
    found = await sight(models, choice).study(study("open/one"))
    assert found is not None
    assert (found.model, found.native) == ("open/one", False)
    assert given(models) == Text("[page 1] words")
    with pytest.raises(ToolFailed, match="anthropic/claude: down"):
        await sight(models, "anthropic/claude").study(study("open/one"))
    with pytest.raises(ToolFailed, match="pdfModel"):
        await sight(models, "gone/x").study(study("open/one"))


async def test_the_run_that_asks_pays() -> None:
    models, account = Answering(), Payer("r7", "r7", "agent:main:main", "main")
    eyes = sight(models, {"primary": "open/one"})
    eyes.charge(lambda run_id: account if run_id == "r7" else None)
    await eyes.study(replace(study("open/one"), run_id="r7"))
    await eyes.study(study("open/one"))
    assert [request.payer for request in models.asked] == [account, None]
