"""Dreaming done: the files are read, phases noted, proposals stored, MEMORY.md changed when somebody says so.

Only `apply` writes to MEMORY.md, and only what still stands where it was found; `undo` takes the same lines out again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import UTC, datetime, tzinfo
from functools import partial
from pathlib import Path
from typing import Any, Final

from garra.core import dreams, taint
from garra.core.dreaming import (
    SPOKEN,
    Bar,
    Candidate,
    Noted,
    Ranked,
    Recall,
    Theme,
    about,
    age,
    diary_day,
    digest,
    known,
    noted,
    proposed,
    ranked,
    said,
    staged,
    themes,
)
from garra.core.errors import Conflict, GarraError, NotFound, UserError
from garra.core.value import frozen, replace
from garra.domains.memory import recalls, sources
from garra.domains.memory.recalls import Dream
from garra.domains.memory.sources import LARGEST, Places, Source, found
from garra.io.store.db import Database
from garra.sdk.ports import Clock, Files

log = logging.getLogger(__name__)

PHASES: Final = ("light", "rem", "deep")
MEMORY: Final = "MEMORY.md"
PAGES: Final = "DREAMS.md"
LIMIT: Final = 256 << 10
"""Bytes of DREAMS.md; the oldest nights go first."""
LIGHT_DAYS, REM_DAYS = 2.0, 7.0
"""How old a line may be that each phase looks at."""
SHOWN: Final = 20

Thought = tuple[str, Mapping[str, Any]]
"""What a model said, and what it cost."""


@frozen
class Ground:
    """What one agent's dreaming works with. `files` is its workspace; `think` asks a model, None where none is."""

    agent: str
    db: Database
    places: Places
    files: Files
    clock: Clock
    zone: tzinfo
    new_id: Callable[[], str]
    lock: asyncio.Lock
    think: Callable[[str], Awaitable[Thought]] | None = None

    @property
    def today(self) -> str:
        return f"{datetime.fromtimestamp(self.clock.now_ms() / 1000, self.zone):%Y-%m-%d}"


@frozen
class Night:
    """One sweep: which phases, whether anything is written, what a line must reach, `room` in MEMORY.md's file in
    characters, and whether clean lines are put in without asking.
    """

    phases: tuple[str, ...] = PHASES
    dry: bool = False
    bar: Bar = Bar()
    chars: int = 20_000
    auto: bool = False


@frozen
class Seen:
    """What a sweep found."""

    candidates: tuple[Candidate, ...]
    themes: tuple[Theme, ...]
    rows: tuple[Ranked, ...]
    taken: tuple[Ranked, ...]
    left: tuple[Ranked, ...]


async def dream(ground: Ground, night: Night) -> dict[str, Any]:
    """One sweep over one agent's memory; what it found and proposes. Nothing is written where it is `dry`."""
    candidates = await _staged(ground, night)
    found_themes = _themes(ground, candidates) if "rem" in night.phases else ()
    if not night.dry:
        await _meet(ground, night, candidates, found_themes)
        candidates = await _staged(ground, night)
    seen = await look(ground, night, candidates, found_themes)
    made: list[Dream] = []
    if "deep" in night.phases and not night.dry:
        made = [await _decided(ground, night, each) for each in await _propose(ground, night, seen.taken)]
    thought, cost = await _thought(ground, night, found_themes)
    if not night.dry:
        await _paged(ground, seen, made, thought)
    return {
        "agentId": ground.agent,
        "phases": list(night.phases),
        "dryRun": night.dry,
        "candidates": len(candidates),
        "themes": [{"word": each.word, "count": each.count} for each in found_themes],
        "proposed": [told(row) for row in seen.taken],
        "left": [told(row) for row in seen.left[:SHOWN]],
        "dreams": [each.json for each in made],
        **({"reflection": thought, "usage": dict(cost)} if thought else {}),
    }


