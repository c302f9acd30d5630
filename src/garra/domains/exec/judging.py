"""Judges a command just before it starts: where its programs lie, what the owner allowed, what a person says.

What a person said holds for what he was shown. So everything that was looked at is looked at again afterwards, and
where anything is another than it was (a file, a folder, a link, a variable), nothing runs.
"""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from glob import iglob
from itertools import islice
from typing import Final

from garra.core import commands, execjudge, programs, taint
from garra.core.approvals import Answer, Question
from garra.core.commands import Command, Simple, Unparsed
from garra.core.errors import ToolFailed
from garra.core.execjudge import Allow, Ask, Bound, Case, Deny, Found, Identity, SafeBins, Step
from garra.core.execplan import PATH, Settings
from garra.core.value import frozen
from garra.domains.exec.errand import Errand, Settled
from garra.io.process import plumbing
from garra.sdk.sandbox import Plan

CHANGED: Final = (
    "No command was run: what it would run is no longer what the person was shown (a program or a file, the folder, or "
    "the environment has changed since). Look at what changed, then call again."
)
NOBODY: Final = Answer("deny", reason="nobody can be asked here")


@frozen
class Seen:
    """A command as it was looked at."""

    plan: Plan
    command: Command
    case: Case
    bound: str


async def settle(errand: Errand) -> Settled:
    """What is to start. Raises ToolFailed when it may not; the model reads why."""
    seen = await asyncio.to_thread(look, errand)
    match execjudge.judge(seen.command, seen.case):
        case Deny(reason):
            raise _refused(reason)
        case Allow(steps) as allowed if not errand.why or _is_listed(errand, seen, allowed):
            return await asyncio.to_thread(_settled, seen, steps, shut_in=errand.shut_in)
        case judged:
            ask = judged if isinstance(judged, Ask) else _marked(judged, errand.launch.command)
            question = _question(errand, seen, ask)
            if errand.why:
                covers = f"{errand.ground.settings.covers}:{seen.bound}" if isinstance(judged, Allow) else ""
                question = replace(question, why=(*errand.why, *question.why), covers=covers, fallback="deny")
            answer = await errand.asker.ask(question) if errand.asker else NOBODY
            if not answer.allowed:
                raise _refused(answer.reason or "it was not approved")
            again = await asyncio.to_thread(look, errand)
            if again.bound != question.bound:
                raise ToolFailed(CHANGED, details={"kind": "changed"})
            if isinstance(now := execjudge.judge(again.command, again.case), Deny):
                raise _refused(now.reason)
            return await asyncio.to_thread(_settled, again, ask.plan, shut_in=errand.shut_in)


def _refused(reason: str) -> ToolFailed:
    return ToolFailed(f"No command was run: {reason}.", details={"kind": "denied", "reason": reason})


def _is_listed(errand: Errand, seen: Seen, allowed: Allow) -> bool:
    """Whether the allowlist lets it through in any turn: it holds the command word for word, or the owner says so."""
    settings = errand.ground.settings
    return (allowed.exact and not settings.asks) or (settings.listed and seen.case.policy.security == "allowlist")


def _marked(allowed: Allow, command: str) -> Ask:
    """What the rules let through, in a turn that has read text from outside: a person decides."""
    return Ask((), allowed.plan, ("allow-once", "allow-always", "deny"), remembers=taint.remembers("exec", command))


def _question(errand: Errand, seen: Seen, ask: Ask) -> Question:
    launch, plan = errand.launch, seen.plan
    set_for_it = tuple(f"with {name}={value!r}" for name, value in sorted(launch.env.items()))
    parsed = seen.command if isinstance(seen.command, Simple) else None
    return Question(
        "exec",
        launch.command,
        seen.bound,
        errand.session_key,
        errand.agent_id,
        errand.run_id,
        launch.call_id,
        choices=ask.choices,
        remembers=ask.remembers,
        why=(*ask.reasons, *set_for_it),
        requester=errand.requester,
        argv=parsed.argv if parsed else plan.argv,
        cwd=plan.workdir,
        host="sandbox" if errand.shut_in else "gateway",
        env=tuple(sorted(launch.env)),
        fallback=ask.fallback,
        entries=ask.entries,
        tool="exec",
    )


