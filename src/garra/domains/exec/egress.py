"""The way out of a sandbox's closed network: a relay that judges every host, and asks a person about one not listed.

The sandbox hands out a socket that listens on its own loopback; nothing of the machine is to be seen inside. Whoever
connects to it from there is, for that, the one session whose command it is: no key, no name to choose.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import socket
from collections.abc import Callable

from garra.core import ways
from garra.core.addresses import public
from garra.core.approvals import Answer, Question
from garra.core.errors import Unavailable
from garra.core.ids import AgentId, RunId, SessionKey
from garra.core.value import frozen
from garra.core.ways import HOUR_MS, Target, Ways
from garra.io.http.relay import Refusal, Relay, Way
from garra.sdk.ports import Asker, Clock, Dial, Spawn, Task

PORT = 47_128
"""Where the relay listens in a sandbox: on its own loopback, which it shares with nobody."""
WAIT_S = 120.0
"""How long a command that has ended waits for a person's word on what it could not reach."""
SHOWN = 20
KEY = "agents.defaults.sandbox.egress.allow"


@frozen
class Asked:
    """By whom, and in which run, a command is asked for. `marked`: its turn has read text from outside, so that a
    person is asked about every host, those of the list too.
    """

    agent_id: AgentId
    session_key: SessionKey
    run_id: RunId = RunId("")
    requester: str = ""
    command: str = ""
    marked: bool = False


@frozen
class Ports:
    """`guarded` reaches public addresses only, `open` any. `granted` says whether a person has said yes before, `used`
    hears that it was acted upon.
    """

    guarded: Dial
    open: Dial
    asker: Asker
    granted: Callable[[Question], bool]
    clock: Clock
    spawn: Spawn
    used: Callable[[Question], None] = lambda _: None


class Egress:
    """The ways out of all sandboxes of one process, and what people said of them."""

    def __init__(self, ports: Ports, *, wait_s: float = WAIT_S) -> None:
        self.ports, self.wait_s = ports, wait_s
        self._answers: dict[tuple[AgentId, str], tuple[Answer, float]] = {}
        self._asking: dict[tuple[AgentId, str], Task] = {}

    def passage(self, leading: Ways, asked: Asked) -> Passage:
        """A way out for one command."""
        return Passage(self, leading, asked)

    def may(self, question: Question) -> bool | None:
        """What was said of a host, for as long as that holds; None where nobody has said anything."""
        if self.ports.granted(question):
            return True
        answer, until = self._answers.get((question.agent_id, question.covers), (None, 0.0))
        return answer.allowed if answer and self.ports.clock.monotonic() < until else None

    def ask(self, question: Question) -> Task | None:
        """Ask a person, once for all commands of the agent that want the same host; None while that waits already."""
        key = (question.agent_id, question.covers)
        if key in self._asking:
            return None
        self._asking[key] = self.ports.spawn(self._ask(question), f"question about {question.subject}")
        return self._asking[key]

    async def _ask(self, question: Question) -> Answer:
        key = (question.agent_id, question.covers)
        try:
            answer = await self.ports.asker.ask(question)
        finally:
            self._asking.pop(key, None)
        if not self.ports.granted(question):  # what is kept there can be taken back there
            self._answers[key] = (answer, self.ports.clock.monotonic() + HOUR_MS / 1000)
        return answer


