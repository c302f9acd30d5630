"""What a shell line means, where that can be said without a shell: plain programs with plain arguments.

    Simple      one program with literal arguments
    Compound    such ones joined by | && || ; or line breaks
    Unparsed    everything else, with the reason: whoever judges asks a person, or lets it run shut in

Bash's grammar gives the structure; the words are read here, by the rules of quoting, so that each is what bash would
hand to the program. What depends on anything but the text (a variable, a file name that a pattern finds, the folder)
is no literal.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any, Final, Literal

from garra.core.value import frozen

LONGEST: Final = 16_384
"""Bytes of a line that is looked into."""
MOST: Final = 64
"""Programs of one line."""

Joint = Literal["|", "&&", "||", ";"]


@frozen
class Redirection:
    """`fd` is sent to `target`: another of its descriptors (`&1`), or a file; `write` is false for one that is read."""

    fd: int
    target: str
    write: bool = True


@frozen
class Simple:
    """One program: `argv` as it receives it, variables set for it alone, and where its input and output go."""

    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...] = ()
    redirections: tuple[Redirection, ...] = ()


@frozen
class Compound:
    """Several programs: `joints[n]` stands between `parts[n]` and `parts[n + 1]`; | binds closest, && and || alike."""

    parts: tuple[Simple, ...]
    joints: tuple[Joint, ...]


@frozen
class Unparsed:
    """It is no list of literal words: `reason` says why, for people and the model."""

    reason: str


Command = Simple | Compound | Unparsed


class _Refused(Exception):
    """Here it stops being literal."""


def parse(text: str, grammar: str = "tree_sitter_bash") -> Command:
    """What `text` means. Never raises. `grammar` is the package that has it."""
    try:
        _look_over(text)
        parser = _parser(grammar)
        source = text.encode()
        tree = parser.parse(source)
        if tree.root_node.has_error:
            raise _Refused(_MALFORMED)
        return _Reader(source).program(tree.root_node)
    except _Refused as refused:
        return Unparsed(str(refused))
    except RecursionError:
        return Unparsed("it is nested too deeply")


def parts(command: Simple | Compound) -> tuple[Simple, ...]:
    """Its programs, from left to right."""
    return (command,) if isinstance(command, Simple) else command.parts


def words(text: str) -> tuple[str, ...]:
    """What may be words of a line that could not be parsed, without quotes: for looking, never for running."""
    return tuple(dict.fromkeys(_BREAK.sub(" ", text).split()))


_BREAK: Final = re.compile(r"[\s;&|<>()`'\"$={},]+")


@cache
def _language(grammar: str) -> tuple[Any, Any]:
    """The library and bash's grammar; 25 ms the first time."""
    try:
        library, bash = importlib.import_module("tree_sitter"), importlib.import_module(grammar)
    except ImportError as error:
        raise _Refused(f"the shell grammar cannot be loaded ({error})") from None
    return library, library.Language(bash.language())


def _parser(grammar: str) -> Any:
    """A parser of its own for each line: one cannot be shared between threads."""
    library, bash = _language(grammar)
    return library.Parser(bash)


def _look_over(text: str) -> None:
    if not text.strip():
        raise _Refused("it is empty")
    if len(text) > LONGEST:
        raise _Refused(f"it is longer than {LONGEST} characters")
    odd = next((char for char in text if not (char.isprintable() or char in "\n\t")), None)
    if odd is not None:
        raise _Refused(f"it holds a character that nobody sees (U+{ord(odd):04X})")


_MALFORMED: Final = "it is no well-formed shell line"
_KINDS: Final[Mapping[str, str]] = {
    "comment": "a comment",
    "redirected_statement": "a redirection",
    "file_redirect": "a redirection",
    "heredoc_redirect": "a here-document",
    "herestring_redirect": "a here-string",
    "command_substitution": "a command substitution",
    "process_substitution": "a process substitution",
    "simple_expansion": "a variable",
    "expansion": "a variable",
    "arithmetic_expansion": "arithmetic",
    "ansi_c_string": "a string of the form $'…'",
    "translated_string": 'a string of the form $"…"',
    "brace_expression": "braces that expand",
    "extglob_pattern": "a file name pattern",
    "function_definition": "a function",
    "subshell": "a subshell",
    "compound_statement": "a group of commands",
    "negated_command": "a negation",
    "variable_assignment": "an assignment",
    "variable_assignments": "an assignment",
    "declaration_command": "a declaration",
    "unset_command": "a declaration",
    "test_command": "a test of the shell",
}
_JOINTS: Final[Mapping[str, Joint]] = {"|": "|", "&&": "&&", "||": "||", ";": ";", "\n": ";"}
_RESERVED: Final = frozenset(
    {
        "if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac", "in", "select",
        "function", "time", "coproc", "{", "}", "!", "[[", "]]",
    }
)  # fmt: skip
_GAP: Final = re.compile(rb"[ \t](?:[ \t]|\\\n)*")
_LINES: Final = re.compile(rb"(?:[ \t\n]|\\\n)*")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")


