"""What a parent is told of a sub-agent, what it leaves it, how far a run of one has come, which one somebody means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from garra.core import outside, reply
from garra.core.clip import clip
from garra.core.lineage import LABEL, Child, Left
from garra.core.messages import Assistant, Image, Message, ToolResult, User, joined
from garra.core.patterns import later
from garra.core.taint import Mark
from garra.core.value import frozen

REPORT: Final = 40_000
"""Characters of a report that a parent is given."""


@frozen
class Stand:
    """How far a run has come in a transcript: whether its message is there, whether it has ended, with which words."""

    heard: bool = False
    over: bool = False
    text: str = ""


def standing(messages: Sequence[Message], run_id: str) -> Stand:
    """How the run `run_id` stands."""
    found = Stand()
    for message in messages:
        match message:
            case User() if message.meta.get("idempotencyKey") == f"{run_id}:user":
                found = Stand(heard=True)
            case Assistant() if _of(message) == run_id:
                whole = message.stop in ("stop", "length") and not message.calls
                found = replace(found, over=whole and bool(message.text.strip()), text=_words(message) or found.text)
            case ToolResult(name="sessions_yield", is_error=False) if found.heard:
                found = replace(found, over=True)
            case _:
                pass
    return found


def _of(message: Assistant) -> str:
    own = message.meta.get("__openclaw")
    return str(own.get("runId", "")) if isinstance(own, Mapping) else ""


def _words(message: Assistant) -> str:
    said = reply.answer(message.text, "group")
    return said.text if isinstance(said, reply.Reply) else ""


_FIELD = later(r"\{([a-z]+)\}")


def fill(template: str, values: Mapping[str, str]) -> str:
    """`template` with each `{name}` replaced, once: what stands in a value is left as it is."""
    return _FIELD.sub(lambda found: values.get(found[1], found[0]), template)


def told(child: Child) -> dict[str, str]:
    """What the words for its parent are filled with: `name`, `status`, `stats`, and `report` as data, set apart."""
    text, _ = clip(child.report or "(It gave no report.)", REPORT, f"the rest is in the session {child.key}")
    left = "".join(f"\n[It leaves you a file: {each.where} ({_about(each)})]" for each in child.files)
    return {
        "name": outside.name(child.name, LABEL).replace('"', "'"),
        "status": _STATUS[child.outcome].format(child.fault or "no reason is known"),
        "report": outside.wrap(text, Mark("agent", child.key)) + left,
        "stats": stats(child),
    }


def _about(file: Left) -> str:
    said = outside.name(file.name, LABEL).translate(_NO_BRACKETS)
    return f"{said}, {outside.name(file.mime, LABEL).translate(_NO_BRACKETS)}" if file.mime else said


_NO_BRACKETS: Final = str.maketrans("[]", "()")


@frozen
class Made:
    """What a run made or was given and its parent may want: `places` are names of files (`media://…`) and paths in its
    folder, `pictures` those that no name leads to.
    """

    places: tuple[str, ...] = ()
    pictures: tuple[Image, ...] = ()


def made(messages: Sequence[Message], report: str) -> Made:
    """What a transcript shows of it: names of files in what tools and its own children answered, files that it sent,
    `MEDIA:` lines of its report, pictures that tools made.
    """
    places: dict[str, None] = {}
    pictures: list[Image] = []
    failed = {message.call_id for message in messages if isinstance(message, ToolResult) and message.is_error}
    for message in messages:
        if isinstance(message, Assistant):
            places |= dict.fromkeys(_sent(message, failed))
            continue
        found = _HANDLE.findall(joined(message.content))
        places |= dict.fromkeys(found)
        if isinstance(message, ToolResult) and message.name not in _LOOKING and not found:
            pictures += [part for part in message.content if isinstance(part, Image)]
    places |= dict.fromkeys(place.strip("`\"' ") for place in _MEDIA.findall(report))
    named = [place for place in places if place and "://" not in place.removeprefix("media://")]
    return Made(tuple(named[-FILES:]), tuple(pictures[-PICTURES:]))


def _sent(message: Assistant, failed: set[str]) -> list[str]:
    """The files of its messages that were not refused."""
    calls = [call for call in message.calls if call.name == "message" and call.id not in failed]
    given = [call.arguments.get("files") for call in calls]
    return [place for files in given if isinstance(files, list) for place in files if isinstance(place, str)]


_HANDLE = later(r"media://[a-z]{1,20}/[0-9a-f]{16}\b")
_MEDIA = later(r"(?m)^[ \t]*MEDIA:[ \t]*(\S.{0,500}?)[ \t]*$")
_LOOKING: Final = frozenset(("view_image", "image", "read", "pdf"))
"""Tools that show what is there already."""
FILES: Final = 20
PICTURES: Final = 4

_STATUS: Final[Mapping[str, str]] = {
    "ok": "done, and its report is to be checked by you",
    "error": "it failed ({0})",
    "timeout": "it timed out ({0})",
    "stopped": "it was stopped",
    "lost": "restarts interrupted it too often; what it had begun may be half done: check",
    "over": "it was stopped, for {0}",
    "": "it goes on",
}


def stats(child: Child, now: int = 0) -> str:
    """How long it took, until `now` where it is still at work, and what it used, in a line."""
    took = max(0, (child.ended_at or now or child.created_at) - (child.started_at or child.created_at)) // 1000
    cost = f" · ${child.cost:.4f}" if child.cost else ""
    return f"runtime {duration(took)} · tokens {child.tokens_in} in, {child.tokens_out} out{cost} · session {child.key}"


def duration(seconds: int) -> str:
    """`5m12s`."""
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    parts = ((hours, "h"), (minutes, "m"), (rest, "s"))
    return "".join(f"{number}{unit}" for number, unit in parts if number) or "0s"


def find(children: Sequence[Child], which: str) -> tuple[Child | None, str]:
    """(the child meant, why none): by its number in `children` from 1, session key, run id, label, or the beginning of
    one of these that no other has.
    """
    wanted = which.strip().lstrip("#")
    if wanted.isascii() and wanted.isdigit() and 0 < int(wanted) <= len(children):
        return children[int(wanted) - 1], ""
    exact = [child for child in children if wanted in (child.key, child.run_id, child.label)]
    begun = [child for child in children if wanted and any(name.startswith(wanted) for name in _names(child))]
    for found in (exact, begun):
        if len(found) == 1:
            return found[0], ""
        if found:
            return None, f"{which[:80]!r} means {len(found)} sub-agents: name one by its number or session"
    if wanted.isascii() and wanted.isdigit() and len(wanted) < 4:
        return None, f"there is no sub-agent {int(wanted)}; {_counted(len(children))}"
    return None, f"there is no sub-agent {which[:80]!r} here"


def _counted(count: int) -> str:
    if not count:
        return "none was made in this conversation"
    return "there is only one" if count == 1 else f"they are numbered 1 to {count}"


def _names(child: Child) -> tuple[str, ...]:
    return child.label, child.run_id, child.key, child.key.rpartition(":")[2]