async def look(ground: Ground, night: Night, candidates: Iterable[Candidate], named: tuple[Theme, ...] = ()) -> Seen:
    """The deep phase without a word of it written."""
    if "deep" not in night.phases:
        return Seen(tuple(candidates), named, (), (), ())
    every = tuple(candidates)
    memory = await asyncio.to_thread(_read, ground.files, MEMORY)
    there = known(memory, await ground.db.read(partial(_before, agent=ground.agent)))
    rows = ranked(every, ground.clock.now_ms(), night.bar, there)
    taken, left = proposed(rows, night.bar, night.chars - len(memory))
    return Seen(every, named, rows, taken, left)


async def explained(ground: Ground, night: Night, selector: str) -> dict[str, Any]:
    """Of each candidate whose words, place or digest hold `selector`: its score, and what keeps it out."""
    seen = await look(ground, night, await _staged(ground, night))
    kept = {row.candidate.digest for row in seen.taken}
    sought = selector.lower()
    rows = [row for row in (*seen.taken, *seen.left) if sought in _names(row).lower()]
    return {
        "agentId": ground.agent,
        "candidates": [{**told(row), "promoted": row.candidate.digest in kept} for row in rows[:SHOWN]],
    }


def _names(row: Ranked) -> str:
    line = row.candidate.noted
    return f"{row.candidate.digest} {line.path}#L{line.line} {line.text}"


async def listed(ground: Ground, state: str = "") -> dict[str, Any]:
    """The proposals, the newest first."""
    rows = await ground.db.read(partial(recalls.dreams, agent=ground.agent, state=state))
    return {"agentId": ground.agent, "dreams": [each.json for each in rows]}


async def shown(ground: Ground, id_: str) -> dict[str, Any]:
    """One proposal with the change it makes, or made. Raises NotFound."""
    one = await _one(ground, id_)
    memory = await asyncio.to_thread(_read, ground.files, MEMORY)
    if one.state == "applied":
        return {**one.json, "diff": dreams.diff(dreams.without(memory, one.lines).text, memory, MEMORY)}
    lines, gone = await _standing(ground, one)
    after = dreams.added(memory, lines, ground.today) if lines else memory
    return {**one.json, "diff": dreams.diff(memory, after, MEMORY), "gone": list(gone)}


async def decide(ground: Ground, id_: str, step: str, *, by: str, confirmed: bool = False) -> dict[str, Any]:
    """`apply`, `refuse` or `undo` a proposal. `confirmed`: a person has seen that some of it came from outside.

    Raises NotFound, Conflict for what cannot follow upon its state, and UserError where a person is needed.
    """
    async with ground.lock:
        one = await _one(ground, id_)
        if step == "undo":
            return await _undo(ground, one, by)
        if one.state == "applied":
            raise Conflict(f"the dream {one.id} is applied already; `garra memory dreams undo {one.id}` takes it back")
        if step == "refuse":
            done = await _put(ground, replace(one, state="refused"), by)
            return {**done.json, "diff": ""}
        if one.outside and not confirmed:
            raise UserError(
                f"the dream {one.id} has lines of somebody else or from outside: a person has to look at it and "
                "confirm it"
            )
        return await _apply(ground, one, by)


async def _apply(ground: Ground, one: Dream, by: str) -> dict[str, Any]:
    lines, gone = await _standing(ground, one)
    if not lines:
        raise Conflict(f"no line of the dream {one.id} stands where it was found any more")
    memory = await asyncio.to_thread(_read, ground.files, MEMORY)
    after = dreams.added(memory, lines, ground.today)
    await asyncio.to_thread(ground.files.write, MEMORY, after.encode("utf-8", "replace"))
    done = await _put(ground, replace(one, state="applied", lines=lines), by)
    return {**done.json, "diff": dreams.diff(memory, after, MEMORY), "gone": list(gone)}


async def _undo(ground: Ground, one: Dream, by: str) -> dict[str, Any]:
    if one.state != "applied":
        raise Conflict(f"the dream {one.id} is {one.state}: there is nothing to undo")
    memory = await asyncio.to_thread(_read, ground.files, MEMORY)
    taken = dreams.without(memory, one.lines)
    if taken.gone:
        await asyncio.to_thread(ground.files.write, MEMORY, taken.text.encode("utf-8", "replace"))
    done = await _put(ground, replace(one, state="undone"), by)
    return {**done.json, "diff": dreams.diff(memory, taken.text, MEMORY), "gone": list(taken.missing)}


