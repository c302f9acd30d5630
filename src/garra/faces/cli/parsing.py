"""How every command reads its arguments."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence

from garra.client.target import Wanted

WIDTH = 96


def parser(name: str, summary: str, *, epilog: str = "") -> argparse.ArgumentParser:
    """A parser for `garra NAME`; `summary` is what the command does, in a sentence."""
    return argparse.ArgumentParser(
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
