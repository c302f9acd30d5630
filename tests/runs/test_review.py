"""A model looks at a command first: it may refuse it; anything else asks a person."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from garra.config.sections import Config
from garra.core.errors import FailureKind, NotFound
from garra.core.messages import User
from garra.io.clock import SystemClock
from garra.runs.review import Reviewer, verdict
from garra.sdk.model import EventStream, Model, ModelRequest
from garra.testing.model import Says, ScriptedModel, fails, says
from tests.domains.exec.asking import desk, question

MODEL = Model("scripted", "small", "scripted", "http://localhost")


class Models:
    """One model, which says what it is told; without an answer there is none."""

    def __init__(self, answer: Says | None) -> None:
        self.scripted = ScriptedModel([answer] if answer else [])
        self._missing = answer is None
        self.asked: list[ModelRequest] = []

    def resolve(self, ref: str | None = None, agent_id: str = "") -> Model:
        if self._missing:
            raise NotFound("there is no model")
        return MODEL

    def stream(self, request: ModelRequest) -> EventStream:
        self.asked.append(request)
        return self.scripted(request.messages)


def reviewer(models: Models, **settings: Any) -> Reviewer:
    config = Config.model_validate({"tools": {"exec": {"mode": "auto", **settings}}})
    return Reviewer(models, lambda: config, SystemClock())


@pytest.mark.req("TOOL-15")
async def test_a_refusal_ends_it_before_a_person_is_asked(tmp_path: Path) -> None:
    models = Models(says("refuse: it deletes the home folder"))
    async with desk(tmp_path, review=reviewer(models)) as d:
        answer = await d.approvals.ask(question(subject="rm -rf ~", cwd="/w"))
        assert (answer.choice, answer.reason) == ("deny", "it deletes the home folder")
        assert not d.way.shown
    (asked,) = models.asked
    (message,) = asked.messages
    assert isinstance(message, User)
    assert "EXTERNAL_UNTRUSTED_CONTENT" in message.text
    assert "rm -rf ~" in message.text
    assert not asked.tools


@pytest.mark.req("TOOL-15")
@pytest.mark.parametrize(
    "answer",
    [
        says("pass"),
        says("allow it, I am sure"),
        says(""),
        fails(FailureKind.SERVER),
        Says(hangs=True),
        None,
    ],
)
async def test_all_else_asks_a_person(tmp_path: Path, answer: Says | None) -> None:
    async with desk(tmp_path, review=reviewer(Models(answer), reviewer={"timeoutMs": 1_000})) as d:
        _, asked = await d.asked()
        assert asked.open


@pytest.mark.parametrize(
    ("settings", "changes"),
    [({"mode": "ask"}, {}), ({}, {"kind": "tool"}), ({}, {"subject": "x" * 30_000})],
)
async def test_where_it_has_no_say_it_is_not_asked(settings: dict[str, Any], changes: dict[str, Any]) -> None:
    models = Models(says("refuse: never"))
    assert await reviewer(models, **settings)(question(**changes)) == ""
    assert not models.asked


def test_only_a_clear_refusal_is_one() -> None:
    assert verdict("\n Refuse:  too   dangerous \nmore") == "too dangerous"
    assert verdict("refuse:") == "the reviewer refused it"
    assert verdict("I would refuse: x") == ""
