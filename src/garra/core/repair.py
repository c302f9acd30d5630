"""A broken configuration: which changes of its text would mend it, and what else a person may choose.

Each change is made to the text alone and keeps everything else as it was written. None is offered that does not help:
of a text that cannot be read those that make it readable (or at least move the fault further down), of a value those
that `better` approves.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Literal

from garra.core import json5, jsonedit
from garra.core.dotted import Path, show
from garra.core.json5 import Node
from garra.core.value import frozen

Better = Callable[[str], bool]
"""Whether a new text is better than the one at hand: something is gone that was wrong, and nothing is wrong anew."""
Kind = Literal["change", "value", "restore", "edit", "ask", "go-on", "anew", "quit"]
MOST_CHANGES = 8
MOST_TOUCHES = 3
WIDEST = 100
_NEAR = 0.7

_TOKEN = re.compile(r"""(?s)"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|//[^\n]*|/\*.*?\*/|[{}\[\]]""")
_CLOSING = {"{": "}", "[": "]"}
_LITERALS = {"True": "true", "False": "false", "None": "null"}
_YES = {"true": "true", "yes": "true", "on": "true", "false": "false", "no": "false", "off": "false"}
_PLAIN = re.compile(r"true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?")


@frozen
class Trouble:
    """One thing that is wrong: `at` as keys (none: the text cannot be read), `line` from 1 where only that is known.

    `allowed` are the values that would do; `names` the keys that could stand where an unknown one does; `strays` the
    keys beside a missing one, any of which may be it under another spelling.
    """

    at: Path
    message: str
    line: int = 0
    allowed: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    strays: tuple[str, ...] = ()


@frozen
class Change:
    """A change that helps: in words, and the whole new text."""

    words: str
    text: str


@frozen
class Facts:
    """What else there is: a last good configuration, an editor (its name), a model that could be asked."""

    last_good: bool = False
    editor: str = ""
    model: bool = False


@frozen
class Choice:
    """One line of the menu."""

    kind: Kind
    words: str
    change: Change | None = None


def changes(text: str, trouble: Trouble, better: Better) -> tuple[Change, ...]:
    """The changes that help against one trouble, the likeliest first."""
    try:
        root = json5.parse(text)
    except json5.Broken as fault:
        return _readable(text, fault)
    found: dict[str, Change] = {}
    for change in _candidates(text, root, trouble):
        if len(found) < MOST_CHANGES and change.text not in found and better(change.text):
            found[change.text] = change
    return tuple(found.values())


def choices(found: Iterable[Change], trouble: Trouble, facts: Facts) -> tuple[Choice, ...]:
    """The menu: the changes, then what a person can do by hand, then the ways out."""
    listed = [Choice("change", change.words, change) for change in found]
    if trouble.at and isinstance(trouble.at[-1], str) and not trouble.names:
        listed.append(Choice("value", f"type another value for {show(trouble.at)}"))
    if facts.last_good:
        listed.append(Choice("restore", "bring the last good configuration back (shows the difference first)"))
    if facts.editor:
        listed.append(Choice("edit", f"open it in {facts.editor}"))
    if facts.model:
        listed.append(Choice("ask", "ask the agent about it (on the last good configuration)"))
    if facts.last_good:
        listed.append(Choice("go-on", "go on with the last good configuration now, and leave the file as it is"))
    else:
        listed.append(Choice("anew", "set the file aside and begin with an empty configuration"))
    return (*listed, Choice("quit", "quit"))


def spot(text: str, trouble: Trouble) -> tuple[int, int]:
    """Line and column, from 1; (line, 0) where only the line is known, (0, 0) where nothing is."""
    try:
        root = json5.parse(text)
    except json5.Broken as fault:
        return fault.line, fault.column
    if not trouble.at:
        return trouble.line, 0
    at, node = 0, root
    for part in trouble.at:
        below = json5.child(node, part)
        if below is None:
            break
        at = _begin(node, part, below) if trouble.names else below.start
        node = below
    at = at or node.start
    return text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)


