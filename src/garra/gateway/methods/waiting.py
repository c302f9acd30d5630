"""Questions of an agent, and what it suggests. None ever waits here yet, and the lists say so: the clients ask for them
again and again when they are refused.
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from garra.gateway.host import Host
from garra.gateway.method import QUESTIONS, READ, Caller, Method
from garra.gateway.params import Nothing, Params


class TaskSuggestions(Params, frozen=True):
    session_key: Annotated[str, Meta(min_length=1, max_length=512)] | None = None
    agent_id: Annotated[str, Meta(min_length=1, max_length=128)] | None = None


def questions(host: Host, caller: Caller, params: Nothing) -> dict[str, Any]:
    return {"questions": []}


def suggestions(host: Host, caller: Caller, params: TaskSuggestions) -> dict[str, Any]:
    return {"suggestions": []}


METHODS: tuple[Method, ...] = (
    Method("question.list", QUESTIONS, Nothing, questions),
    Method("taskSuggestions.list", READ, TaskSuggestions, suggestions),
)
