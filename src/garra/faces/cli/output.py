"""What goes to standard output and standard error. UTF-8 whatever the locale says; JSON is one object, nothing else."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

Tone = Literal["accent", "warn", "bad", "quiet", "strong"]
TONES = {"accent": "36", "warn": "33", "bad": "31", "quiet": "2", "strong": "1"}


def say(text: str = "") -> None:
    """One line, or several, for a person or a pipe, on standard output."""
    _write(1, f"{text}\n")


def note(text: str) -> None:
    """One line beside the answer: on standard error, where it does not disturb who reads the answer."""
    _write(2, f"{text}\n")


def say_json(value: Any) -> None:
    """A value as JSON, indented, on standard output."""
    say(json.dumps(value, indent=2, ensure_ascii=False))


def painted(text: str, tone: Tone, stream: int = 1) -> str:
    """`text` in a tone, where a person sees colours: a terminal, and NO_COLOR not set."""
    return f"\x1b[{TONES[tone]}m{text}\x1b[0m" if colours(stream) else text


def colours(stream: int = 1) -> bool:
    from garra.io.env import read  # noqa: PLC0415 - most lines have no tone

    env = read()
    return os.isatty(stream) and not env.get("NO_COLOR") and env.get("TERM", "") != "dumb"


def harmless(text: str) -> str:
    """Another's words for a terminal: without the control characters that could steer it."""
    return "".join(letter for letter in text if letter in "\n\t" or not (letter < " " or "\x7f" <= letter < "\xa0"))


def table(rows: Sequence[Sequence[str]], heads: Sequence[str]) -> str:
    """Columns under their heads, as wide as what stands in them; the last one is not padded."""
    lines = [heads, *([harmless(cell).replace("\n", " ") for cell in row] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(heads))]
    shown = ["  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    return "\n".join([painted(shown[0], "quiet"), *shown[1:]])


def _write(stream: int, text: str) -> None:
    data = text.encode("utf-8", "backslashreplace")  # a lone surrogate becomes \udc80, which JSON may hold
    (sys.stdout if stream == 1 else sys.stderr).flush()
    while data:
        data = data[os.write(stream, data) :]


class Answer:
    """The way to the real standard output while everything else that is printed goes to standard error."""

    def __init__(self, stream: int) -> None:
        self._stream = stream

    def text(self, text: str) -> None:
        """Words for a person, or whatever reads them."""
        _write(self._stream, f"{harmless(text) if os.isatty(self._stream) else text}\n")

    def json(self, value: Any) -> None:
        _write(self._stream, f"{json.dumps(value, indent=2, ensure_ascii=False)}\n")


@contextmanager
def reserved() -> Iterator[Answer]:
    """Keep standard output for the answer alone: what libraries and child processes print goes to standard error."""
    sys.stdout.flush()
    real = os.dup(1)
    os.set_inheritable(real, False)
    os.dup2(2, 1)
    try:
        yield Answer(real)
    finally:
        sys.stdout.flush()
        os.dup2(real, 1)
        os.close(real)