async def _put(ground: Ground, one: Dream, by: str) -> Dream:
    done = replace(one, decided_at=ground.clock.now_ms(), by=by)
    await ground.db.write(partial(recalls.put, dream=done))
    return done


async def _one(ground: Ground, id_: str) -> Dream:
    one = await ground.db.read(partial(recalls.dream, agent=ground.agent, id_=id_))
    if one is None:
        raise NotFound(f"there is no dream {id_[:40]!r}; `garra memory dreams list` shows them")
    return one


async def _standing(ground: Ground, one: Dream) -> tuple[tuple[dreams.Line, ...], tuple[str, ...]]:
    """(the lines as they stand now, the words of those that do not). One that has come to be somebody else's since, or
    to be from outside, is no longer what was proposed.
    """
    paths = {each.path for each in one.lines}
    asked = {each.digest: Recall(each.digest, each.path, each.line) for each in one.lines}
    lines = await asyncio.to_thread(material, ground.places, asked, lambda path: path in paths)
    stands = {digest(each.text): each for each in lines}
    kept, gone = [], []
    for each in one.lines:
        now = stands.get(each.digest)
        if now is None or (now.outside and not each.outside):
            gone.append(each.text)
        else:
            kept.append(replace(each, path=now.path, line=now.line))
    return tuple(kept), tuple(gone)


async def _staged(ground: Ground, night: Night) -> tuple[Candidate, ...]:
    """The light phase: all lines of the last weeks, with how they were found."""
    every = await ground.db.read(partial(recalls.every, agent=ground.agent))
    oldest = ground.clock.now_ms() - (night.bar.max_age + 1) * 86_400_000
    since = f"{datetime.fromtimestamp(max(0.0, oldest) / 1000, UTC):%Y-%m-%d}"
    lines = await asyncio.to_thread(material, ground.places, every, lambda path: diary_day(path) >= since)
    return staged(lines, every)


def _themes(ground: Ground, candidates: Iterable[Candidate]) -> tuple[Theme, ...]:
    now = ground.clock.now_ms()
    return themes(each for each in candidates if age(each, now) <= REM_DAYS)


async def _meet(ground: Ground, night: Night, candidates: tuple[Candidate, ...], named: tuple[Theme, ...]) -> None:
    now = ground.clock.now_ms()
    phases = {
        "light": [each.digest for each in candidates if "light" in night.phases and age(each, now) <= LIGHT_DAYS],
        "rem": [each.digest for each in candidates if about(each, named)],
    }
    await ground.db.write(partial(recalls.met, agent=ground.agent, phases=phases, now=now))


async def _propose(ground: Ground, night: Night, rows: Iterable[Ranked]) -> list[Dream]:
    """The lines as proposals: the owner's own, and apart from them what needs a person to look at it."""
    lines = [dreams.of(row, night.bar) for row in rows]
    made = []
    for outside in (False, True):
        mine = tuple(each for each in lines if each.outside == outside)
        if mine:
            one = Dream(ground.new_id()[:8], ground.agent, ground.clock.now_ms(), "proposed", outside, mine)
            await ground.db.write(partial(recalls.put, dream=one))
            made.append(one)
    return made


async def _decided(ground: Ground, night: Night, one: Dream) -> Dream:
    """What `auto` puts in at once: never what came from outside."""
    if not night.auto or one.outside:
        return one
    try:
        await decide(ground, one.id, "apply", by="auto")
    except GarraError as fault:
        log.warning("the dream %s waits for its owner: %s", one.id, fault.message)
    return await _one(ground, one.id)


def _before(connection: Any, agent: str) -> dict[str, str]:
    """What became of lines that were proposed before; one that was undone is not proposed again either."""
    words = {
        "proposed": "the dream {} proposes it already", "refused": "it was refused in the dream {}",
        "undone": "it was taken back with the dream {}", "applied": "the dream {} put it in",
    }  # fmt: skip
    rows = recalls.dreams(connection, agent)
    return {line.digest: words[each.state].format(each.id) for each in rows for line in each.lines}