def _settled(seen: Seen, steps: Sequence[Step] | None, *, shut_in: bool) -> Settled:
    """The programs as they were judged, by their paths; in a sandbox, where our own script is not, by a shell that is
    given each word in quotes; and the text itself where a person let it through whole.
    """
    plan = seen.plan
    if steps is None:
        return Settled(plan, plan.argv)
    first = steps[0]
    if len(steps) == 1 and not first.env and not first.redirections:
        return Settled(plan, (first.path, *first.argv[1:]), "" if shut_in else _written(first.identity))
    if shut_in:
        return Settled(plan, (plan.argv[0], "-c", " ".join(_quoted(step) for step in steps)))
    return Settled(plan, plumbing.line([_program_of(step) for step in steps]))


def _written(identity: Identity) -> str:
    return ":".join(map(str, identity))


def _program_of(step: Step) -> plumbing.Program:
    variables = [f"{name}={value}" for name, value in step.env]
    sent = [f"{each.fd}>{each.target}" for each in step.redirections]
    return step.joint or ";", _written(step.identity), step.path, variables, sent, [step.path, *step.argv[1:]]


def _quoted(step: Step) -> str:
    variables = [f"{name}={shlex.quote(value)}" for name, value in step.env]
    words = [shlex.quote(word) for word in (step.path, *step.argv[1:])]
    sent = [f"{each.fd}{'>' if each.write else '<'}{each.target}" for each in step.redirections]
    return " ".join((*variables, *words, *sent, *([step.joint] if step.joint else [])))


def look(errand: Errand) -> Seen:
    """Look at everything that the command is judged by. Blocks. Raises ToolFailed where it cannot start at all."""
    plan = errand.plan()
    command = commands.parse(errand.launch.command)
    folders = tuple(searched(errand, plan.workspace))
    called = () if isinstance(command, Unparsed) else (part.argv[0] for part in commands.parts(command))
    found = located(called, folders, plan.workdir)
    case = Case(
        errand.policy, plan.workdir, found, _safe(errand.ground.settings), errand.ground.host.home, errand.now_ms(),
        tuple(sorted(errand.launch.env)),
    )  # fmt: skip
    return Seen(plan, command, case, _bound(errand, plan, command, case).digest())


def searched(errand: Errand, workspace: str) -> Iterator[str]:
    """The folders where a program is looked for by its name. None that anybody may write, or that the agent can."""
    own = () if errand.shut_in else errand.ground.host.path
    for folder in dict.fromkeys((*errand.ground.settings.path, *PATH.split(":"), *own)):
        real = os.path.realpath(folder)
        below = real == workspace or real.startswith(workspace.rstrip("/") + "/")
        if folder.startswith("/") and not below and not _anybody_s(real):
            yield folder


def _anybody_s(folder: str) -> bool:
    try:
        return bool(os.stat(folder).st_mode & stat.S_IWOTH)  # noqa: PTH116
    except OSError:
        return True


def located(names: Iterable[str], folders: Sequence[str], cwd: str) -> Mapping[str, Found]:
    """Where programs lie, by the name they are called by: a bare one in `folders`, a path from `cwd`."""
    found: dict[str, Found] = {}
    for name in names:
        here = os.path.normpath(os.path.join(cwd, name))  # noqa: PTH118
        paths = [here] if "/" in name else [f"{each}/{name}" for each in folders]
        for path in paths:
            if seen := _program(path):
                found[name] = Found(path, os.path.realpath(path), seen)
                break
    return found


def _program(path: str) -> Identity | None:
    seen = _file(path)
    return seen if seen is not None and os.access(path, os.X_OK) else None


