"""What is let through, against bash: `python -m tests.fuzz.against_bash --lines 100000 --seed 1`.

Lines are judged under an allowlist. Each that is let through runs twice in a sandbox where every program only writes
down what it was called with: once as bash reads the text, once as it was judged. Both must have called the same
programs with the same words and variables, all of them listed, and left no file. `--seed` begins a range: every
thousand lines have a seed of their own, and a line that is read differently is told with its seed.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from garra.core import execjudge
from garra.core.commands import Unparsed, parse
from garra.core.execjudge import Allow, Case, Found, Plan
from garra.core.execrules import Entry, Policy
from garra.domains.exec import judging
from garra.io.process import plumbing
from tests.domains.exec.smuggling import ALLOWED
from tests.fuzz import inside
from tests.fuzz.grammar import Grammar
from tests.fuzz.shell_lines import OTHERS

A_SEED = 1_000
"""Lines of one seed."""
VARIABLES = ("LANG", "TZ", "NO_COLOR", "LC_ALL", "TERM", "IFS")
RECORDER = '#!/mnt/sh\nprintf \'%s\\0\' "$0" "$@" {} >/mnt/out/$$\nexit $(($# % 2))\n'.format(
    " ".join(f'"{name}=${{{name}-}}"' for name in VARIABLES if name != "IFS")
)
"""Writes down name, words and variables; whether it succeeds depends on how many words it got."""
NO_BUILTINS = "enable -n echo printf test [ true false kill pwd\n"


@dataclass
class Seeded:
    """Chooses by a seed."""

    chance: random.Random

    def pick(self, among: Sequence[str]) -> str:
        return among[int(self.chance.random() * len(among))]

    def count(self, low: int, high: int) -> int:
        return low + int(self.chance.random() * (high + 1 - low))


def lines(seed: int, count: int = A_SEED) -> Iterator[str]:
    grammar = Grammar(Seeded(random.Random(seed)))
    for _ in range(count):
        yield grammar.line()


class Recorders:
    """The sandbox. `with Recorders() as made:` starts it."""

    def __enter__(self) -> Recorders:
        self.folder = Path(tempfile.mkdtemp(prefix="recorders-"))
        programs = self.folder / "bin"
        programs.mkdir()
        found: dict[str, Found] = {}
        for name in (*ALLOWED, *OTHERS):
            file = programs / name
            file.write_text(RECORDER)
            file.chmod(0o755)
            seen = file.stat()
            identity = (seen.st_dev, seen.st_ino, seen.st_ctime_ns, seen.st_size)
            found |= {
                path: Found(f"/usr/bin/{name}", f"/usr/bin/{name}", identity) for path in (name, f"/usr/bin/{name}")
            }
            found[f"/bin/{name}"] = Found(f"/bin/{name}", f"/usr/bin/{name}", identity)
        entries = tuple(Entry(f"/usr/bin/{name}") for name in ALLOWED)
        self.case = Case(Policy("allowlist", "off", None, entries), "/mnt/w", found)
        (self.folder / "env").write_text(NO_BUILTINS)
        self.process = subprocess.Popen(self._argv(programs), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self

    def _argv(self, programs: Path) -> list[str]:
        bash, dash = (str(Path(str(shutil.which(name))).resolve()) for name in ("bash", "dash"))
        binds = {bash: "/mnt/bash", dash: "/mnt/sh", str(self.folder / "env"): "/mnt/env"}
        return [
            str(shutil.which("bwrap")), "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--dev", "/dev",
            "--proc", "/proc", "--tmpfs", "/mnt", *(word for pair in binds.items() for word in ("--ro-bind", *pair)),
            "--dir", "/mnt/w", "--dir", "/mnt/out", "--ro-bind", str(programs), "/usr/bin", "--tmpfs", "/usr/sbin",
            "--tmpfs", "/usr/local/bin", "--chdir", "/mnt/w", sys.executable, "-I", inside.__file__,
        ]  # fmt: skip

    def __exit__(self, *_: object) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(20)
        shutil.rmtree(self.folder)

    def judged(self, text: str) -> Plan | None:
        """What is let through. Raises AssertionError where that starts what is not listed."""
        command = parse(text)
        found = execjudge.judge(command, self.case)
        if not isinstance(found, Allow):
            return None
        assert not isinstance(command, Unparsed), text
        assert found.plan, text
        return found.plan

    def differs(self, text: str, plan: Plan) -> str:
        """How bash's reading of a line is another than ours; empty when both called the same."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"text": text, "argv": started(plan)}) + "\n")
        self.process.stdin.flush()
        (shell, left), (ours, ours_left) = json.loads(self.process.stdout.readline())
        listed = {f"{folder}/{name}" for name in ALLOWED for folder in ("/usr/bin", "/bin")}
        if left or ours_left:
            return f"files: {left} {ours_left}"
        if any(call[0] not in listed for call in shell):
            return f"bash called what is not listed: {shell}"
        return "" if shell == ours else f"bash: {shell}; judged: {ours}"


def started(plan: Plan) -> list[str]:
    """What the supervisor starts for it."""
    first = plan[0]
    if len(plan) == 1 and not first.env and not first.redirections:
        return [first.path, *first.argv[1:]]
    return list(plumbing.line([judging._program_of(step) for step in plan]))


def tried(text: str, recorders: Recorders) -> tuple[bool, str]:
    """Whether it is let through, and how it is read differently."""
    plan = recorders.judged(text)
    return plan is not None, recorders.differs(text, plan) if plan is not None else ""


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--lines", type=int, default=100_000)
    arguments.add_argument("--seed", type=int, default=1)
    asked = arguments.parse_args()
    parse("ls")  # the grammar is loaded
    seeds = range(asked.seed, asked.seed + -(-asked.lines // A_SEED))
    passed, different, judging_s = 0, 0, 0.0
    with Recorders() as recorders:
        for seed in seeds:
            for text in lines(seed, min(A_SEED, asked.lines)):
                began = time.perf_counter()
                plan = recorders.judged(text)
                judging_s += time.perf_counter() - began
                if plan is None:
                    continue
                passed += 1
                if wrong := recorders.differs(text, plan):
                    different += 1
                    print(f"seed {seed}: {text!r}: {wrong}", flush=True)
    count = len(seeds) * min(A_SEED, asked.lines)
    print(f"seeds {seeds[0]} to {seeds[-1]}: {count} lines, {judging_s / count * 1e3:.3f} ms each to judge")
    print(f"{passed} let through, each held against bash; {different} read differently")
    raise SystemExit(1 if different else 0)


if __name__ == "__main__":
    main()
