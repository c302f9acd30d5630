"""The whole method table, and a way to call it from inside as somebody with few rights.

Which module has which methods stands here; the module itself (its shapes cost most) is loaded when one of its methods
is called first, or when somebody looks through all of them.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from inspect import isawaitable
from types import SimpleNamespace
from typing import Any, Final, cast

import msgspec

from garra.core.errors import Forbidden, UserError
from garra.core.frames import reword
from garra.gateway.host import Host
from garra.gateway.method import READ, Method, Registry, Reply, inside
from garra.gateway.server import Gateway
from garra.runs.errand import Asking, Errand

METHODS: Final[Mapping[str, str]] = {
    "agent": "agent agent.wait",
    "agents": "agents.list agents.create agents.update agents.delete agent.identity.get",
    "agents_files": "agents.files.list agents.files.get agents.files.set agents.workspace.list agents.workspace.get",
    "approvals": (
        "exec.approval.request exec.approval.get exec.approval.list exec.approval.resolve "
        "exec.approval.waitDecision exec.approval.grants.list exec.approval.grants.revoke exec.approvals.get "
        "exec.approvals.set exec.approvals.node.get exec.approvals.node.set approval.get approval.history "
        "approval.resolve plugin.approval.request plugin.approval.list plugin.approval.resolve "
        "plugin.approval.waitDecision openclaw.approval.list"
    ),
    "channels": "channels.status channels.start channels.stop channels.logout",
    "chat": "chat.send chat.abort chat.history chat.startup chat.message.get chat.metadata chat.inject",
    "config": "config.get config.set config.apply config.patch config.confirm config.schema config.schema.lookup",
    "context": "sessions.context",
    "device": (
        "device.pair.list device.pair.approve device.pair.reject device.pair.remove device.pair.rename "
        "device.token.rotate device.token.revoke"
    ),
    "dreams": "memory.dream memory.dreams memory.dreams.decide memory.dreams.explain doctor.memory.dreamDiary",
    "examine": "doctor.examine doctor.mend security.audit security.mend",
    "logs": "logs.tail",
    "memory": "memory.search memory.index doctor.memory.status",
    "messages": "messages.list messages.get messages.retry messages.drop send message.action",
    "models": "models.list",
    "models_auth": (
        "models.authStatus models.authRefresh models.authSetApiKey models.authLogout models.authOrderSet models.probe"
    ),
    "node": "node.list node.describe node.pair.list",
    "pairing": "channels.pairing.list channels.pairing.approve channels.pairing.dismiss channels.pairing.revoke",
    "presence": "health system-presence connect",
    "questions": "question.request question.waitAnswer question.resolve question.get question.list",
    "restart": "gateway.restart.preflight gateway.restart.request",
    "secrets": "secrets.reload secrets.resolve secrets.store.list secrets.store.set secrets.store.delete",
    "sessions": "sessions.list sessions.describe sessions.resolve",
    "sessions_change": "sessions.create sessions.patch sessions.reset sessions.delete sessions.fork",
    "sessions_compact": "sessions.compact",
    "sessions_keep": "sessions.cleanup sessions.patchMany",
    "sessions_say": "sessions.send sessions.steer sessions.abort",
    "sessions_tree": "sessions.branches.list sessions.branches.switch sessions.rewind",
    "sessions_watch": (
        "sessions.subscribe sessions.unsubscribe sessions.messages.subscribe sessions.messages.unsubscribe "
        "sessions.preview sessions.search sessions.get sessions.viewers.set sessions.observer.visibility"
    ),
    "skills": ("skills.status skills.bins skills.search skills.detail skills.install skills.update skills.remove"),
    "status": "status system.info",
    "stop": "work.stop work.resume work.state",
    "tools": "tools.catalog tools.effective tools.invoke commands.list",
    "tools_why": "tools.policy tools.explain",
    "trace": "trace.get trace.list",
    "users": "users.prefs.get users.prefs.set",
    "usage": "sessions.usage usage.cost usage.report",
    "waiting": "taskSuggestions.list",
}
"""By the module below `gateway.methods`: the methods it has."""

HIDDEN: Final = frozenset({
    "chat.inject", "config.confirm", "connect", "memory.dream", "memory.dreams", "memory.dreams.decide",
    "memory.dreams.explain", "memory.index", "sessions.context", "sessions.get", "sessions.resolve", "sessions.steer",
    "sessions.usage", "users.prefs.get", "users.prefs.set",
})  # fmt: skip
"""Methods that are answered, though a greeting does not name them."""


class Rows(Mapping[str, Method]):
    """Every row by its method's name; a module's rows are there once one of them is asked for."""

    def __init__(self, load: Callable[[str], Iterable[Method]]) -> None:
        self._where = {name: module for module, names in METHODS.items() for name in names.split()}
        self._load = load
        self._loaded: dict[str, Method] = {}

    def __getitem__(self, name: str) -> Method:
        if name not in self._loaded:
            self._loaded |= {row.name: row for row in self._load(self._where[name])}
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._where)

    def __len__(self) -> int:
        return len(self._where)


def of(gateway: Gateway) -> Registry:
    """Every method this gateway answers."""

    def load(module: str) -> Iterable[Method]:
        found: Any = importlib.import_module(f"garra.gateway.methods.{module}")
        rows: Iterable[Method] = found.rows(gateway) if hasattr(found, "rows") else found.METHODS
        return rows

    rows = Rows(load)
    return Registry(rows, tuple(sorted(rows.keys() - HIDDEN)))


def caller(registry: Registry, host: Host) -> Asking:
    """How a tool asks the gateway: as the turn that it was called in. What is no errand the owner's own turns may read,
    nobody else's. Raises UserError as the method does.
    """
    asking = inside((READ,), "tool")

    async def ask(errand: Errand, method: str, params: Mapping[str, Any]) -> Any:
        if (known := _errands().get(method)) is not None:
            return await known(host, errand, params)
        if errand.place is not None or errand.origin not in ("local", "operator"):
            raise Forbidden(f"{method} is not for turns that come from a chat, a job or another agent")
        row = registry.pick(method, asking.who)
        try:
            parsed = msgspec.convert(dict(params), row.params) if row.params else dict(params)
        except msgspec.ValidationError as fault:
            raise UserError(f"invalid {method} params: {reword(str(fault))}") from None
        answer = row.run(host, asking, parsed)
        if isawaitable(answer):
            answer = await answer
        return answer.payload if isinstance(answer, Reply) else answer

    return ask


def _errands() -> Mapping[str, Any]:
    """What agents ask, with the first that does."""
    every: Mapping[str, Any] = importlib.import_module("garra.gateway.errands.every").ALL
    return every


def document() -> dict[str, Any]:
    """The protocol as one JSON Schema document, without a gateway that runs."""
    nobody = cast(Gateway, SimpleNamespace(devices=None))  # the rows bind it, none is called
    found: dict[str, Any] = importlib.import_module("garra.gateway.schema").emit(of(nobody))
    return found