def _file(path: str) -> Identity | None:
    """What a regular file is now; None where there is none."""
    try:
        found = os.stat(path)  # noqa: PTH116
    except (OSError, ValueError):
        return None
    return (found.st_dev, found.st_ino, found.st_ctime_ns, found.st_size) if stat.S_ISREG(found.st_mode) else None


def _bound(errand: Errand, plan: Plan, command: Command, case: Case) -> Bound:
    """All that a yes to this holds for."""
    files = [(name, found.path, found.identity) for name, found in case.found.items()]
    words = commands.words(errand.launch.command)
    if isinstance(command, Unparsed):
        named = located((word for word in words if "/" not in word), tuple(searched(errand, plan.workspace)), "/")
        files += [(name, found.path, found.identity) for name, found in named.items()]
    else:
        words = tuple(dict.fromkeys(word for part in commands.parts(command) for word in part.argv))
    files += _operands(_wider(words, plan.workdir), plan.workdir)
    folder = os.stat(plan.workdir)  # noqa: PTH116
    return Bound(
        (errand.launch.command,),
        plan.workdir,
        (folder.st_dev, folder.st_ino),
        "sandbox" if errand.shut_in else "gateway",
        tuple(sorted(errand.launch.env.items())),
        tuple(files),
        errand.session_key,
        errand.requester,
        errand.launch.pty,
    )


def _wider(words: Sequence[str], cwd: str) -> tuple[str, ...]:
    """The words, those within them (what stands in `sh -c '…'`), and the files that a pattern among them stands for."""
    inner = islice((found[0] for word in words for found in _WITHIN.finditer(word)), _MOST_WITHIN)
    meant = (
        path
        for folder in _folders(words, cwd)
        for word in words
        if 0 < sum(not _PATTERN.isdisjoint(part) for part in word.split("/")) <= _MOST_PATTERNS
        for path in sorted(islice(iglob(os.path.join(folder, word)), _MOST_MATCHES))  # noqa: PTH118, PTH207
    )
    return tuple(dict.fromkeys((*words, *inner, *meant)))


def _operands(words: Sequence[str], cwd: str) -> Iterator[tuple[str, str, Identity]]:
    """The files among the words that may be run: every one where something that runs files is called, else those that
    are programs themselves. What a program opens of its own accord is not known here.
    """
    every = any(programs.can_do_anything(word) for word in words)
    folders = tuple(_folders(words, cwd))
    names = (name for word in words for name in dict.fromkeys((word, word.partition("=")[2])) if name)
    for name in names:
        for path in dict.fromkeys(os.path.join(folder, name) for folder in folders):  # noqa: PTH118
            seen = _file(path)
            if seen is not None and (every or os.access(path, os.X_OK)):
                yield name, os.path.realpath(path), seen


def _folders(words: Sequence[str], cwd: str) -> Iterator[str]:
    """Where the names in a line may be meant from: its folder, and those that the line may go to."""
    found = [cwd]
    if not _MOVES.isdisjoint(words):
        for word in words:
            paths = [os.path.join(each, word) for each in found]  # noqa: PTH118
            found += [each for each in paths if len(found) < _MOST_FOLDERS and os.path.isdir(each)]  # noqa: PTH112
    yield from dict.fromkeys(found)


_WITHIN: Final = re.compile(r"""[^\s'"`;|&<>(),\[\]{}=$]+""")
_MOST_WITHIN: Final = 8_192
_PATTERN: Final = frozenset("*?[")
_MOST_MATCHES: Final = 256
_MOST_PATTERNS: Final = 2
"""Parts of one path; more would walk through the whole disk."""
_MOVES: Final = frozenset({"cd", "pushd", "-C", "--chdir", "--directory"})
_MOST_FOLDERS: Final = 16


def _safe(settings: Settings) -> SafeBins:
    names = frozenset(programs.USUAL if settings.safe_bins is None else settings.safe_bins)
    own = {name: programs.custom(given) for name, given in settings.safe_profiles.items()}
    return SafeBins(names, (*programs.TRUSTED, *settings.safe_folders), own)
