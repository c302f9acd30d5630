"""Whether a command may run: what was parsed, what lies where, and what the owner allowed, in; one word out.

    Allow    it runs now. `plan` are the very programs to start, `None` where the text goes to a shell as it stands
    Ask      a person is asked first; then the same holds
    Deny     it does not run

An entry of the allowlist names a program. One that can run others, or write where it is told, is never let through by
its name alone (`core.programs`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, fields
from functools import lru_cache
from typing import Final

from garra.core import commands, execrules, glob, programs
from garra.core.approvals import Choice
from garra.core.commands import Command, Joint, Redirection, Simple, Unparsed
from garra.core.execrules import Entry, Policy
from garra.core.value import frozen

Identity = tuple[int, int, int, int]
"""A file as it was seen: device, inode, time of its last change in nanoseconds, size."""


@frozen
class Found:
    """A program where it lies: `path` as it was found, absolute; `real` with all links followed."""

    path: str
    real: str
    identity: Identity


@frozen
class SafeBins:
    """The filters that are let through: `names`, where they must lie, and the owner's profiles for further ones."""

    names: frozenset[str] = frozenset(programs.USUAL)
    folders: tuple[str, ...] = programs.TRUSTED
    profiles: Mapping[str, programs.Profile] = field(default_factory=dict)


@frozen
class Case:
    """What a command is judged by. `found` has its programs by the name they are called by; one that is not there was
    not found. `cwd` is the real folder, `home` the owner's, for `~` in patterns. `env` are the names of variables that
    the call sets for all of it.
    """

    policy: Policy
    cwd: str
    found: Mapping[str, Found] = field(default_factory=dict)
    safe: SafeBins = SafeBins()
    home: str = "/"
    now_ms: int = 0
    env: tuple[str, ...] = ()


@frozen
class Step:
    """One program to start: by `path`, which must still be the file it was; and what joins it to the next one."""

    path: str
    argv: tuple[str, ...]
    identity: Identity
    env: tuple[tuple[str, str], ...] = ()
    redirections: tuple[Redirection, ...] = ()
    joint: Joint | None = None


Plan = tuple[Step, ...]


@frozen
class Allow:
    """`exact`: somebody said yes to these very programs with these very arguments."""

    plan: Plan | None = None
    exact: bool = False


@frozen
class Ask:
    """`reasons` are why, a line each. `entries` are what a lasting yes adds to the allowlist, which `remembers` says in
    words; there are none where none is offered. `fallback` is what holds when nobody answers.
    """

    reasons: tuple[str, ...]
    plan: Plan | None = None
    choices: tuple[Choice, ...] = ("allow-once", "deny")
    entries: tuple[Entry, ...] = ()
    remembers: str = ""
    fallback: Choice = "deny"


@frozen
class Deny:
    reason: str


Judgement = Allow | Ask | Deny

HARMLESS: Final = frozenset({"TERM", "COLORTERM", "NO_COLOR", "FORCE_COLOR", "LANG", "LANGUAGE", "TZ"})
"""Variables that a line may set for a program; those of `LC_` too."""
NOWHERE: Final = "/dev/null"


def judge(command: Command, case: Case) -> Judgement:
    """Where the policy says nothing, nothing is allowed by itself and a miss is asked."""
    policy = case.policy
    security, ask = policy.security or "allowlist", policy.ask or "on-miss"
    if security == "deny":
        return Deny("commands are switched off here (security deny)")
    if security == "full" and ask != "always":
        return Allow()
    reasons = misses(command, case)
    plan = planned(command, case)
    if ask != "always" and not reasons:
        return Allow(plan, exact=_is_certain(command, case))
    if ask == "off":
        return Deny("; ".join(reasons))
    lasting: tuple[Entry, ...] = ()
    if plan and not _given(case) and ask != "always" and not isinstance(command, Unparsed):
        lasting = _lasting(commands.parts(command), case)
    fallback = _fallback(policy, missed=bool(reasons))
    if not lasting:
        return Ask(reasons or ("every command is asked for (ask always)",), plan, fallback=fallback)
    choices: tuple[Choice, ...] = ("allow-once", "allow-always", "deny")
    return Ask(reasons, plan, choices, lasting, remembered(lasting, case.cwd), fallback)


