"""The one way to a tool: policy, arguments, hooks, approval, the call itself, and a result that fits.

Every surface calls tools here (the agent's loop, HTTP, the gateway's method), so there is no way around the policy.
"""

from __future__ import annotations

import logging
import operator
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import field
from typing import Any, Literal

from garra.core import policy, schema, taint, toolsearch
from garra.core.blots import NONE, Blots
from garra.core.clip import clip
from garra.core.errors import BadArguments, GarraError, ToolFailed
from garra.core.groups import Place
from garra.core.ids import AgentId, SessionKey
from garra.core.messages import Content, Image, Text, ToolCall, ToolResult
from garra.core.policy import Decision, Face, Layer, Verdict
from garra.core.taint import Mark, Need, brief
from garra.core.toolsearch import Settings as Searching
from garra.core.value import frozen, replace
from garra.domains.tools import finding
from garra.domains.tools.finding import Offer
from garra.sdk.model import ToolSpec
from garra.sdk.ports import Clock
from garra.sdk.stream import UNPARSED
from garra.sdk.tool import Affects, Call, Origin, Prepares, Result, Tool, ToolContext, ToolInfo, Update

log = logging.getLogger(__name__)

MAX_TEXT = 40_000
"""Characters of one result that a model is given."""
MAX_IMAGES = 8 << 20
"""Bytes of base64 of the pictures of one result."""
KEPT = 64
"""Policies whose decisions are remembered."""


@frozen
class Scope:
    """For whom tools are looked up. `provider` and `api` decide how their schemas are cut, `model` is its name there.
    `place` is the chat where the turn was asked for, if it was one. `depth` counts the sub-agents above and with it,
    0 for none; `inherited` are the names of the tools that its parent really had, None where it has no parent.
    """

    agent_id: AgentId
    session_key: SessionKey
    origin: Origin
    provider: str = ""
    api: str = ""
    surface: Literal["agent", "http"] = "agent"
    place: Place | None = None
    model: str = ""
    depth: int = 0
    inherited: tuple[str, ...] | None = None


@frozen
class Pending:
    """A call about to run; its arguments fit. `need` is what text from outside makes a person's affair of it."""

    tool: ToolInfo
    call: ToolCall
    context: ToolContext
    need: Need | None = None


@frozen
class Block:
    """A hook's word that a call must not run; the model reads the reason."""

    reason: str


@frozen
class Gated:
    """What the person who was asked said. `reason` is read by the model when it is no."""

    allowed: bool
    reason: str = ""


DIRECT_ONLY = Searching(on=False)
CONFIGURES = Decision(Verdict.ASK, "the rule for changes of the configuration")
FINDING: Mapping[str, Literal["parallel", "sequential"]] = {
    toolsearch.SEARCH: "parallel", toolsearch.DESCRIBE: "parallel", toolsearch.CALL: "sequential",
}  # fmt: skip
WAYS = (Face(toolsearch.SEARCH), Face(toolsearch.CALL))

Before = Callable[[Pending], Awaitable[ToolCall | Block]]
"""Sees a call before it runs; gives it back, changed or not, or blocks it. One that fails blocks."""
After = Callable[[Pending, ToolResult, int], Awaitable[ToolResult]]
"""Sees a result and how many milliseconds it took; gives it back, changed or not. One that fails changes nothing."""
Gate = Callable[[Pending, Decision], Awaitable[Gated]]
"""Asks a person, where the policy says so, or a need."""


@frozen
class Row:
    """One tool, as the owner is shown it."""

    info: ToolInfo
    decision: Decision


@frozen
class _Decided:
    """What one policy says of these very tools."""

    tools: tuple[Tool, ...]
    rows: tuple[Row, ...]
    offers: dict[tuple[str, Searching], Offer] = field(default_factory=dict)


