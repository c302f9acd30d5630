"""Random shell lines against an allowlist: `python -m tests.fuzz.shell_lines --lines 100000 --seed 1`.

None may be let through that starts a program which is not listed, none may break the parser, and the words of those
that are let through are bash's own. Prints how many lines there were, and how long a judgement takes.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import time
from collections.abc import Iterator

from garra.core import execjudge
from garra.core.commands import Unparsed, parse
from garra.core.execjudge import Allow, Case, Found
from garra.core.execrules import Entry, Policy
from tests.domains.exec.smuggling import ALL, ALLOWED

OTHERS = (
    "touch",
    "env",
    "sh",
    "eval",
    "find",
    "tee",
    "xargs",
    "python3",
    "busybox",
    "nice",
    "sort",
    "awk",
    "sed",
    "git",
)
WORDS = (
    "a", "b c", "-x", "$x", "$(touch z)", "`touch z`", "~", "*", "=", ":", "é", "echo", "ls", "cat", "then", "if ",
    "A=",
    "''", '""', "'a'", '"b"', "0", "1", "2", "^", "@", "%", "+", ",", "-", "/", "./", "..", "eval ", "touch z",
    "env touch z", "sh -c 'touch z'",
)  # fmt: skip
SIGNS = (
    "'", '"', "\\", " ", "  ", "\n", "\t", ";", "|", "&&", "||", "&", "(", ")", "{", "}", "[", "]", "!", "#", "$'",
    '$"',
    "<<X", "\nX\n", "2>&1", ">/dev/null", "</dev/null", ">x", ">>", "<", "<(", "\\\n", "\r", "\0", "\x1b", "\u200b",
)  # fmt: skip
SEEDS = tuple(text.format(x="z") for _, text in ALL)
FOUND = {name: Found(f"/usr/bin/{name}", f"/usr/bin/{name}", (1, 2, 3, 4)) for name in (*ALLOWED, *OTHERS)}
CASE = Case(Policy("allowlist", "off", None, tuple(map(Entry, ALLOWED))), "/w", FOUND)
PRINTED = 'echo() { printf \'%s\\0\' "$#" "$@"; }\n'


def lines(seed: int, count: int) -> Iterator[str]:
    """Pieces in a row, pieces after a listed program, and known tricks with something put in."""
    chance = random.Random(seed)
    pieces = (*WORDS, *SIGNS)

    def some(most: int) -> str:
        return "".join(chance.choice(pieces) for _ in range(chance.randint(1, most)))

    for _ in range(count):
        kind = chance.random()
        if kind < 0.5:
            yield some(12)
        elif kind < 0.7:
            yield chance.choice(("echo ", "ls ; echo ", "cat </dev/null | echo ")) + some(8)
        else:
            text = chance.choice(SEEDS)
            for _ in range(chance.randint(0, 3)):
                at = chance.randint(0, len(text))
                text = text[:at] + chance.choice(pieces) + text[at + chance.randint(0, 2) :]
            yield text


def judged(text: str) -> Allow | None:
    """What is let through. Raises AssertionError where that starts what is not listed."""
    command = parse(text)
    found = execjudge.judge(command, CASE)
    if not isinstance(found, Allow):
        return None
    assert not isinstance(command, Unparsed), text
    assert found.plan, text
    for step in found.plan:
        assert step.path in {f"/usr/bin/{name}" for name in ALLOWED}, text
    return found


def alike(text: str, allowed: Allow) -> bool:
    """Whether bash reads the words of one `echo` as we do."""
    (step,) = allowed.plan or ()
    wanted = "".join(f"{word}\0" for word in (str(len(step.argv) - 1), *step.argv[1:]))
    shown = subprocess.run(["bash", "-c", PRINTED + text], capture_output=True, cwd="/", check=False)
    return shown.stdout == wanted.encode()


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--lines", type=int, default=100_000)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--compared", type=int, default=1_000, help="how many are held against bash")
    asked = arguments.parse_args()
    parse("ls")  # the grammar is loaded
    began = time.perf_counter()
    passed = [(text, found) for text in lines(asked.seed, asked.lines) if (found := judged(text)) is not None]
    took = time.perf_counter() - began
    single = [(text, found) for text, found in passed if _echoes(found)][: asked.compared]
    differing = [text for text, found in single if not alike(text, found)]
    print(f"{asked.lines} lines, {len(passed)} let through, {took / asked.lines * 1e3:.3f} ms each")
    print(f"{len(single)} held against bash, {len(differing)} read differently: {differing[:5]}")
    if differing:
        raise SystemExit(1)


def _echoes(found: Allow) -> bool:
    plan = found.plan or ()
    return len(plan) == 1 and plan[0].argv[0] == "echo" and not plan[0].redirections


if __name__ == "__main__":
    main()
