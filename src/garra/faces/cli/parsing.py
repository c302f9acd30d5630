"""How every command reads its arguments."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from garra.client.target import Wanted
from garra.faces.cli.options import Misused

WIDTH = 96


class Parser(argparse.ArgumentParser):
    """Says of a wrong subcommand which one may be meant. Raises Misused for it."""

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if isinstance(action, argparse._SubParsersAction) and value not in action.choices:  # noqa: SLF001 - its only name
            raise Misused(unknown(str(value), self.prog.removeprefix("garra "), action.choices))
        super()._check_value(action, value)


def unknown(word: str, group: str, known: Iterable[str]) -> str:
    """`word` is no subcommand of `group`: the line that says so, with the one that may be meant, else all of them."""
    import difflib  # noqa: PLC0415 - seldom needed, and large

    names = list(known)
    near = difflib.get_close_matches(word, names, n=1, cutoff=0.5)
    return (
        f"no command '{word}' under {group}; {f'did you mean {near[0]}?' if near else 'there are: ' + ', '.join(names)}"
    )


def parser(name: str, summary: str, *, epilog: str = "") -> argparse.ArgumentParser:
    """A parser for `garra NAME`; `summary` is what the command does, in a sentence."""
    return Parser(
        prog=f"garra {name}",
        description=summary,
        epilog=epilog or None,
        allow_abbrev=False,
        formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(prog, max_help_position=30, width=WIDTH),
    )


def with_json(parsing: argparse.ArgumentParser) -> argparse.ArgumentParser:
    parsing.add_argument("--json", action="store_true", help="print JSON, and nothing else, on standard output")
    return parsing


def with_target(parsing: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Which gateway: the options that all clients share."""
    parsing.add_argument("--url", default="", metavar="URL", help="another gateway (ws://…); needs --token")
    parsing.add_argument("--token", default="", help="the gateway's token")
    parsing.add_argument("--password", default="", help="the gateway's password")
    return parsing


def wanted(asked: argparse.Namespace) -> Wanted:
    return Wanted(asked.url, asked.token, asked.password)


def joined(arguments: Sequence[str], options: Mapping[str, str]) -> list[str]:
    """`arguments` with `-m TEXT` as `--message=TEXT` for each of `options`, so that a value may begin with `-`."""
    whole: list[str] = []
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if word == "--":
            return [*whole, word, *rest]
        whole.append(f"{options[word]}={rest.pop(0)}" if word in options and rest else word)
    return whole
