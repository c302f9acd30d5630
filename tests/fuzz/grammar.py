"""Shell lines from bash's grammar, and known tricks with something put in, by whoever chooses: a seed or hypothesis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from tests.domains.exec.smuggling import ALL, ALLOWED
from tests.fuzz.shell_lines import OTHERS, SIGNS, WORDS
from tests.hostile.cases import of

HOSTILE = tuple(case["line"].replace("{x}", "z").replace("{pad}", "a") for case in of("shell"))
SEEDS = (*(text.format(x="z") for _, text in ALL), *HOSTILE)
LETTERS = (
    "a",
    "b",
    "-n",
    "--x=y",
    "0",
    "é",
    ".",
    "/",
    "a/b",
    "%s",
    "@",
    "+",
    "^",
    ",",
    ":",
    "=",
    "a=b",
    "then",
    "if",
    "in",
)
INSIDE = (
    "a",
    " ",
    "  ",
    "$",
    "`",
    "'",
    '"',
    "\\",
    "\\\\",
    "\n",
    "\t",
    "*",
    "?",
    "~",
    "#",
    "!",
    "{a,b}",
    ";",
    "|",
    "&",
    ">",
    "(",
    "$(touch z)",
    "$x",
    "\\$",
    "é",
)
EXPANSIONS = (
    "$x",
    "${x}",
    "${x:-a b}",
    "$(touch z)",
    "`touch z`",
    "$((1+1))",
    "$'a\\x20b'",
    '$"a"',
    "*",
    "?",
    "[a]",
    "{a,b}",
    "~",
    "~root",
    "<(touch z)",
    "$*",
    '"$@"',
    "${x[@]}",
    "@(a|b)",
)
JOINTS = (" | ", "|", " && ", "&&", " || ", "; ", ";", "\n", " ;\n", " |\n", " &&\n", " & ", " |& ", "\\\n;")
REDIRECTIONS = (
    " >/dev/null",
    " 2>/dev/null",
    " 2>&1",
    " </dev/null",
    " 1>&2",
    " > /dev/null",
    " >z",
    " >>z",
    " 2>z",
    " <&-",
    " >&2",
    " {f}>z",
    "2>&1",
    " 2> /dev/null",
    " <<<a",
)
ASSIGNED = (
    "LANG=C ",
    "TZ=UTC ",
    "NO_COLOR=1 ",
    "LC_ALL='C' ",
    "TERM=a\\ b ",
    "PATH=. ",
    "IFS=x ",
    "A=$(touch z) ",
    "TZ+=a ",
    "TZ= ",
)
GAPS = (" ", " ", " ", "  ", "\t", " \\\n")


class Chooser(Protocol):
    """Decides: `pick` one of several, `count` between two numbers."""

    def pick(self, among: Sequence[str]) -> str: ...

    def count(self, low: int, high: int) -> int: ...


@dataclass
class Grammar:
    chooser: Chooser

    def line(self) -> str:
        """One line; most are of plain programs with some twist, the rest of all the shell has, or spoilt tricks."""
        kind = self.chooser.count(0, 9)
        if kind < 5:
            return self.listed(4, twist=12)
        return self.anything(2) if kind < 8 else self.spoilt()

    def listed(self, most: int, twist: int = 6) -> str:
        """Programs joined; one in `twist` choices is one that no list covers."""
        text = self.simple(twist)
        for _ in range(self.chooser.count(0, most) // 2):
            text += self.chooser.pick(JOINTS if self._now(twist) else JOINTS[:11]) + self.simple(twist)
        return text + (self.chooser.pick((" # a ' b", "\n", ";", " ;", " \\\n", " #")) if self._now(8) else "")

    def simple(self, twist: int) -> str:
        chooser = self.chooser
        text = chooser.pick(ASSIGNED if self._now(twist) else ASSIGNED[:4]) if self._now(8) else ""
        text += self.name(twist)
        for _ in range(chooser.count(0, 4)):
            text += chooser.pick(GAPS) + self.word(twist * 3)
        for _ in range(chooser.count(0, 2) if self._now(5) else 0):
            text += chooser.pick(REDIRECTIONS if self._now(twist) else REDIRECTIONS[:6])
        return text

    def name(self, twist: int) -> str:
        name = self.chooser.pick(OTHERS if self._now(twist * 2) else ALLOWED)
        forms: tuple[Callable[[], str], ...] = (
            lambda: f"'{name}'", lambda: f'"{name}"', lambda: f"{name[0]}''{name[1:]}", lambda: f"\\{name}",
            lambda: f"/usr/bin/{name}", lambda: f"/bin/{name}", lambda: f'{name[:1]}"{name[1:]}"',
        )  # fmt: skip
        return forms[self.chooser.count(0, len(forms) - 1)]() if self._now(8) else name

    def word(self, twist: int) -> str:
        return "".join(self.piece(twist) for _ in range(self.chooser.count(1, 3)))

    def piece(self, twist: int) -> str:
        chooser = self.chooser
        if self._now(twist):
            return chooser.pick(EXPANSIONS)
        match chooser.count(0, 4):
            case 0:
                return "'" + self._some(INSIDE).replace("'", "") + "'"
            case 1:
                safe = self._some(
                    INSIDE
                    if self._now(twist)
                    else [each for each in INSIDE if each not in '$`\\"!$x' and "$" not in each]
                )
                return '"' + safe.replace('"', "") + '"'
            case 2:
                return "\\" + chooser.pick([each for each in INSIDE if len(each) == 1 and each != "\n"])
            case _:
                return chooser.pick(LETTERS)

    def anything(self, depth: int) -> str:
        """Whatever the shell has."""
        if depth == 0:
            return self.listed(2)
        inner = self.anything(depth - 1)
        forms: tuple[Callable[[], str], ...] = (
            lambda: f"({inner})",
            lambda: f"{{ {inner}; }}",
            lambda: f"! {inner}",
            lambda: f"if {inner}; then {inner}; fi",
            lambda: f"for a in {self.word(9)}; do {inner}; done",
            lambda: f"while {inner}; do break; done",
            lambda: f"case {self.word(9)} in a) {inner};; *) {inner};; esac",
            lambda: f"f() {{ {inner}; }}; f",
            lambda: f"echo $({inner})",
            lambda: f"echo `{inner}`",
            lambda: f'echo "$({inner})"',
            lambda: f"cat <({inner})",
            lambda: f"cat <<E\n{inner}\nE",
            lambda: f"cat <<'E'\n{inner}\nE\n{self.simple(3)}",
            lambda: f"cat <<-E\n\t{inner}\n\tE\n",
            lambda: f"echo $(({inner}))",
            lambda: f"echo ${{x:-{inner}}}",
            lambda: f"a=({inner}); {inner}",
            lambda: f"time {inner}",
            lambda: f"coproc {inner}",
            lambda: f"eval {inner}",
            lambda: f"{inner} & {inner}",
            lambda: f"[[ {inner} ]] && {inner}",
            lambda: f"trap '{inner}' EXIT",
            lambda: f"{inner} #{inner}",
            lambda: f"'{inner}'",
            lambda: f'echo "{inner}"',
        )
        return forms[self.chooser.count(0, len(forms) - 1)]()

    def spoilt(self) -> str:
        """A known trick with something put in, taken out or joined."""
        chooser = self.chooser
        text = chooser.pick(SEEDS)
        for _ in range(chooser.count(0, 3)):
            at = chooser.count(0, len(text))
            text = text[:at] + chooser.pick((*WORDS, *SIGNS)) + text[at + chooser.count(0, 2) :]
        return text

    def _some(self, among: Sequence[str]) -> str:
        return "".join(self.chooser.pick(among) for _ in range(self.chooser.count(0, 4)))

    def _now(self, one_in: int) -> bool:
        return self.chooser.count(1, one_in) == one_in