async def _thought(ground: Ground, night: Night, named: tuple[Theme, ...]) -> Thought:
    """What a model makes of the themes; nothing where none is asked, or where it cannot be."""
    if ground.think is None or not named or night.dry:
        return "", {}
    rows = [f"{each.word} ({each.count} times): {' / '.join(each.texts)}" for each in named]
    try:
        return await ground.think("\n".join(rows))
    except GarraError as fault:
        log.warning("no model reflected on the day: %s", fault.message)
        return "", {}


async def _paged(ground: Ground, seen: Seen, made: list[Dream], thought: str) -> None:
    """A page of DREAMS.md, for people; an empty night leaves none."""
    if not made and not seen.themes:
        return
    told_of = ", ".join(f"{len(each.lines)} in {each.id} ({each.state})" for each in made) or "nothing is proposed"
    counts = f"{len(seen.candidates)} lines were looked at; {told_of}."
    entry = dreams.page(ground.today, seen.themes, counts, thought)

    def write() -> None:
        name = "dreams.md" if ground.files.stat(PAGES) is None and ground.files.stat("dreams.md") else PAGES
        old = _read(ground.files, name) or "# Dreams\n"
        text = f"{old.rstrip()}\n\n{entry}"
        while len(text.encode("utf-8", "replace")) > LIMIT and "\n## " in text[1:]:
            text = "# Dreams\n" + text[text.index("\n## ", text.index("\n## ") + 1) :]
        ground.files.write(name, text.encode("utf-8", "replace"))

    await asyncio.to_thread(write)


def told(row: Ranked) -> dict[str, Any]:
    """A ranked line as it is told."""
    line = row.candidate.noted
    recall = row.candidate.recall
    return {
        "digest": row.candidate.digest,
        "text": line.text,
        "path": line.path,
        "line": line.line,
        "score": row.score,
        "parts": {name: round(part, 3) for name, part in row.parts.items()},
        "recallCount": row.candidate.signals,
        "uniqueQueries": len(recall.queries) if recall else 0,
        "owner": line.owner,
        "read": line.read,
        "why": list(row.why),
    }


def _read(files: Files, name: str) -> str:
    return "" if files.stat(name) is None else files.read(name, LARGEST).decode("utf-8", "replace")


def material(places: Places, every: Mapping[str, Recall], wanted: Callable[[str], bool]) -> list[Noted]:
    """The lines of the diaries that are `wanted` by their paths, and what was said and found again. Blocks."""
    rows = {each.path: each for each in found(places)}
    lines: list[Noted] = []
    for path, source in rows.items():
        if source.kind == "memory" and diary_day(path) and wanted(path):
            lines.extend(noted(Path(source.file).read_text("utf-8", "replace"), path))
    spoken: dict[str, set[int]] = {}
    for recall in every.values():
        if recall.path.startswith(SPOKEN) and recall.path in rows:
            spoken.setdefault(recall.path, set()).add(recall.line)
    for path, numbers in spoken.items():
        lines.extend(_spoken(rows[path], places, numbers))
    return lines


def _spoken(source: Source, places: Places, numbers: set[int]) -> list[Noted]:
    """What people said in the lines of a transcript; what its conversation had read before goes with it."""
    key = sources.key_of(source, places)
    out: list[Noted] = []
    marks: dict[taint.Mark, None] = {}
    with Path(source.file).open("rb") as file:
        for number, raw in enumerate(file, 1):
            if number > max(numbers) or not key:
                break
            if number not in numbers and b'"marks"' not in raw:
                continue
            for _, line in sources.said(raw.rstrip(b"\n"), key, places.main, number):
                marks.update(dict.fromkeys(line.marks))
                read = taint.brief(taint.add(taint.CLEAN, marks)) if marks else ""
                own = said(line.text, source.path, number, owner=line.owner, read=read) if line.role == "user" else None
                out.extend([own] if own is not None and number in numbers else [])
    return out
