"""The gate before a tool: what the policy (or a reason of the moment) sets apart is asked of a person first."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any

from garra.core import taint
from garra.core.approvals import Question
from garra.core.policy import Decision
from garra.core.showing import shown
from garra.core.value import frozen
from garra.domains.tools.pipeline import Gated, Pending
from garra.sdk.ports import Asker
from garra.sdk.tool import Call, Shows, Tool

Reasons = Callable[[Pending], Sequence[str]]
"""Why a person is asked before this call, a line each, besides what the policy says."""


@frozen
class Gate:
    """As `pipeline.Gate`. `tool` gives the tool of a name, for what it shows of its own call."""

    asker: Asker
    tool: Callable[[str], Tool | None]
    reasons: Sequence[Reasons] = ()

    async def __call__(self, pending: Pending, decision: Decision) -> Gated:
        answer = await self.asker.ask(await self.question(pending, decision))
        return Gated(answer.allowed, answer.reason or "it was not approved")

    async def question(self, pending: Pending, decision: Decision) -> Question:
        """What the person is asked. Raises ToolFailed as the tool's own `show` does."""
        call, context = pending.call, pending.context
        why = [line for reasons in self.reasons for line in reasons(pending)]
        if decision.verdict.value == "ask":
            why.insert(0, f"{decision.source} says to ask first")
        need, always, aim = pending.need, False, taint.aim(call.arguments)
        if need is not None:
            why += [taint.does(need.effects), *taint.because(need.marks)]
            # what the policy sets apart, and what changes orders without saying where, is asked each time
            always = decision.verdict.value != "ask" and bool(aim or not {"remembers", "configures"} & {*need.effects})
        return Question(
            "tool",
            await self._subject(pending),
            bound(call.name, call.arguments, context.session_key, context.requester),
            context.session_key,
            context.agent_id,
            context.run_id,
            call.id,
            choices=("allow-once", "allow-always", "deny") if always else ("allow-once", "deny"),
            remembers=taint.remembers(call.name, aim) if always else "",
            covers=taint.covered(context.session_key, call.name, need.marks, aim) if always and need else "",
            why=tuple(why),
            requester=context.requester,
            tool=call.name,
        )

    async def _subject(self, pending: Pending) -> str:
        call = pending.call
        tool: object = self.tool(call.name)
        if isinstance(tool, Shows):
            return shown(await tool.show(Call(call.id, call.arguments, pending.context)))
        return shown(plain(call.name, call.arguments))


def plain(name: str, arguments: Any) -> str:
    """A tool with its arguments, whole: a line for each, long texts in lines of their own."""
    lines = [f"  {key}: {_value(value)}" for key, value in arguments.items()]
    return "\n".join((name, *lines))


def _value(value: Any) -> str:
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False, sort_keys=True)
    return value if "\n" not in value else "\n    " + value.replace("\n", "\n    ")


def bound(name: str, arguments: Any, session_key: str, requester: str) -> str:
    """The hash of all that a yes to a tool call holds for."""
    face = json.dumps([name, arguments, session_key, requester], ensure_ascii=True, sort_keys=True, default=str)
    return hashlib.sha256(face.encode()).hexdigest()