class Pipeline:
    """All tools of one process. `catalog` gives them, the first of a name counts; `layers` the policy of a scope."""

    def __init__(
        self,
        catalog: Callable[[], Sequence[Tool]],
        layers: Callable[[Scope], Sequence[Layer]],
        clock: Clock,
        *,
        before: Sequence[Before] = (),
        after: Sequence[After] = (),
        gate: Gate | None = None,
        searching: Callable[[Scope], Searching] = lambda _: DIRECT_ONLY,
        blots: Callable[[], Blots] = lambda: NONE,
    ) -> None:
        self._catalog, self.layers, self._clock = catalog, layers, clock
        self._before, self._after, self._gate = list(before), list(after), gate
        self._searching, self._blots = searching, blots
        self._cut: dict[tuple[int, str], tuple[Tool, ToolSpec]] = {}
        self._decided: OrderedDict[tuple[Layer, ...], _Decided] = OrderedDict()

    def rows(self, scope: Scope) -> tuple[Row, ...]:
        """Every tool with what the policy says of it, in the catalog's order."""
        return self._decision(scope)[0].rows

    def _decision(self, scope: Scope) -> tuple[_Decided, tuple[Layer, ...]]:
        tools, layers = tuple(self._catalog()), tuple(self.layers(scope))
        known = self._decided.pop(layers, None)
        if known is None or len(known.tools) != len(tools) or not all(map(operator.is_, known.tools, tools)):
            known = _Decided(tools, _rows(tools, layers))
        self._decided[layers] = known
        if len(self._decided) > KEPT:
            self._decided.popitem(last=False)
        return known, layers

    def specs(self, scope: Scope) -> tuple[ToolSpec, ...]:
        """What the model is told: the tools it may call, in an order that never changes by itself. Of a large set the
        less used are told by name only.
        """
        return self.offer(scope).told

    def offer(self, scope: Scope) -> Offer:
        """What the model is told in full, and what by name only."""
        return self._offer(scope, *self._decision(scope))

    def _offer(self, scope: Scope, decided: _Decided, layers: Sequence[Layer]) -> Offer:
        dialect, settings = schema.dialect(scope.api, scope.provider), self._settings(scope, layers)
        known = decided.offers.get((dialect, settings))
        if known is None:
            known = decided.offers[dialect, settings] = finding.offer(self._told(decided, dialect), settings)
        return known

    def _told(self, decided: _Decided, dialect: str) -> tuple[ToolSpec, ...]:
        allowed = {row.info.name for row in decided.rows if row.decision.verdict is not Verdict.DENY}
        specs: dict[str, ToolSpec] = {}
        for tool in decided.tools:
            if tool.info.name in allowed and tool.info.name not in specs:
                specs[tool.info.name] = self._spec(tool, dialect)
        return tuple(specs.values())

    def _settings(self, scope: Scope, layers: Sequence[Layer]) -> Searching:
        """How large sets are told; in full where the owner denies the way to the rest."""
        shut = any(policy.matches(each, layer.deny) for layer in layers if layer.deny for each in WAYS)
        return DIRECT_ONLY if shut else self._searching(scope)

    def modes(self, scope: Scope) -> Mapping[str, Literal["parallel", "sequential"]]:
        """The tools that may be called, and whether each lets others run beside it."""
        decided, layers = self._decision(scope)
        modes = {r.info.name: r.info.mode for r in decided.rows if r.decision.verdict is not Verdict.DENY}
        return {**modes, **FINDING} if self._offer(scope, decided, layers).deferred else modes

    def info(self, name: str) -> ToolInfo | None:
        tool = self._find(name)
        return tool.info if tool else None

    def hidden(self, names: Collection[str]) -> frozenset[str]:
        """Those of `names` whose calls are not shown."""
        first = {tool.info.name: tool.info for tool in reversed(self._catalog())}
        return frozenset(name for name in names if name in first and first[name].hidden)

    def _spec(self, tool: Tool, dialect: str) -> ToolSpec:
        key = (id(tool), dialect)
        if key not in self._cut:
            info = tool.info
            self._cut[key] = (tool, ToolSpec(info.name, info.description, schema.clean(info.parameters, dialect)))
        return self._cut[key][1]

    def _find(self, name: str) -> Tool | None:
        return next((tool for tool in self._catalog() if tool.info.name == name), None)

    async def call(
        self, call: ToolCall, context: ToolContext, update: Update, scope: Scope | None = None
    ) -> ToolResult:
        """Carry out one call. Whatever goes wrong is a result that says so; only cancellation is raised.

        No secret that is known is in the result, nor in what is shown meanwhile.
        """
        result = await self._called(call, context, shown(self._blots(), update), scope)
        return self._blots().message(result)

    async def _called(self, call: ToolCall, context: ToolContext, update: Update, scope: Scope | None) -> ToolResult:
        scope = scope or Scope(context.agent_id, context.session_key, context.origin)
        try:
            return await self._routed(call, context, update, scope)
        except ToolFailed as error:
            return self._failed(call, error.message, error.details, _kind(error))
        except GarraError as error:
            return self._failed(call, error.message, error.details, "refused")
        except Exception:
            log.exception("tool %s broke", call.name)
            return self._failed(
                call, f"The tool {call.name} broke; this is a fault of ours. See the log.", None, "fault"
            )

    async def _routed(self, call: ToolCall, context: ToolContext, update: Update, scope: Scope) -> ToolResult:
        """A call of a tool itself, or one of those by which tools are found."""
        if call.name not in toolsearch.CONTROLS or not (offer := self.offer(scope)).deferred:
            return await self._run(call, context, update, scope)
        if call.name == toolsearch.CALL:
            name, arguments = toolsearch.target(call.arguments)
            result = await self._run(ToolCall(call.id, name, arguments), context, update, scope)
            tool = {"id": name, "name": name, "source": self._sources().get(name, "")}
            return replace(result, name=call.name, details={"tool": tool, "result": result.details})
        if call.name == toolsearch.SEARCH:
            content, details = finding.found(call.arguments, offer, self._sources(), self._searching(scope))
        else:
            content, details = finding.described(call.arguments, offer, self._sources())
        return ToolResult(call.id, call.name, content, self._clock.now_ms(), details=details)

    def _sources(self) -> Mapping[str, str]:
        return {tool.info.name: tool.info.source for tool in self._catalog()}

    async def _run(self, call: ToolCall, context: ToolContext, update: Update, scope: Scope) -> ToolResult:
        tool = self._find(call.name)
        decision = policy.decide(_face(tool.info), self.layers(scope)) if tool else None
        if tool is None or decision is None or decision.verdict is Verdict.DENY:
            raise finding.unknown(call.name, self.offer(scope))
        pending = Pending(tool.info, fitted(tool, call), context)
        pending = await self._allowed(tool, pending, decision)
        began = self._clock.monotonic()
        answer = await _executed(tool, Call(call.id, pending.call.arguments, context), update)
        marks = taint.stored((*answer.marks, *_outside(tool.info)))
        now = self._clock.now_ms()
        result = ToolResult(call.id, call.name, bounded(answer.content), now, details=answer.details, meta=marks)
        finished = await self._finished(pending, result, round((self._clock.monotonic() - began) * 1000))
        return finished if not marks or marks == finished.meta else _marked(finished, marks)

    async def _allowed(self, tool: Tool, pending: Pending, decision: Decision) -> Pending:
        """The call as the hooks left it. Raises ToolFailed when one blocks it, or the person who is asked does."""
        for hook in self._before:
            said = await self._hear(hook, pending)
            if isinstance(said, Block):
                raise ToolFailed(f"Not run: {said.reason}", details={"kind": "blocked"})
            if said is not pending.call:
                pending = replace(pending, call=fitted(tool, said))
        effects, marks = await _effects(tool, pending), pending.context.marks
        need = Need(effects, marks) if effects and marks.count else None
        if "configures" in effects:
            decision = CONFIGURES
        if decision.verdict is Verdict.ASK or need is not None:
            await self._ask(replace(pending, need=need), decision)
        return pending

    async def _ask(self, pending: Pending, decision: Decision) -> None:
        """Raises ToolFailed unless a person says yes."""
        gated = await self._gate(pending, decision) if self._gate else Gated(False, "nobody can be asked here")
        if gated.allowed:
            return
        reason, source = gated.reason or "it was not approved", decision.source
        if (need := pending.need) is not None:
            log.info("%s was kept from %s: it read %s", pending.context.run_id, pending.call.name, brief(need.marks))
            reason, source = taint.refused(reason, need.effects, need.marks), "taint"
        raise ToolFailed(f"Not run: {reason}", details={"kind": "denied", "source": source})

    async def _hear(self, hook: Before, pending: Pending) -> ToolCall | Block:
        try:
            return await hook(pending)
        except Exception:
            log.exception("a hook before %s broke", pending.call.name)
            return Block("a hook that checks calls broke; see the log")

    async def _finished(self, pending: Pending, result: ToolResult, took_ms: int) -> ToolResult:
        for hook in self._after:
            try:
                result = await hook(pending, result, took_ms)
            except Exception:
                log.exception("a hook after %s broke", pending.call.name)
        return result

    def _failed(self, call: ToolCall, text: str, details: Any, kind: str) -> ToolResult:
        known = dict(details) if isinstance(details, Mapping) else {}
        meta = taint.stored(mark for mark in known.pop(taint.META, ()) if isinstance(mark, Mark))
        body = {"status": "failed", "error": text, "errorKind": kind, **known}
        content: Content = (Text(clip(text, MAX_TEXT)[0]),)
        now = self._clock.now_ms()
        return ToolResult(call.id, call.name, content, now, is_error=True, details=body, meta=meta)


