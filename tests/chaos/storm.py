"""A gateway over three models that fail at random, and what must hold all the same.

Every turn is answered, or says in a line why not; no request has an invalid history; no tool runs twice; what the
ledger counted is what the models' server sent.
"""

from __future__ import annotations

import asyncio
import json
import random
import sqlite3
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from garra.core.resuming import NOTE
from garra.testing.model_server import Cut, Fail, Reply, Say, Seen, Silence, Use, script
from tests.e2e.resident import Client, Resident, StrictModel, words

FAULTS: Mapping[str, Callable[[random.Random], Reply]] = {
    "429": lambda dice: Fail(429, "slow down", {} if dice.random() < 0.1 else {"retry-after-ms": "200"}),
    "529": lambda _: Fail(529, "overloaded"),
    "400": lambda _: Fail(400, "temperature: not allowed"),
    "cut": lambda _: Cut("half of an answer "),
    "cut at once": lambda _: Cut(""),
    "cut politely": lambda _: Cut("half of an answer ", politely=True),
    "silent": lambda _: Silence(4.0),
    "overflow": lambda _: Fail(400, "this model's maximum context length is 8192 tokens"),
}
MODELS = ("a", "b", "c")
SESSION_TURNS = 25
"""After so many turns a new conversation begins."""


@dataclass
class Storm(StrictModel):
    """Fails `share` of all requests. `sent` counts what was sent whole: calls and tokens by model."""

    dice: random.Random = field(default_factory=random.Random)
    share: float = 0.3
    refused: list[str] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)
    sent: Counter[tuple[str, str]] = field(default_factory=Counter)

    async def _answer(self, seen: Seen, writer: asyncio.StreamWriter) -> bool:
        if seen.method != "POST":
            return await super()._answer(seen, writer)
        body, refusals = seen.body, len(self.refused)
        reply = self._pick(body)
        self.replies[:] = [reply]
        self.requests.clear()
        again = await super()._answer(seen, writer)
        if isinstance(reply, Say | Use) and len(self.refused) == refusals:
            usage = (11, 5) if isinstance(reply, Use) else reply.usage or (0, 0)
            for name, count in (("calls", 1), ("input", usage[0]), ("output", usage[1])):
                self.sent[str(body["model"]), name] += count
        return again

    def _pick(self, body: Any) -> Reply:
        if self.dice.random() < self.share:
            name = self.dice.choice(list(FAULTS))
            self.faults[name] += 1
            return FAULTS[name](self.dice)
        try:
            resumed = body["messages"][-1].get("content") == NOTE
            reply = Say("and its other half.") if resumed else script(body)
        except ValueError:  # it is asked to sum up, and the words that ask for a tool stand among others
            reply = Say("They counted turns.")
        if isinstance(reply, Use):
            return replace(reply, id=f"call_{self.dice.randrange(10**9)}")
        usage = (self.dice.randrange(1, 5_000), self.dice.randrange(1, 500))
        return replace(reply, usage=usage) if isinstance(reply, Say) else reply


@dataclass
class Outcome:
    """What came of it; `broken` says what did not hold."""

    answered: int = 0
    explained: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    calls: int = 0
    effects: int = 0
    broken: list[str] = field(default_factory=list)


def program(root: Path, url: str) -> Resident:
    """A gateway with three models of three providers, each with its fallbacks."""
    made = Resident(root)
    row = {"api": "openai-completions", "baseUrl": f"{url}/v1", "apiKey": "sk-of-the-storm", "timeoutSeconds": 1}
    cost = {"input": 1, "output": 2}
    made.config["models"]["providers"] = {
        name: {**row, "models": [{"id": name, "name": name, "cost": cost}]} for name in MODELS
    }
    made.config["agents"] = {"defaults": {"model": {"primary": "a/a", "fallbacks": ["b/b", "c/c"]}}}
    made.write()
    return made


async def storm(root: Path, turns: int, seed: int, *, tools: bool = True, workers: int = 8) -> Outcome:
    """Run `turns` turns, and judge."""
    model = Storm(dice=random.Random(seed))
    async with model:
        made = program(root, model.url)
        await made.start()
        outcome = Outcome()
        todo = iter(range(turns))
        try:
            await asyncio.gather(*(_work(made, outcome, todo, worker, tools=tools) for worker in range(workers)))
        finally:
            code = await made.stop()
        if code:
            outcome.broken.append(f"the gateway ended with {code}: {made.log()[-500:]}")
        outcome.broken += _faults(made)
        outcome.faults = model.faults
        outcome.broken += [f"a history was invalid: {line}" for line in model.refused]
        _count(made, model, outcome)
        _look(made, outcome)
        return outcome


async def _work(made: Resident, outcome: Outcome, todo: Any, worker: int, *, tools: bool) -> None:
    done = 0
    async with made.client() as client:
        for turn in todo:
            session = f"agent:main:storm-{worker}-{done // SESSION_TURNS}"
            done += 1
            text = (
                f'tool:exec {{"command": "echo t{turn} >> effects.txt"}}' if tools and turn % 5 == 0 else f"turn {turn}"
            )
            await _turn(client, outcome, session, text)
            client.events.clear()


async def _turn(client: Client, outcome: Outcome, session: str, text: str) -> None:
    try:
        async with asyncio.timeout(60):
            last = await client.say(text, session)
    except TimeoutError:
        outcome.broken.append(f"{session}: {text!r} had no end within a minute")
        return
    if last["state"] == "final" and words(last).strip():
        outcome.answered += 1
    elif "fault of Garra's own" in str(last):
        outcome.broken.append(f"{session}: {text!r} met a fault of our own")
    elif last["state"] == "error" and str(last.get("errorMessage") or "").strip():
        outcome.explained[_kind(str(last["errorMessage"]))] += 1
    else:
        outcome.broken.append(f"{session}: {text!r} ended without a word: {last}")


def _faults(made: Resident) -> list[str]:
    """Faults of our own, as the log has them, each once."""
    lines = (line for path in (made.state / "logs").glob("*.log") for line in path.read_text().splitlines())
    found = (json.loads(line) for line in lines if '"Traceback' in line)
    return [f"in the log: {text[-600:]}" for text in dict.fromkeys(str(each.get("error")) for each in found)]


def _kind(line: str) -> str:
    return line.split("(")[0].strip()[:60]


def _count(made: Resident, model: Storm, outcome: Outcome) -> None:
    """The ledger against what was sent."""
    query = "SELECT model, count(*), sum(input + cache_read + cache_write), sum(output) FROM usage_calls GROUP BY model"
    with sqlite3.connect(made.state / "state.db") as db:
        rows = db.execute(query).fetchall()
    for name, calls, given, out in rows:
        outcome.calls += calls
        sent = tuple(model.sent[name, what] for what in ("calls", "input", "output"))
        if (calls, given, out) != sent:
            outcome.broken.append(f"model {name}: the ledger has {(calls, given, out)}, the server sent {sent}")
    if {row[0] for row in rows} != {name for name, _ in model.sent}:
        outcome.broken.append(f"the ledger knows {[row[0] for row in rows]}, the server sent {dict(model.sent)}")


def _look(made: Resident, outcome: Outcome) -> None:
    """What the tools did, each once."""
    path = made.state / "workspace" / "effects.txt"
    lines = path.read_text().split() if path.exists() else []
    outcome.effects = len(lines)
    outcome.broken += [f"{line} was done {times} times" for line, times in Counter(lines).items() if times > 1]
