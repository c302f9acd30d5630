"""What an agent suggests. None ever waits here yet, and the list says so: clients ask again and again when they are
refused.
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from garra.gateway.host import Host
from garra.gateway.method import READ, Caller, Method
from garra.gateway.params import Params


class TaskSuggestions(Params, frozen=True):
    session_key: Annotated[str, Meta(min_length=1, max_length=512)] | None = None
    agent_id: Annotated[str, Meta(min_length=1, max_length=128)] | None = None


def suggestions(host: Host, caller: Caller, params: TaskSuggestions) -> dict[str, Any]:
    return {"suggestions": []}


METHODS: tuple[Method, ...] = (Method("taskSuggestions.list", READ, TaskSuggestions, suggestions),)