def _fallback(policy: Policy, *, missed: bool) -> Choice:
    """Nobody answered: yes only where the owner said so, and never more than the policy itself allows."""
    if policy.fallback in {None, "deny"}:
        return "deny"
    within = not missed or (policy.fallback == "full" and policy.security == "full")
    return "allow-once" if within else "deny"


def misses(command: Command, case: Case) -> tuple[str, ...]:
    """Why the allowlist does not cover a command, a line each; none when it covers all of it."""
    if isinstance(command, Unparsed):
        return (f"it is more than programs with plain arguments: {command.reason}",)
    parts = commands.parts(command)
    return (*_given(case), *dict.fromkeys(why for part in parts if (why := _miss(part, case))))


def _is_certain(command: Command, case: Case) -> bool:
    """Whether an entry holds the exact arguments of each program."""
    parts = () if isinstance(command, Unparsed) else commands.parts(command)
    return bool(parts) and all(_has_exact(part, case) for part in parts)


def _has_exact(part: Simple, case: Case) -> bool:
    found = case.found.get(part.argv[0])
    return found is not None and any(
        _is_exact(entry.arg_pattern, part.argv[1:]) and _entry_miss(entry, part, found, case) == ""
        for entry in case.policy.allowlist
    )


def _given(case: Case) -> tuple[str, ...]:
    """What the call sets that could make another thing of a program."""
    return tuple(f"it is given {name[:80]}" for name in case.env if not _is_harmless(name))


def _is_harmless(name: str) -> bool:
    return name in HARMLESS or name.startswith("LC_")


def _miss(part: Simple, case: Case) -> str:
    name = part.argv[0]
    found = case.found.get(name)
    if name in programs.BUILTINS:
        return f"{name} is of the shell itself"
    if found is None:
        return f"{name[:80]} is no program on the search path"
    if odd := _odd(part):
        return odd
    whys = [_entry_miss(entry, part, found, case) for entry in case.policy.allowlist]
    if "" in whys or _is_filter(part, found, case.safe):
        return ""
    return next(filter(None, reversed([why for why in whys if why])), f"{found.path} is not on the allowlist")


def _odd(part: Simple) -> str:
    """What a line may not do besides: set variables that steer, send output to files."""
    for name, _ in part.env:
        if not _is_harmless(name):
            return f"it sets {name[:80]}"
    for each in part.redirections:
        if not (each.target == NOWHERE or each in (Redirection(2, "&1"), Redirection(1, "&2"))):
            return f"it redirects {'to' if each.write else 'from'} {each.target[:200]}"
    return ""


def _entry_miss(entry: Entry, part: Simple, found: Found, case: Case) -> str | None:
    """Empty when the entry covers the program; else why it does not, None where it is about another one."""
    name, *arguments = part.argv
    if not _names(entry.pattern, name, found, case.home):
        return None
    if entry.until_ms and entry.until_ms <= case.now_ms:
        return f"what was allowed of {found.path} is over"
    if entry.cwd and entry.cwd != case.cwd:
        return f"{found.path} is allowed in {entry.cwd} only"
    if not execrules.fits(entry.arg_pattern, arguments):
        return f"{found.path} is allowed with other arguments only"
    if _is_exact(entry.arg_pattern, arguments):
        return ""
    names = called(name, found)
    if programs.can_do_anything(*names):
        return f"{found.path} can run or write anything: an entry for it must hold its exact arguments"
    wrong = programs.guarded(names, arguments)
    return f"{found.path}: {wrong}" if wrong else ""


def called(name: str, found: Found) -> tuple[str, ...]:
    """All names a program goes by; of a file that is many programs the one it is called by counts."""
    own = tuple(path.rpartition("/")[2] for path in (name, found.path))
    real = found.real.rpartition("/")[2]
    many = real in programs.MANY and programs.MANY.isdisjoint(own)
    return own if many else (*own, real)


def _names(pattern: str, name: str, found: Found, home: str) -> bool:
    """Whether a pattern is of this program: a name of what was called by its bare name, a path of what lies there."""
    if "/" not in pattern:
        return "/" not in name and _fits(pattern, name)
    if pattern.startswith("~/"):
        pattern = home.rstrip("/") + pattern[1:]
    return pattern.startswith("/") and (_fits(pattern, found.path) or _fits(pattern, found.real))


