"""The slash commands of the chat. What is not one of these goes to the gateway, which has commands of its own."""

from __future__ import annotations

import re
from typing import NamedTuple

from garra.core.thinking import LEVELS
from garra.turns.commands import COMMANDS


class Slash(NamedTuple):
    """One command: its names, what may follow, what it does."""

    names: tuple[str, ...]
    takes: str
    about: str

    @property
    def name(self) -> str:
        return self.names[0]


SLASHES = (
    Slash(("help", "?"), "", "what can be done here"),
    Slash(("new",), "[message]", "begin another conversation"),
    Slash(("reset", "clear"), "[undo|message]", "forget this conversation and begin again"),
    Slash(("sessions", "session"), "[key]", "go to another conversation"),
    Slash(("agents", "agent"), "[id]", "talk to another agent"),
    Slash(("models", "model"), "[provider/model]", "let another model answer"),
    Slash(("think",), "[level]", f"how much to think: {', '.join(LEVELS)}"),
    Slash(("reasoning",), "", "show or hide what the model thinks"),
    Slash(("verbose",), "[on|off]", "show or fold what tools put out"),
    Slash(("stop", "abort"), "", "stop what goes on (Esc)"),
    Slash(("status",), "", "the gateway, the model, the tokens"),
    Slash(("theme",), "[ink|paper]", "dark or light"),
    Slash(("quit", "exit"), "", "leave (ctrl+d)"),
)
KEYS = """\
Enter sends, ctrl+j begins a new line, the arrows bring back what was sent, Esc stops.
ctrl+o tools' output, ctrl+t thinking, ctrl+p sessions, ctrl+l models, ctrl+g agents."""


def parse(text: str) -> tuple[str, str] | None:
    """(command, rest) of a line that is one of ours, None of any other."""
    if not text.startswith("/"):
        return None
    word, _, rest = text[1:].partition(" ")
    found = next((slash for slash in SLASHES if word.lower() in slash.names), None)
    return (found.name, rest.strip()) if found else None


_WORD = re.compile(r"/([a-z][a-z-]*)(?=\s|\Z)", re.IGNORECASE)


def mistyped(text: str) -> str:
    """The line for a slash word that is nearly a command, here or of the gateway; empty for all other text.

    Nearly: two letters wrong at most, and no more than half of them, so that a short path stays text.
    """
    found = _WORD.match(text)
    word = found[1].lower() if found else ""
    names = [name for slash in SLASHES for name in slash.names]
    names += [name for command in COMMANDS for name in (command.name, *command.aliases) if command.name != "config"]
    if not word or word in names:
        return ""
    far, near = min((apart(word, name), name) for name in dict.fromkeys(names))
    return f"no command /{word}; did you mean /{near}" if far <= min(2, len(word) // 2) else ""


def apart(one: str, other: str) -> int:
    """How many letters have to be put in, left out, changed, or swapped with their neighbour."""
    rows = [list(range(len(other) + 1))]
    for i, letter in enumerate(one, 1):
        row = [i]
        for j, wanted in enumerate(other, 1):
            least = min(rows[-1][j] + 1, row[j - 1] + 1, rows[-1][j - 1] + (letter != wanted))
            if i > 1 and j > 1 and (letter, one[i - 2]) == (other[j - 2], wanted):
                least = min(least, rows[-2][j - 2] + 1)
            row.append(least)
        rows.append(row)
    return rows[-1][-1]


def fitting(text: str) -> list[Slash]:
    """The commands that a line which begins with `/` may become."""
    if not text.startswith("/") or " " in text or "\n" in text:
        return []
    return [slash for slash in SLASHES if any(name.startswith(text[1:].lower()) for name in slash.names)]


def help_text() -> str:
    width = max(len(f"/{slash.name} {slash.takes}") for slash in SLASHES)
    lines = [f"{f'/{slash.name} {slash.takes}':<{width}}  {slash.about}" for slash in SLASHES]
    return "\n".join([*lines, "", KEYS])
