"""The slash commands of the chat. What is not one of these goes to the gateway, which has commands of its own."""

from __future__ import annotations

from typing import NamedTuple

from garra.core.thinking import LEVELS


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
    Slash(("new",), "", "begin another conversation"),
    Slash(("reset", "clear"), "", "forget this conversation and begin again"),
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


def fitting(text: str) -> list[Slash]:
    """The commands that a line which begins with `/` may become."""
    if not text.startswith("/") or " " in text or "\n" in text:
        return []
    return [slash for slash in SLASHES if any(name.startswith(text[1:].lower()) for name in slash.names)]


def help_text() -> str:
    width = max(len(f"/{slash.name} {slash.takes}") for slash in SLASHES)
    lines = [f"{f'/{slash.name} {slash.takes}':<{width}}  {slash.about}" for slash in SLASHES]
    return "\n".join([*lines, "", KEYS])