class Passage:
    """The way out of one command's sandbox, while it runs."""

    def __init__(self, egress: Egress, leading: Ways, asked: Asked) -> None:
        self._egress, self._ways, self._asked = egress, leading, asked
        self._ours, self.theirs = socket.socketpair()
        self._ours.setblocking(False)
        self._relay = Relay(self._judge, egress.ports.spawn)
        self._reached: dict[str, None] = {}
        self._refused: dict[str, str] = {}
        self._asking: dict[str, Task] = {}
        self._task: Task | None = None

    @property
    def environment(self) -> dict[str, str]:
        """What programs find the relay by."""
        here = f"http://127.0.0.1:{PORT}"
        names = ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY")
        near = dict.fromkeys(("no_proxy", "NO_PROXY"), "localhost,127.0.0.1,::1")
        return {**dict.fromkeys(names, here), **near, "NODE_USE_ENV_PROXY": "1"}

    @property
    def reached(self) -> tuple[str, ...]:
        """The hosts that were reached."""
        return tuple(self._reached)

    def notes(self) -> tuple[str, ...]:
        """What the model should know of hosts that were not reached, a line each."""
        return tuple(self._refused.values())

    def begin(self) -> None:
        """The command has been started; let go of its end."""
        self.theirs.close()
        self._task = self._egress.ports.spawn(self._serve(), "the way out of a sandbox")

    async def settle(self) -> None:
        """Wait a while for a person's word on what this command was the first to want, so that the model hears it."""
        waiting = [task for task in self._asking.values() if not task.done()]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._egress.wait_s):
                for task in waiting:
                    await _ended(task)

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await _ended(self._task)
        for end in (self._ours, self.theirs):
            end.close()
        await self._relay.close()

    async def _serve(self) -> None:
        listener = await _handed(self._ours)
        if listener is not None:
            await self._relay.serve(listener)

    def _judge(self, host: str, port: str) -> Way | Refusal:
        target = ways.target(host, port)
        if target is None:
            return Refusal(f"{host[:80]!r} port {port[:8]!r} is no plain host and port")
        ports, leave = self._egress.ports, ways.leave(self._ways, target)
        question: Question | None = None
        if leave == "no" or self._asked.marked:
            question = self._question(target)
            said = self._egress.may(question)
            if not said:
                return self._no(target, question, denied=said is False)
        dial = ports.open if leave == "listed" else ports.guarded

        def reached() -> None:
            if question is not None and str(target) not in self._reached:
                ports.used(question)
            self._reached[str(target)] = None
            self._refused.pop(str(target), None)

        def failed(error: Unavailable) -> None:
            if (error.details or {}).get("kind") == "refused":
                self._note(target, f"{error.message}; only {KEY} in the configuration can open it")

        return Way(dial, target.host, target.port, reached, failed)

    def _no(self, target: Target, question: Question, *, denied: bool) -> Refusal:
        """Refuse, and ask a person where that may help."""
        if not self._ways.asks:
            why = f"this turn has read text from outside, and nobody is asked ({KEY})" if self._asked.marked else ""
            why = why or f"it is not among the hosts that {self._asked.agent_id} may reach ({KEY})"
        elif denied:
            why = "the owner has said no"
        elif not public(target.host) and _is_address(target.host):
            why = f"it is no public address; only {KEY} in the configuration can open it"
        else:
            listed = ways.leave(self._ways, target) != "no"
            why = "this turn has read text from outside" if listed else "it is not among the hosts this agent may reach"
            task = self._egress.ask(question)
            why = f"{why}; the owner is being asked"
            self._follow(question, task)
        return Refusal(self._note(target, why))

    def _follow(self, question: Question, task: Task | None) -> None:
        name = question.subject
        if task is None:
            return
        self._asking[name] = task

        def heard(_: object) -> None:
            said = self._egress.may(question)
            if said is not None:
                word = "has allowed it: run the command again" if said else "has said no"
                self._refused[name] = f"{name} was refused, and the owner was asked. The owner {word}."

        task.add_done_callback(heard)

    def _note(self, target: Target, why: str) -> str:
        line = f"{target} was refused: {why}."
        if len(self._refused) < SHOWN or str(target) in self._refused:
            self._refused[str(target)] = line
        return line

    def _question(self, target: Target) -> Question:
        asked = self._asked
        covered = ways.covers(target, marked=asked.marked)
        why = ["a command in the sandbox wants to reach it; allow-once holds for an hour", _short(asked.command)]
        also = ""
        if asked.marked:
            why.insert(0, "this turn has read text from outside, which may want to send something there")
            also = ", also in turns that have read text from outside"
        face = json.dumps(["egress", asked.agent_id, covered])
        return Question(
            "egress",
            str(target),
            hashlib.sha256(face.encode()).hexdigest(),
            asked.session_key,
            asked.agent_id,
            asked.run_id,
            "",
            choices=("allow-once", "allow-always", "deny"),
            remembers=(
                f"commands of the agent {asked.agent_id} may reach {ways.words(target)}{also}, until you take it back"
            ),
            why=tuple(why),
            requester=asked.requester,
            covers=covered,
            once_ms=HOUR_MS,
            host=target.host,
        )


def _is_address(host: str) -> bool:
    return ":" in host or host.replace(".", "").isdigit()


def _short(command: str) -> str:
    line = " ".join(command.split())
    return f"the command: {line}" if len(line) <= 300 else f"the command begins: {line[:300]}…"


async def _ended(task: Task) -> None:
    gone = asyncio.get_running_loop().create_future()
    task.add_done_callback(lambda _: None if gone.done() else gone.set_result(None))
    await gone


async def _handed(ours: socket.socket) -> socket.socket | None:
    """The listening socket that the sandbox hands out; None when it ends without."""
    loop = asyncio.get_running_loop()
    ready = loop.create_future()
    loop.add_reader(ours.fileno(), lambda: None if ready.done() else ready.set_result(None))
    try:
        await ready
    finally:
        loop.remove_reader(ours.fileno())
    try:
        _, given, _, _ = socket.recv_fds(ours, 1, 1)
    except OSError:
        return None
    for spare in given[1:]:
        os.close(spare)
    if not given:
        return None
    listener = socket.socket(fileno=given[0])
    listener.setblocking(False)
    return listener
