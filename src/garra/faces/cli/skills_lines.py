"""What `garra skills` says, in words and as JSON."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from garra.core.characters import escaped, quoted
from garra.core.errors import NotFound
from garra.domains.skills import look

HEADS = ("SKILL", "STATE", "FROM", "WHAT IT IS FOR")
SHOWN = 8
DIFF = 120
"""Lines of a difference that are shown."""
HINT = "To look at (a search for the usual, which finds no clever thing; that it finds nothing promises nothing):"


def meant(rows: Sequence[dict[str, Any]], name: str) -> dict[str, Any]:
    """The skill of that name, else of that key, else of the same letters. Raises NotFound."""

    def plain(text: str) -> str:
        return "".join(letter for letter in text.casefold() if letter.isalnum())

    for fits in (
        [row for row in rows if row["name"] == name],
        [row for row in rows if row["skillKey"] == name],
        [row for row in rows if plain(row["name"]) == plain(name) or plain(Path(row["baseDir"]).name) == plain(name)],
    ):
        if len(fits) == 1:
            return fits[0]
    near = difflib.get_close_matches(name, [row["name"] for row in rows], n=1)
    raise NotFound(f"there is no skill {quoted(name[:80])}{f'; did you mean {near[0]}?' if near else ''}")


def listed(row: Mapping[str, Any], *, verbose: bool) -> tuple[str, str, str, str]:
    state = "ready" if row["eligible"] else (row["reasons"][0] if row.get("reasons") else "not ready")
    if verbose and len(row.get("reasons", ())) > 1:
        state = "; ".join(row["reasons"])
    if (row.get("installed") or {}).get("changed"):
        state += ", changed since install"
    source = (row.get("installed") or {}).get("origin") or row["source"].removeprefix("openclaw-")
    said = row["description"]
    return escaped(row["name"]), state, source, said if verbose or len(said) <= 70 else f"{said[:69]}…"


def info(row: Mapping[str, Any]) -> Iterator[str]:
    yield f"{row['name']}: {row['description']}"
    yield f"  in {row['baseDir']}"
    if row.get("homepage"):
        yield f"  says it is from {row['homepage']}"
    if known := row.get("installed"):
        version = f" at {known['version'][:12]}" if known["version"] else ""
        yield f"  installed from {known['origin']}{version}, {known['files']} files"
        yield f"  {_changed(known['changed'])}" if known["changed"] else "  as it was installed"
    yield "  ready" if row["eligible"] else f"  not used: {'; '.join(row.get('reasons', ()))}"
    yield from _asked(row)
    if written := row.get("written"):
        yield "Turns that had read it wrote:"
        yield from (f"  {_wrote(one)}" for one in written[-SHOWN:])


def offered(told: Mapping[str, Any]) -> Iterator[str]:
    """Before an install."""
    yield f"{told['name']}: {told['description']}"
    version = f" at {told['version'][:12]}" if told["version"] else ""
    pinned = f", SHA-256 {told['archiveSha256']}" if told["archiveSha256"] else ""
    yield f"  from {told['origin']}{version}{pinned}"
    yield f"  to {told['folder']}, {len(told['files'])} files, {told['bytes']:,} bytes"
    yield from _asked(told)


def _asked(told: Mapping[str, Any]) -> Iterator[str]:
    """What it asks for, what nobody sees, what is worth a look."""
    asks = list(look.lines(told.get("asks", {})))
    if asks:
        yield "It asks for:"
        yield from (f"  {line}" for line in asks)
    if told.get("unseen"):
        yield "It holds characters that nobody sees; read it with care, or not at all:"
        yield from (f"  {line}" for line in _some(told["unseen"]))
    if told.get("hints"):
        yield HINT
        yield from (f"  {line}" for line in _some(told["hints"]))


def _some(lines: Sequence[str]) -> Iterator[str]:
    yield from lines[:SHOWN]
    if len(lines) > SHOWN:
        yield f"and {len(lines) - SHOWN} more"


def _changed(changed: Mapping[str, Sequence[str]]) -> str:
    words = (("changed", changed["changed"]), ("new", changed["added"]), ("gone", changed["gone"]))
    said = ", ".join(f"{word}: {', '.join(map(escaped, paths))}" for word, paths in words if paths)
    return f"changed since install ({said})"


def _wrote(one: Mapping[str, Any]) -> str:
    return f"{one.get('path', '')} (session {one.get('session', '')})"


def checked(told: Mapping[str, Any]) -> Iterator[str]:
    counts = told["summary"]
    yield (
        f"{counts['total']} skills: {counts['eligible']} ready, {counts['missingRequirements']} lack something, "
        f"{counts['disabled']} switched off, {counts['changedSinceInstall']} changed since install"
    )
    for one in told["missingRequirements"]:
        lacking = [f"{kind}: {', '.join(names)}" for kind, names in one["missing"].items() if names]
        yield f"  {one['name']} lacks {'; '.join(lacking)}"
        yield from (f"    {hint['label']} (a hint; Garra runs none)" for hint in one["install"] if hint["label"])
    yield from (f"  {one['name']}: {_changed(one)}" for one in told["changedSinceInstall"])
    if told["agentFiltered"]:
        yield f"  not for this agent: {', '.join(told['agentFiltered'])}"


def told(anew: Any) -> dict[str, Any]:
    """An update, as JSON."""
    changes = anew.changes
    return {
        "name": anew.record.name,
        "folder": anew.record.folder,
        "origin": anew.offer.fetched.origin.shown,
        "from": anew.record.version or anew.record.archive or None,
        "to": anew.offer.fetched.version or anew.offer.fetched.archive or None,
        "added": list(changes.added),
        "changed": list(changes.changed),
        "gone": list(changes.gone),
        "own": list(anew.own.changed + anew.own.added),
        "asks": {name: list(found) for name, found in anew.offer.look.asks.items()},
        "unseen": list(anew.offer.look.unseen),
        "hints": list(anew.offer.hits),
    }


def changes(anew: Any) -> Iterator[str]:
    """An update, for a person: the files, the difference of each text, what it asks for now."""
    record, fetched = anew.record, anew.offer.fetched
    before, now = (text[:12] for text in (record.version or record.archive, fetched.version or fetched.archive))
    yield f"{record.name}: from {fetched.origin.shown}{f' ({before} → {now})' if now else ''}"
    yield from (f"  {line}" for line in anew.changes.lines())
    if anew.own:
        yield f"  what you have changed since would go ({anew.own.words()}); --force keeps it aside"
    lines = list(_differences(Path(record.folder), anew))
    yield from (escaped(line) for line in lines[:DIFF])
    if len(lines) > DIFF:
        yield f"… and {len(lines) - DIFF} more lines"
    yield from _asked(told(anew))


def _differences(folder: Path, anew: Any) -> Iterator[str]:
    for path in (*anew.changes.changed, *anew.changes.added):
        data = anew.offer.fetched.files[path]
        old = (folder / path).read_bytes() if path in anew.changes.changed else b""
        if b"\0" not in data + old:
            before, now = (each.decode("utf-8", "replace").splitlines() for each in (old, data))
            yield from difflib.unified_diff(before, now, f"a/{path}", f"b/{path}", lineterm="", n=2)


def removed(gone: Any, written: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield f"{gone.record.name} is gone: {len(gone.files)} files."
    if gone.kept:
        yield f"What was changed or added since ({', '.join(map(escaped, gone.kept[:SHOWN]))}) is in {gone.aside}"
    if written:
        yield "Turns that had read it wrote these files, which stay; look at them:"
        yield from (f"  {_wrote(one)}" for one in written[-SHOWN:])


def removed_json(gone: Any, written: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {
        "removed": True,
        "name": gone.record.name,
        "folder": gone.record.folder,
        "files": list(gone.files),
        "kept": list(gone.kept),
        "aside": gone.aside or None,
        "written": list(written),
    }