async def _effects(tool: Tool, pending: Pending) -> tuple[str, ...]:
    """What this call changes beyond the workspace. A plugin's that says nothing of it counts as sending."""
    if isinstance(tool, Affects):
        return await tool.affects(Call(pending.call.id, pending.call.arguments, pending.context))
    return tool.info.effects or (("sends",) if _is_guest(tool.info) else ())


async def _executed(tool: Tool, call: Call, update: Update) -> Result:
    try:
        return await tool.execute(call, update)
    except ToolFailed as error:
        if marks := _outside(tool.info):
            error.details = {**(error.details or {}), taint.META: marks}
        raise


def _is_guest(info: ToolInfo) -> bool:
    """Whether it is a tool from elsewhere that does not say what it reads and changes."""
    return info.source == "plugin" and not info.declared


def _outside(info: ToolInfo) -> tuple[Mark, ...]:
    return (Mark("tool", info.name),) if _is_guest(info) else ()


def _marked(result: ToolResult, marks: Mapping[str, Any]) -> ToolResult:
    """A result that hooks have changed still has the marks of what it was made from."""
    return replace(result, meta={**result.meta, **taint.stored((*taint.of(marks), *taint.of(result.meta)))})


def _rows(tools: tuple[Tool, ...], layers: tuple[Layer, ...]) -> tuple[Row, ...]:
    named: dict[str, Tool] = {}
    for tool in tools:
        named.setdefault(tool.info.name, tool)
    return tuple(Row(tool.info, policy.decide(_face(tool.info), layers)) for tool in named.values())