def _fits(pattern: str, path: str) -> bool:
    return pattern == path or (not _PATTERN.isdisjoint(pattern) and _glob(pattern)(path.lstrip("/")))


_PATTERN: Final = frozenset("*?[{")


@lru_cache(1024)
def _glob(pattern: str) -> Callable[[str], bool]:
    return glob.compiled(pattern)


_LITERAL: Final = frozenset("\\^$.|?*+()[]{}")


@lru_cache(256)
def _spelled(pattern: str) -> str | None:
    """The one text that an expression stands for; None where it stands for more."""
    if not (pattern.startswith("^") and pattern.endswith("$")) or len(pattern) < 2:
        return None
    text, escaped = "", False
    for char in pattern[1:-1]:
        if escaped and char.isalnum():
            return None
        if char == "\\" and not escaped:
            escaped = True
            continue
        if char in _LITERAL and not escaped:
            return None
        text, escaped = text + char, False
    return None if escaped else text


def _is_exact(pattern: str, arguments: Sequence[str]) -> bool:
    """Whether a pattern that fits these arguments fits no others."""
    if pattern.startswith(execrules.EXACT):
        return True
    spelled = _spelled(pattern)
    return spelled is not None and list(arguments) == (spelled.split(" ") if spelled else [])


def _is_filter(part: Simple, found: Found, safe: SafeBins) -> bool:
    """Whether it is one of the filters, with a filter's arguments, where filters lie."""
    name, *arguments = part.argv
    if name not in safe.names or found.path.rpartition("/")[0] not in safe.folders:
        return False
    profile = programs.PROFILES.get(name)
    if profile is None:
        own = safe.profiles.get(name)
        if own is None or programs.can_do_anything(*called(name, found)) or name in programs.GUARDED:
            return False
        profile = own
    elif programs.can_do_anything(*(each for each in called(name, found) if each not in programs.PROFILES)):
        return False
    return not programs.fault(profile, arguments)


def planned(command: Command, case: Case) -> Plan | None:
    """The programs to start, in their order; None where only a shell can do it."""
    if isinstance(command, Unparsed):
        return None
    steps: list[Step] = []
    parts = commands.parts(command)
    joints: tuple[Joint, ...] = () if isinstance(command, Simple) else command.joints
    for at, part in enumerate(parts):
        found = case.found.get(part.argv[0])
        if found is None or part.argv[0] in programs.BUILTINS or _odd(part):
            return None
        joint = joints[at] if at < len(joints) else None
        steps.append(Step(found.path, part.argv, found.identity, part.env, part.redirections, joint))
    return tuple(steps)


def _lasting(parts: Sequence[Simple], case: Case) -> tuple[Entry, ...]:
    """What would let this very command through from now on: these arguments, in this folder."""
    missing = [part for part in parts if _miss(part, case)]
    entries = (
        Entry(case.found[part.argv[0]].path, execrules.exact(part.argv[1:]), case.cwd, source="allow-always")
        for part in missing
    )
    return tuple(dict.fromkeys(entries))


def remembered(entries: Sequence[Entry], cwd: str) -> str:
    """What a lasting yes lets through, in words."""
    paths = ", ".join(dict.fromkeys(entry.pattern for entry in entries))
    own = tuple(entry.pattern for entry in entries if entry.pattern.startswith(f"{cwd.rstrip('/')}/"))
    open_ended = own or any(programs.can_do_anything(entry.pattern) for entry in entries)
    told = f"{paths} with exactly these arguments, in {cwd}, until you take it back"
    return f"{told}; what is in the files it then runs may have changed" if open_ended else told


@frozen
class Bound:
    """All that a yes holds for: `words` are the text or the arguments, `files` what every file involved was."""

    words: tuple[str, ...]
    cwd: str
    cwd_identity: tuple[int, int]
    host: str
    env: tuple[tuple[str, str], ...]
    files: tuple[tuple[str, str, Identity], ...]
    session: str
    requester: str
    terminal: bool = False

    def digest(self) -> str:
        """The same only when all of it is the same."""
        parts = [getattr(self, each.name) for each in fields(self)]
        return hashlib.sha256(json.dumps(parts, separators=(",", ":")).encode()).hexdigest()
