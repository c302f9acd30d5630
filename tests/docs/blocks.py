"""The fenced blocks of the documents, and the commands that they and their prose name.

A block that is not run says why, in a comment before it: `<!-- not run: reason -->`. What must be there before it runs
stands in `<!-- given: shell words -->`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from docs.make import site
from docs.make.commands import options, parsers
from docs.make.page import DOCS, ROOT

from garra.faces.cli.table import COMMANDS

LANGUAGES = frozenset({"sh", "console", "json5", "json", "toml", "python", "text"})
NOT_RUN = 55
"""Blocks that may say why they are not run; fewer is better."""
_COMMENT = re.compile(r"<!-- (not run|given): (.*?) -->", re.DOTALL)
_COMMAND = re.compile(r"(?:^|[\s(`\"'])(?:\.venv/bin/)?garra ((?:[a-z][a-z-]* ?)*)([^`\n|;&]*)")


@dataclass(frozen=True)
class Block:
    """One fenced block: where it stands, its language, what it says, why it is not run, what must be there before."""

    path: str
    line: int
    lang: str
    code: str
    reason: str = ""
    given: str = ""

    @property
    def where(self) -> str:
        return f"{self.path}:{self.line}"


def documents() -> list[str]:
    """Every page for people, as paths in the project."""
    found = sorted(str(path.relative_to(ROOT)) for path in DOCS.rglob("*.md"))
    return ["README.md", *(["README.zh.md"] if (ROOT / "README.zh.md").exists() else []), *found]


@cache
def blocks() -> tuple[Block, ...]:
    return tuple(block for path in documents() for block in of(path))


def of(path: str) -> Iterator[Block]:
    said: dict[str, str] = {}
    for token in site.parser().parse((ROOT / path).read_text()):
        if token.type == "html_block":
            said |= {kind: " ".join(text.split()) for kind, text in _COMMENT.findall(token.content)}
        elif token.type in ("fence", "code_block"):
            line = (token.map or [0])[0] + 1
            yield Block(path, line, token.info.strip(), token.content, said.get("not run", ""), said.get("given", ""))
            said = {}
        elif token.nesting == 0:
            said = {}


@cache
def words() -> dict[str, frozenset[str]]:
    """By command: the options it takes."""
    own = {
        name: frozenset(word for written, _ in options(parser) for word in re.findall(r"--?[\w-]+", written))
        if parser
        else None
        for name, parser in parsers().items()
    }
    aliases = {alias: row.name for row in COMMANDS for alias in row.aliases}
    found = {name: known if known is not None else frozenset[str]() for name, known in own.items()}
    for alias, name in aliases.items():
        found |= {
            alias + each[len(name) :]: known for each, known in found.items() if f"{each} ".startswith(f"{name} ")
        }
    return found


GLOBAL = frozenset({"--profile", "--dev", "--state-dir", "--log-level", "--no-color", "--version", "--help", "-h"})


def faults(text: str, brought: frozenset[str] = frozenset()) -> Iterator[str]:
    """Commands and options that `text` names and that do not exist; `brought` are commands of plugins."""
    for said, rest in _COMMAND.findall(text):
        whole = f"garra {said}{rest}".split("#")[0].strip()
        found = _known(said.split())
        if found is None:
            first = said.split()[0] if said.split() else ""
            if first and first not in brought and first not in ("alone",):
                yield f"no such command: {whole}"
            continue
        below = {
            word for name, known in words().items() if name == found or name.startswith(f"{found} ") for word in known
        }
        for option in re.findall(r"(?<![\w-])--[a-z][\w-]*", f"{said} {rest}".split("  #")[0]):
            if option not in below | GLOBAL:
                yield f"garra {found} has no {option}: {whole}"


def _known(said: list[str]) -> str | None:
    """The longest beginning of `said` that is a command; below a command with steps its first word must be one."""
    known = words()
    for count in range(min(len(said), 4), 0, -1):
        name = " ".join(said[:count])
        if name in known:
            return name
    return None


def lines(code: str) -> Iterator[str]:
    """The commands of a block: for `console` the lines after `$`."""
    for line in code.splitlines():
        yield line.removeprefix("$ ")


def quoted(text: str) -> str:
    return shlex.quote(text)