def fitted(tool: Tool, call: ToolCall) -> ToolCall:
    """`call` with arguments that fit the tool's schema. Raises BadArguments."""
    arguments: Mapping[str, Any] = call.arguments
    if set(arguments) == {UNPARSED}:
        raise BadArguments(f"The arguments of {call.name} are no JSON object. Send them again as one.")
    if isinstance(tool, Prepares):
        arguments = tool.prepare(arguments)
    mended, faults = schema.check(tool.info.parameters, dict(arguments))
    if faults:
        lines = "\n".join(f"- {fault}" for fault in faults[:8])
        raise BadArguments(f"The arguments of {call.name} do not fit:\n{lines}\nCorrect them and call it again.")
    return replace(call, arguments=mended)


def shown(blots: Blots, update: Update) -> Update:
    """`update` without the secrets that are known, nor the beginning of one at the end of a growing text."""

    def tell(text: str) -> None:
        update(blots.text(text[: len(text) - blots.open(text)]))

    return tell if blots else update


def bounded(content: Content) -> Content:
    """`content` that a model can be given: long text loses its middle, too many pictures are named instead."""
    room, pictures = MAX_TEXT, MAX_IMAGES
    kept: list[Text | Image] = []
    for part in content:
        if isinstance(part, Text):
            text, _ = clip(part.text, max(room, 200), "ask for less, or for a part")
            room -= len(text)
            kept.append(Text(text))
        elif len(part.data) <= pictures:
            pictures -= len(part.data)
            kept.append(part)
        else:
            kept.append(Text(f"[a picture ({part.media_type}, {len(part.data)} bytes) is left out: too large]"))
    return tuple(kept) or (Text("(no output)"),)


def _face(info: ToolInfo) -> Face:
    return Face(info.name, (*info.groups, *policy.own_groups(info.name, info.source)))


def _kind(error: ToolFailed) -> str:
    return "argument-validation" if isinstance(error, BadArguments) else "tool-failed"
