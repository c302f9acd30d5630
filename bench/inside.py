"""Commands without a gateway around them, measured on the interpreter Garra runs on. inside.py COUNT

Prints one JSON object: what a `true` takes bare and in each sandbox that works here, what 200 MB of a command's output
cost the process that reads them (memory, and how late its loop was meanwhile), and what it takes to say whether one
call of a tool with a command may run: the layers of the policy, the line, its programs on the disk, the allowlist; and
what it takes to plan how a conversation of 10,000 entries is made smaller.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from garra.builtin.sandbox.bwrap.sandbox import Bubblewrap
from garra.builtin.sandbox.landlock.sandbox import Landlock
from garra.config.sections import Config
from garra.core import commands, compaction, execjudge, policy, summary
from garra.core.execjudge import Case
from garra.core.execplan import PATH, Settings, environment
from garra.core.execrules import Entry, Policy
from garra.core.ids import AgentId, SessionKey
from garra.core.messages import Assistant, Message, Text, ToolCall, ToolResult, User
from garra.domains.exec import judging
from garra.domains.exec.boxes import probe_by
from garra.domains.exec.supervisor import Supervisor
from garra.domains.tools.pipeline import Scope
from garra.io.clock import SystemClock
from garra.io.process.door import Limits, Programs, Start, compile_once
from garra.io.tasks import Tasks
from garra.runs import rights
from garra.sdk.ports import Launch
from garra.sdk.sandbox import Plan, Sandbox

MEGABYTES = 200
BEAT_S = 0.005
LINES = (
    "ls -la", "grep -n 'two words' notes.md | head -20", "cat a.txt && echo done || echo failed", "wc -l < /dev/null",
    "git status", "echo $(id)", "find . -name '*.py' | xargs grep -l TODO", "LANG=C sort -r names | uniq -c | sort -rn",
)  # fmt: skip
TOOLS = {"tools": {"profile": "coding", "deny": ["browser"], "byProvider": {"fake": {"deny": ["pdf"]}}}}


def started(sandbox: Sandbox, folder: str) -> Start:
    env = environment(folder, {}, terminal=False)
    made = sandbox.wrap(Plan(("/usr/bin/true",), folder, folder, env, limits=Limits().named()))
    return Start(made.argv, made.cwd, made.env, keep=not made.closed, wrapper=made.closed, limited=made.limited)


async def spawns(programs: Programs, boxes: list[Sandbox], folder: str, count: int) -> dict[str, float]:
    """Milliseconds of each kind of start, in turns: the median."""
    starts = {"bare": Start(("/usr/bin/true",), folder, limited=True)}
    starts |= {box.name: started(box, folder) for box in boxes}
    took: dict[str, list[float]] = {name: [] for name in starts}
    for _ in range(count):
        for name, start in starts.items():
            began = time.perf_counter()
            ended = await programs.run(start)
            took[name].append((time.perf_counter() - began) * 1e3)
            assert ended.code == 0, (name, ended)
    return {f"{name}_ms": round(sorted(values)[len(values) // 2], 2) for name, values in took.items()}


def resident_mib() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / (1 << 20)


async def flood(supervisor: Supervisor, folder: str) -> dict[str, float]:
    """What a command's flood of output costs who reads it."""
    late: list[float] = []
    most = 0.0

    async def beat() -> None:
        nonlocal most
        while True:
            began = time.perf_counter()
            await asyncio.sleep(BEAT_S)
            late.append((time.perf_counter() - began - BEAT_S) * 1e3)
            most = max(most, resident_mib())

    commands = supervisor.exec_for(SessionKey("agent:main:main"), folder, "operator", Settings())
    await commands.run(Launch("yes short | head -c 1000000"), lambda _: None)
    before = resident_mib()
    beating = asyncio.ensure_future(beat())
    began = time.perf_counter()
    ran = await commands.run(Launch(f"yes {'x' * 99} | head -c {MEGABYTES}000000", yield_ms=120_000), lambda _: None)
    took = time.perf_counter() - began
    beating.cancel()
    assert ran.exit_code == 0, ran
    late.sort()
    return {
        "flood_s": round(took, 2),
        "flood_rss_mib": round(max(0.0, most - before), 1),
        "flood_lag_p99_ms": round(late[int(len(late) * 0.99)], 2),
        "flood_kept_bytes": len(ran.output),
    }


def judgements(count: int) -> dict[str, float]:
    """Milliseconds of each, from the call's name and line to the word on it."""
    config, scope = Config.model_validate(TOOLS), Scope(AgentId("main"), SessionKey("agent:main:main"), "operator")
    entries = tuple(map(Entry, ("ls", "grep", "head", "cat", "echo", "wc", "uniq")))
    folders, took = PATH.split(":"), []
    commands.parse("ls")  # the grammar is loaded
    for _ in range(count):
        for line in LINES:
            began = time.perf_counter()
            policy.decide(policy.Face("exec", ("group:runtime",)), rights.layers(config, scope))
            command = commands.parse(line)
            called = (
                [] if isinstance(command, commands.Unparsed) else [each.argv[0] for each in commands.parts(command)]
            )
            case = Case(Policy("allowlist", "on-miss", None, entries), "/tmp", judging.located(called, folders, "/tmp"))
            execjudge.judge(command, case)
            took.append((time.perf_counter() - began) * 1e3)
    took.sort()
    return {"judged_ms": round(took[len(took) // 2], 3), "judged_p95_ms": round(took[int(len(took) * 0.95)], 3)}


def planned(count: int) -> dict[str, float]:
    """CPU milliseconds to plan how a history of 10,000 entries is made smaller: the cut, and the pieces to sum up."""
    messages: list[Message] = []
    for at in range(2_500):
        messages += [
            User((Text(f"question {at} " + "word " * 40),), at),
            Assistant((ToolCall(f"c{at}", "exec", {"command": "ls"}),), at),
            ToolResult(f"c{at}", "exec", (Text("line of output\n" * 100),), at),
            Assistant((Text("answer " * 60),), at),
        ]
    room, took = compaction.Room(compaction.limits(200_000), 2_000), []
    measure = compaction.Measure()
    measure.on(messages)
    history = compaction.History(messages, measure.sizes, measure.tokens(room, ""))
    for _ in range(count):
        began = time.thread_time()
        compaction.trim(history, room)
        plan = compaction.cut(history, room)
        assert plan is not None
        summary.pieces(messages[: plan.at], measure.sizes[: plan.at], room)
        took.append((time.thread_time() - began) * 1e3)
    return {"compaction_plan_ms": round(sorted(took)[len(took) // 2], 2)}


async def measured(count: int) -> dict[str, object]:
    programs = Programs()
    probe = probe_by(programs)
    kinds: list[Callable[..., Sandbox]] = [Bubblewrap, Landlock]
    made = [kind(probe=probe, compiled=compile_once) for kind in kinds]
    boxes = [box for box in made if (await box.available()).ok]
    with tempfile.TemporaryDirectory() as folder:
        async with Tasks() as tasks:
            clock = SystemClock()
            supervisor = Supervisor(programs, boxes, clock, tasks, new_id=lambda: os.urandom(4).hex())
            found: dict[str, object] = dict(await spawns(programs, boxes, folder, count))
            found |= await asyncio.to_thread(judgements, count)
            found |= await asyncio.to_thread(planned, count)
            found |= await flood(supervisor, folder)
            await supervisor.close()
    await programs.close()
    return found


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measured(int(sys.argv[1])))))
