"""The page of the command line: every command, argument and option, as its own parser says."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from docs.make.page import cell, join, table

from garra.faces.cli import models
from garra.faces.cli.table import COMMANDS, GLOBAL, Command

HANDED_ON = frozenset({"daemon", "gateway", "models"})
"""Commands that have no options of their own: those below them do."""


class _Read(BaseException):
    """Carries the parser that a command was about to use."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        super().__init__()
        self.parser = parser


def _stop(parser: argparse.ArgumentParser, *arguments: Any, **more: Any) -> Any:
    raise _Read(parser)


@contextlib.contextmanager
def _caught() -> Iterator[None]:
    """Commands give their parser up instead of using it, and print nothing."""
    kind: Any = argparse.ArgumentParser
    was = kind.parse_args, kind.parse_known_args
    kind.parse_args = kind.parse_known_args = _stop
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        kind.parse_args, kind.parse_known_args = was


@cache
def parsers() -> dict[str, argparse.ArgumentParser | None]:
    """By the words of a command: its parser, or None for one that only hands over to those below it."""
    found: dict[str, argparse.ArgumentParser | None] = {}
    with _caught():
        for row in COMMANDS:
            found |= _below(row.name, None if row.name in HANDED_ON else _called(row.module, "--help"))
        for step in models.STEPS:
            found |= _below(f"models {step}", _called("garra.faces.cli.models", step, "--help"))
    return found


def _called(where: str, *arguments: str) -> argparse.ArgumentParser | None:
    module, _, name = where.partition(":")
    try:
        getattr(importlib.import_module(module), name or "run")(list(arguments))
    except _Read as read:
        return read.parser
    except SystemExit:
        pass
    return None


def _below(name: str, parser: argparse.ArgumentParser | None) -> dict[str, argparse.ArgumentParser | None]:
    found: dict[str, argparse.ArgumentParser | None] = {name: parser}
    for action in parser._actions if parser else ():  # noqa: SLF001 - argparse shows its actions in no other way
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - its only name
            first: dict[int, str] = {}
            for word, inner in action.choices.items():
                if id(inner) not in first:
                    first[id(inner)] = word
                    found |= _below(f"{name} {word}", inner)
    return found


def options(parser: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
    """Each argument and option of a parser as it is written, and what it says of itself."""
    for action in parser._actions:  # noqa: SLF001 - argparse shows its actions in no other way
        if isinstance(action, argparse._HelpAction | argparse._SubParsersAction):  # noqa: SLF001 - their only names
            continue
        if action.help == argparse.SUPPRESS:
            continue
        yield _written(action), (action.help or "").replace("%%", "%")


def _written(action: argparse.Action) -> str:
    value = action.metavar or (
        "{" + ",".join(map(str, action.choices)) + "}" if action.choices else action.dest.upper()
    )
    if not action.option_strings:
        name = str(action.metavar or action.dest)
        return {"?": f"[{name}]", "*": f"[{name} …]", "+": f"{name} …"}.get(str(action.nargs), name)
    names = ", ".join(action.option_strings)
    return names if action.nargs == 0 else f"{names} {value}"


def commands() -> str:
    """docs/reference/cli.md"""
    return join(
        "# Command line",
        "```sh\ngarra --help\n```",
        "Every command, argument and option. This page is made from the commands' own parsers; `garra COMMAND --help` says"
        " the same. Without a command `garra` opens the chat in the terminal, or answers what comes on standard input.",
        "## Before the command",
        table(
            ("option", "meaning"),
            (
                (f"`{name}`", said)
                for name, said in re.findall(r"^  (--\S+(?: [A-Z]+)?) {2,}(\S.*)$", GLOBAL, re.MULTILINE)
            ),
        ),
        *(_command(row) for row in COMMANDS),
    )


def _command(row: Command) -> str:
    known = parsers()
    own = [
        name for name in known if name == row.name or (name.startswith(f"{row.name} ") and not _listed(name, row.name))
    ]
    body = [_one(name, known[name]) for name in own]
    also = f" Also called `garra {'`, `garra '.join(row.aliases)}`." if row.aliases else ""
    return join(f"## {row.name}", f"{row.summary[:1].upper()}{row.summary[1:]}.{also}", *body)


def _listed(name: str, above: str) -> bool:
    """A command of two words that has its own place in the table."""
    return any(each.name == name and each.name != above for each in COMMANDS)


def _one(name: str, parser: argparse.ArgumentParser | None) -> str:
    if parser is None:
        return ""
    rows = [(f"`{written}`", said) for written, said in options(parser)]
    line = parser.description if " " in name and parser.description else ""
    above = _help(name)
    return join(f"**`garra {name}`** {cell(above or line)}".strip(), table(("option", "meaning"), rows))


def _help(name: str) -> str:
    """What the parser above says of a command below it."""
    above, _, word = name.rpartition(" ")
    parser = parsers().get(above)
    for action in parser._actions if parser else ():  # noqa: SLF001 - argparse shows its actions in no other way
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - its only name
            return next((str(each.help or "") for each in action._choices_actions if each.dest == word), "")  # noqa: SLF001
    return ""


def mute() -> list[str]:
    """Options and arguments without a line."""
    return [
        f"garra {name}: {written}"
        for name, parser in parsers().items()
        if parser is not None
        for written, said in options(parser)
        if not said.strip()
    ]