def excerpt(line: str, column: int) -> tuple[str, ...]:
    """A line as it is shown, cut around its column, and a mark below that column; no mark for column 0."""
    start = max(0, column - WIDEST // 2) if len(line) > WIDEST else 0
    shown = line[start : start + WIDEST].replace("\t", " ").rstrip()
    if not column:
        return (shown,)
    return (shown, " " * (column - 1 - start) + "^")


def _begin(node: Node, part: str | int, value: Node) -> int:
    """Where a member begins with its key, a list's item with itself."""
    return next((member.start for member in reversed(node.members) if member.key == part), value.start)


def _candidates(text: str, root: Node, trouble: Trouble) -> Iterator[Change]:
    """Whatever might help against a trouble at a place."""
    yield from renames(text, trouble)
    node = json5.find(root, trouble.at) if trouble.at else None
    place = show(trouble.at)
    if node is not None:
        for value in [*near(_said(text, node), trouble.allowed), *trouble.allowed]:
            yield Change(f'set {place} to "{value}"', jsonedit.put(text, trouble.at, value))
        for words, source in _forms(text, node):
            yield Change(f"{words} ({place})", text[: node.start] + source + text[node.end :])
        yield Change(f"take {place} out", jsonedit.remove(text, trouble.at))
    above = trouble.at[:-1]
    if node is None and above and json5.find(root, above) is not None:
        yield Change(f"take {show(above)} out, with all that is in it", jsonedit.remove(text, above))


def renames(text: str, trouble: Trouble) -> tuple[Change, ...]:
    """Unknown keys that are nearly a known one, by the name that was meant."""
    if not trouble.at:
        return ()
    above, last = trouble.at[:-1], str(trouble.at[-1])
    pairs = [(last, name) for name in near(last, trouble.names)]
    pairs += [(stray, last) for stray in trouble.strays if near(stray, (last,))]
    words = "write {new} instead of {old}" + (f" in {show(above)}" if above else "")
    made = [
        Change(words.format(new=new, old=old), jsonedit.rename(text, (*above, old), new))
        for old, new in pairs
        if json5.find(json5.parse(text), (*above, new)) is None
    ]
    return tuple(change for change in made if change.text != text)


def near(word: str, names: Iterable[str]) -> list[str]:
    """The names that are like a word, whatever the case of their letters; the likest first, two at most."""
    folded = {name.casefold(): name for name in names}
    return [folded[found] for found in difflib.get_close_matches(word.casefold(), folded, 2, _NEAR)]


def _said(text: str, node: Node) -> str:
    source = text[node.start : node.end]
    return json5.unescape(source[1:-1]) if node.kind == "text" else source


def _forms(text: str, node: Node) -> Iterator[tuple[str, str]]:
    """The same value as another kind of value: in words, and its source."""
    source, said = text[node.start : node.end], _said(text, node).strip()
    if node.kind == "text":
        if _PLAIN.fullmatch(said):
            yield "write the value without quotes", said
        if said.casefold() in _YES:
            yield f"write it as {_YES[said.casefold()]}", _YES[said.casefold()]
    if node.kind == "word":
        yield "put the value in quotes", json.dumps(source)
    if node.kind == "list" and len(node.items) == 1:
        only = node.items[0].value
        yield "write its one item without the list", text[only.start : only.end]
    if node.kind != "list":
        yield "make a list of it", f"[{source}]"


def _readable(text: str, fault: json5.Broken) -> tuple[Change, ...]:
    """The small touches after which the text can be read; when none is enough, those that help as far as they go."""
    at = _offset(text, fault)
    whole: dict[str, str] = {}
    further: dict[str, str] = {}
    for words, new in _touches(text, at, fault.line):
        reached = _reached(new)
        if reached is None:
            whole.setdefault(words, new)
        elif reached > fault.line:
            further.setdefault(words, new)
    return tuple(Change(words, new) for words, new in list((whole or further).items())[:MOST_TOUCHES])


def _offset(text: str, fault: json5.Broken) -> int:
    begin = 0
    for _ in range(fault.line - 1):
        begin = text.index("\n", begin) + 1
    return begin + fault.column - 1


def _reached(text: str) -> int | None:
    """The line up to which a text can be read, None when the whole of it can."""
    try:
        json5.parse(text)
    except json5.Broken as fault:
        return fault.line
    return None


def _touches(text: str, at: int, line: int) -> Iterator[tuple[str, str]]:
    """Small changes around the place where reading stopped. What stands there is not repeated: it may be a secret."""
    before, rest = text[:at], text[at:]
    kept = before.rstrip()
    earlier = kept.count("\n") + 1
    yield f"put the missing comma at the end of line {earlier}", kept + "," + before[len(kept) :] + rest
    yield f"put the missing comma into line {line}", before + "," + rest
    if rest[:1] in ("=", ";"):
        sign = ":" if rest[0] == "=" else ","
        yield f"write {sign} instead of {rest[0]} in line {line}", before + sign + rest[1:]
    yield f"put the missing colon into line {line}", before + ":" + rest
    bare = re.match(r"[^\s,:{}\[\]\"']+", rest)
    if bare is not None:
        literal = _LITERALS.get(bare.group())
        if literal is not None:
            yield f"write {literal} in line {line}", before + literal + rest[bare.end() :]
        yield f"put quotes around the word in line {line}", before + json.dumps(bare.group()) + rest[bare.end() :]
    yield from _closed(text, at, line)
    if _whole(before):
        yield "take out what follows the end of the configuration", kept + "\n"
    lone = re.search(r"""(?:"[^"\n]*"|'[^'\n]*'|[\w$-]+)\s*:\s*$""", before)
    if lone is not None:
        yield f"take out the key without a value in line {line}", before[: lone.start()] + rest.removeprefix(",")
    if rest[:1] in (",", "}", "]"):
        yield f"take out the {rest[0]} in line {line}", before + rest[1:]


def _whole(text: str) -> bool:
    return _reached(text) is None


def _closed(text: str, at: int, line: int) -> Iterator[tuple[str, str]]:
    """What was opened and never closed: a quote on its line, brackets to the end of the text."""
    if text[at : at + 1] in ('"', "'"):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        inner = text[at:end].rstrip().removesuffix(",").rstrip()
        text = text[:at] + inner + text[at] + text[at + len(inner) :]
        yield f"close the quote in line {line}", text
        yield f"close the quote in line {line} and what is open at the end of the file", _bracketed(text)
    if _open(text):
        yield f"close what is open at the end of the file: {_open(text)}", _bracketed(text)


def _bracketed(text: str) -> str:
    return f"{text.rstrip()}\n{_open(text)}\n"


def _open(text: str) -> str:
    """The brackets that would close what the text leaves open."""
    missing: list[str] = []
    for token in _TOKEN.findall(text):
        if token in _CLOSING:
            missing.append(_CLOSING[token])
        elif missing and token == missing[-1]:
            missing.pop()
    return "".join(reversed(missing))
