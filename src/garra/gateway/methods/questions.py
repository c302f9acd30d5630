"""`question.*`: what agents ask people, for operators: see it, answer it, wait for the answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

from msgspec import Meta

from garra.core import questions
from garra.core.errors import Unavailable, UserError
from garra.core.ids import AgentId, RunId, SessionKey
from garra.core.keys import agent_of
from garra.core.questions import Record
from garra.domains.questions.register import Questions
from garra.gateway.host import Host
from garra.gateway.method import QUESTIONS, Caller, Method
from garra.gateway.params import Limit, Name, Nothing, Params
from garra.runs.run import Turn

WHERE = "questions"
"""Where the register stands in `Host.more`."""


class QuestionId(Params, frozen=True):
    id: Name


class QuestionRequest(Params, frozen=True):
    questions: Sequence[Any]
    id: Name | None = None
    agent_id: Name | None = None
    session_key: Name | None = None
    run_id: Name | None = None
    timeout_ms: Limit | None = None


class QuestionWait(Params, frozen=True):
    id: Name
    timeout_ms: Limit | None = None
    include_resolution_id: bool = False


class QuestionResolve(Params, frozen=True):
    """`answers`, or `cancel`."""

    id: Name
    answers: Mapping[str, Any] | None = None
    cancel: bool = False
    resolved_by: Name | None = None
    resolution_id: Annotated[str, Meta(min_length=1, max_length=128)] | None = None
    secret_store_allowed_hosts: Sequence[str] | None = None


def register(host: Host) -> Questions:
    """Raises Unavailable while the gateway is starting."""
    found = host.more.get(WHERE)
    if not isinstance(found, Questions):
        raise Unavailable("questions are not ready yet; try again in a moment", retryable=True)
    return found


def listed(host: Host, caller: Caller, params: Nothing) -> dict[str, Any]:
    found = host.more.get(WHERE)
    return {"questions": [questions.body(each) for each in found.pending()] if isinstance(found, Questions) else []}


def got(host: Host, caller: Caller, params: QuestionId) -> dict[str, Any]:
    return {"question": questions.body(register(host).get(params.id))}


async def request(host: Host, caller: Caller, params: QuestionRequest) -> dict[str, Any]:
    key = host.key(params.session_key, params.agent_id) if params.session_key else ""
    record = Record(
        params.id or "", questions.items(params.questions), 0, 0, params.agent_id or "", key, params.run_id or ""
    )
    life = params.timeout_ms / 1000 if params.timeout_ms else questions.USUAL_S
    asked = await register(host).ask(record, min(life, questions.MOST_S))
    return {"id": asked.id, "expiresAtMs": asked.expires_at}


async def wait(host: Host, caller: Caller, params: QuestionWait) -> dict[str, Any]:
    found = await register(host).wait(params.id, params.timeout_ms / 1000 if params.timeout_ms else None)
    return _end(found)


async def resolve(host: Host, caller: Caller, params: QuestionResolve) -> dict[str, Any]:
    known, by = register(host), caller.who.profile or caller.client.display_name or caller.client.id
    if params.cancel:
        await known.end(params.id, "cancelled", by=by)
        return {"status": "cancelled"}
    if params.answers is None:
        raise UserError("invalid question.resolve params: answers or cancel is needed")
    found = questions.answers(known.get(params.id), params.answers)
    return _end(await known.end(params.id, "answered", found, by))


def _end(record: Record) -> dict[str, Any]:
    if record.status != "answered":
        return {"status": record.status}
    return {"status": "answered", "answers": questions.body(record)["answers"]}


def watch(host: Host, known: Questions) -> Callable[[], None]:
    """Tell operators what is asked and answered; what no turn waits for any more goes into its session as words."""

    def listen(record: Record, *, waited: bool) -> None:
        if record.pending:
            host.hub.publish("question.requested", questions.body(record), scope=QUESTIONS)
            return
        host.hub.publish("question.resolved", {"id": record.id, **_end(record)}, scope=QUESTIONS)
        written = record.requester and record.by == record.requester  # it goes into its chat's session as a message
        if record.status == "answered" and not waited and record.session_key and not written:
            host.spawn(_told(host, record), f"answer of {record.id}")

    host.more[WHERE] = known
    return known.subscribe(listen)


async def _told(host: Host, record: Record) -> None:
    """The turn that asked is gone, by a restart: the answer begins another."""
    agent = record.agent_id or agent_of(record.session_key, host.config.agents.default_id())
    turn = Turn(
        RunId(f"question:{record.id}"), SessionKey(record.session_key), AgentId(agent), questions.said(record),
        queue="followup",
    )  # fmt: skip
    await host.runs.submit(turn)


METHODS: tuple[Method, ...] = (
    Method("question.request", QUESTIONS, QuestionRequest, request),
    Method("question.waitAnswer", QUESTIONS, QuestionWait, wait),
    Method("question.resolve", QUESTIONS, QuestionResolve, resolve),
    Method("question.get", QUESTIONS, QuestionId, got),
    Method("question.list", QUESTIONS, Nothing, listed),
)