class _Reader:
    """Reads a tree. `source` is the line."""

    def __init__(self, source: bytes) -> None:
        self.source = source

    def program(self, root: Any) -> Simple | Compound:
        found: list[Simple] = []
        joints: list[Joint] = []
        for item in self._flat(root):
            if isinstance(item, Simple):
                if len(joints) < len(found):
                    joints.append(";")  # the grammar keeps line breaks to itself
                found.append(item)
            else:
                joints.append(item)
        last = joints.pop() if found and len(joints) == len(found) else ";"
        if last != ";" or len(joints) != len(found) - 1 or len(found) > MOST:
            raise _Refused(f"it has more than {MOST} programs" if len(found) > MOST else _MALFORMED)
        return found[0] if len(found) == 1 else Compound(tuple(found), tuple(joints))

    def _flat(self, node: Any) -> Iterator[Simple | Joint]:
        """Programs and what joins them, in their order; all between them is white space."""
        at = node.start_byte if node.type != "program" else 0
        for child in node.children:
            self._gap(at, child.start_byte, _LINES)
            at = child.end_byte
            if child.type == "command":
                yield self._command(child)
            elif child.type == "redirected_statement":
                yield from self._redirected(child)
            elif child.type in {"list", "pipeline"}:
                yield from self._flat(child)
            elif child.type in _JOINTS:
                yield _JOINTS[child.type]
            else:
                raise _Refused(_named(child))
        self._gap(at, node.end_byte if node.type != "program" else len(self.source), _LINES)

    def _gap(self, start: int, end: int, allowed: re.Pattern[bytes]) -> None:
        if not allowed.fullmatch(self.source, start, end):
            raise _Refused(_MALFORMED)

    def _redirected(self, node: Any) -> Iterator[Simple | Joint]:
        """What stands before a redirection, which is of the last program there."""
        body, *redirections = node.children
        whole: list[Simple | Joint] = [self._command(body)] if body.type == "command" else []
        if body.type in {"list", "pipeline"}:
            whole = list(self._flat(body))
        if not whole or not isinstance(whole[-1], Simple):
            raise _Refused("a redirection")
        at, last = body.end_byte, whole[-1]
        found = list(last.redirections)
        for child in redirections:
            if child.type != "file_redirect":
                raise _Refused(_named(child))
            self._gap(at, child.start_byte, _GAP)  # what stands close before it may be the number of a descriptor
            at = child.end_byte
            found.append(self._redirection(child))
        yield from whole[:-1]
        yield replace(last, redirections=tuple(found))

    def _command(self, node: Any) -> Simple:
        argv: list[str] = []
        env: list[tuple[str, str]] = []
        at = None
        for child in node.children:
            if at is not None:
                self._gap(at, child.start_byte, _GAP)
            at = child.end_byte
            if child.type == "variable_assignment" and not argv:
                env.append(self._assignment(child))
            else:
                argv.append(self._word(child))
        name = argv[0] if argv else ""
        if not name or name in _RESERVED or _VARIABLE.match(name):
            raw = self._text(node).split(maxsplit=1)[0]
            raise _Refused(f"{raw[:40]!r} means something to the shell itself")
        return Simple(tuple(argv), tuple(env))

    def _text(self, node: Any) -> str:
        return self.source[node.start_byte : node.end_byte].decode()

    def _assignment(self, node: Any) -> tuple[str, str]:
        name, _, value = self._text(node).partition("=")
        if not name.isidentifier() or not name.isascii():
            raise _Refused("an assignment")
        if "~" in value:
            raise _Refused("a tilde")
        return name, _literal(value)

    def _redirection(self, node: Any) -> Redirection:
        found = _REDIRECTION.fullmatch(self._text(node))
        if not found:
            raise _Refused("a redirection")
        fd, sign, target = found[1], found[2] or found[4], found[3] or found[5]
        usual = 0 if sign == "<" else 1
        plain = target if target.startswith("&") else _literal(target)
        return Redirection(int(fd) if fd else usual, plain, sign != "<")

    def _word(self, node: Any) -> str:
        if node.type not in {"command_name", "word", "number", "raw_string", "string", "concatenation"}:
            raise _Refused(_named(node))
        return _literal(self._text(node))


_REDIRECTION: Final = re.compile(r"([0-9]?)(?:(>)(&[12])|([<>])[ \t]*(/\S+))")


def _named(node: Any) -> str:
    return _KINDS.get(node.type, f"{node.type.replace('_', ' ')!r} of the shell")


_PIECES: Final = re.compile(
    r"""(?P<plain>[^\s\\'"$`*?\[\]{}()<>|&;!\#~]+) | '(?P<raw>[^']*)' | "(?P<quoted>(?:[^"\\]|\\.)*)"
      | \\(?P<escaped>[^\n]) | (?P<inner>[\#~])""",
    re.X | re.S,
)
_WHY: Final[Mapping[str, str]] = {
    "$": "a variable or a substitution",
    "`": "a command substitution",
    "*": "a file name pattern",
    "?": "a file name pattern",
    "[": "a file name pattern",
    "]": "a file name pattern",
    "{": "braces that expand",
    "}": "braces that expand",
    "!": "a word of the shell's history",
    "~": "a tilde",
}
_IN_QUOTES: Final = re.compile(r"\\(.)|([$`])|(!)(?![\s=(]|$)", re.S)


def _literal(source: str) -> str:
    """A word without its quotes. Raises _Refused where it is not just what stands there."""
    at, found = 0, ""
    while at < len(source):
        piece = _PIECES.match(source, at)
        if not piece:
            raise _Refused(_WHY.get(source[at], _MALFORMED))
        match piece.lastgroup:
            case "inner":
                found += _inner(piece[0], source, at)
            case "quoted":
                found += _IN_QUOTES.sub(_unquoted, piece["quoted"])
            case kind:
                found += piece[str(kind)]
        at = piece.end()
    return found


def _inner(char: str, source: str, at: int) -> str:
    """A tilde or a hash, which mean something at the start of a word only, and a tilde after = and : as well."""
    if at == 0 or (char == "~" and source[at - 1] in "=:"):
        raise _Refused(_WHY.get(char, "a comment"))
    return char


def _unquoted(found: re.Match[str]) -> str:
    escaped, special, history = found.groups()
    if special or history:
        raise _Refused(_WHY[special or history])
    if escaped == "\n":
        raise _Refused("a line that goes on within quotes")
    return escaped if escaped in '$`"\\' else f"\\{escaped}"
