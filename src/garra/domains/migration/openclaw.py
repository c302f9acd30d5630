"""What an OpenClaw state folder holds: that of 2026.9 (SQLite) and the older one (JSON files and JSONL). Blocks.

openclaw.json                                  configuration, JSON5, with files that it includes
state/openclaw.sqlite                          pairing, logins (config_machine_state), approvals, cron
agents/<id>/agent/openclaw-agent.sqlite        session_nodes (key -> id, row), transcript_events (lines)
older: agents/<id>/sessions/{sessions.json,*.jsonl}, credentials/<channel>-allowFrom.json, cron/jobs.json,
       exec-approvals.json, agents/<id>/agent/auth-profiles.json
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from garra.config import include
from garra.core import foreign
from garra.core.errors import UserError
from garra.core.migration import Chat, Found, Item, Kind
from garra.domains.migration import files, packed
from garra.io.files import atomic
from garra.io.store import foreign as store
from garra.io.store.foreign import Foreign

NAME: Final = "openclaw"
BOOK: Final = "state/openclaw.sqlite"
AGENT: Final = "agent/openclaw-agent.sqlite"
GROUPS: Final = (":group:", ":channel:")


def found(source: Path) -> Found:
    """Everything there is. Raises UserError where `source` is no such folder."""
    config = source / "openclaw.json"
    if not config.is_file() and not (source / "agents").is_dir():
        raise UserError(f"{source} is no OpenClaw state folder: it has no openclaw.json and no agents; say --from DIR")
    text = files.text(config)
    parsed, text = _whole(config, text)
    warnings: list[str] = []
    items = [*_config(source, text, parsed)]
    items += _workspaces(source, parsed)
    running = _book(source, items)
    for folder in sorted((source / "agents").glob("*")):
        if folder.is_dir() and not folder.is_symlink():
            items += _agent(folder, warnings)
    unique = {item.id: item for item in reversed(items)}
    return Found(NAME, str(source), tuple(reversed(unique.values())), tuple(warnings), running)


def _whole(config: Path, text: str) -> tuple[Mapping[str, Any], str]:
    """The configuration as values, and its text: as it is written, or, where it includes other files, all in one."""
    try:
        plain = include.decode(text or "{}")
    except include.Unreadable:
        return {}, text
    if not isinstance(plain, dict):
        return {}, text
    if "$include" not in text:
        return plain, text
    whole = include.expand(plain, config).tree
    return (whole, json.dumps(whole, ensure_ascii=False, indent=2)) if isinstance(whole, dict) else (plain, text)


def _config(source: Path, text: str, parsed: Mapping[str, Any]) -> Iterator[Item]:
    if text.strip():
        yield Item("config", "config", "configuration (openclaw.json)", text, secret=False)
    for name in ("hooks", "plugins", "extensions"):
        if isinstance(parsed.get(name), Mapping) and parsed[name].get("entries"):
            yield Item(f"manual:{name}", "manual", f"{name} of OpenClaw", note="programs of others; add them by hand")


def _workspaces(source: Path, parsed: Mapping[str, Any]) -> Iterator[Item]:
    agents = parsed.get("agents")
    agents = agents if isinstance(agents, Mapping) else {}
    defaults = agents.get("defaults")
    common = defaults.get("workspace") if isinstance(defaults, Mapping) else None
    rows = agents.get("list")
    named = [row for row in rows if isinstance(row, Mapping)] if isinstance(rows, list) else []
    first = next((row for row in named if row.get("default") is True), named[0] if named else {})
    main = str(first.get("id") or "main")
    places: dict[str, Path] = {main: _place(source, first.get("workspace") or common or source / "workspace")}
    for row in named:
        agent = str(row.get("id", ""))
        if agent and agent != main:
            places[agent] = _place(source, row.get("workspace") or source / f"workspace-{agent}")
    for agent, folder in places.items():
        listed = tuple(files.tree(folder))
        if listed:
            label = f"workspace of {agent} ({len(listed)} files, {folder})"
            yield Item(f"workspace:{agent}", "workspace", label, listed, agent)


def _place(source: Path, named: Any) -> Path:
    place = Path(str(named)).expanduser()
    beside = source / place.name
    return beside if not place.is_dir() and beside.is_dir() else place


def _book(source: Path, items: list[Item]) -> bool:
    """What concerns all agents: who was let in, what may run, logins, jobs. True while its gateway runs."""
    path = source / BOOK
    if not path.is_file():
        items += _people(_older_people(source / "credentials"))
        items += _approvals(files.document(source / "exec-approvals.json"))
        items += _jobs(_listed(files.document(source / "cron" / "jobs.json"), "jobs"))
        return False
    with store.opened(path) as book:
        items += _people(_selected(book, "channel_pairing_allow_entries"))
        items += _approvals(_first(book, "exec_approvals_config", "raw_json"))
        items += _logins(_machine(book, "authProfiles.store"), "main")
        items += _jobs([_document(row.get("job_json")) for row in _selected(book, "cron_jobs")])
        return _running(book)


def _listed(document: Any, name: str) -> list[Any]:
    rows = document.get(name) if isinstance(document, Mapping) else None
    return rows if isinstance(rows, list) else []


def _selected(book: Foreign, table: str) -> list[dict[str, Any]]:
    return list(book.rows(f'SELECT * FROM "{table}"')) if book.has(table) else []


def _first(book: Foreign, table: str, column: str) -> Any:
    return next((_document(row.get(column)) for row in _selected(book, table)), None)


def _machine(book: Foreign, key: str) -> Any:
    rows = _selected(book, "config_machine_state")
    return next((_document(row.get("value_json")) for row in rows if row.get("state_key") == key), None)


def _document(text: Any) -> Any:
    try:
        return json.loads(text) if isinstance(text, str) else None
    except ValueError:
        return None


def _older_people(folder: Path) -> Iterator[dict[str, Any]]:
    """`<channel>-allowFrom.json` and `<channel>-<account>-allowFrom.json`: {"allowFrom": [id, …]}."""
    for path in sorted(folder.glob("*-allowFrom.json")):
        channel, _, account = path.name.removesuffix("-allowFrom.json").partition("-")
        for entry in _listed(files.document(path), "allowFrom"):
            yield {"channel_key": channel, "account_id": account or "default", "entry": str(entry)}


def _people(rows: Iterable[Mapping[str, Any]]) -> Iterator[Item]:
    for row in rows:
        channel, account, entry = (str(row.get(name, "")) for name in ("channel_key", "account_id", "entry"))
        sender = entry.removeprefix(f"{channel}:")
        if sender and sender != "*":
            content = {"channel": channel, "account": account or "default", "sender": sender}
            yield Item(f"pairing:{channel}:{account}:{sender}", "pairing", f"{sender} at {channel}", content)


def _approvals(document: Any) -> Iterator[Item]:
    if isinstance(document, Mapping):
        kept = {name: value for name, value in document.items() if name != "socket"}
        yield Item("approvals", "approvals", "what may run unasked (exec approvals)", kept)


def _logins(document: Any, agent: str) -> Iterator[Item]:
    profiles = document.get("profiles") if isinstance(document, Mapping) else None
    if isinstance(profiles, Mapping) and profiles:
        label = f"logins of {agent}: {', '.join(sorted(map(str, profiles)))}"
        yield Item(f"auth:{agent}", "auth", label, document, agent, secret=True)


def _jobs(jobs: list[Any]) -> Iterator[Item]:
    """The jobs that a person made; the program's own are left out."""
    own = [job for job in jobs if isinstance(job, Mapping) and not job.get("declarationKey")]
    if own:
        names = ", ".join(str(job.get("name", "?")) for job in own)
        yield Item("cron", "cron", f"{len(own)} scheduled jobs: {names}", {"version": 1, "jobs": own})


def _agent(folder: Path, warnings: list[str]) -> Iterator[Item]:
    agent = folder.name
    yield from _logins(files.document(folder / "agent" / "auth-profiles.json"), agent)
    path = folder / AGENT
    if path.is_file():
        with store.opened(path) as book:
            yield from _logins(_first(book, "auth_profile_store", "store_json"), agent)
            chats = list(_newer(book, agent, warnings))
    else:
        chats = []
    seen: set[str] = set()
    for chat in (*chats, *_older(folder / "sessions", agent, warnings)):
        if chat.session_id not in seen:
            seen.add(chat.session_id)
            kind: Kind = "session" if chat.current else "archive"
            count = max(0, len(chat.lines) - 1)
            label = f"{chat.key} ({count} lines)" if chat.current else f"{chat.session_id} ({count} lines, ended)"
            yield Item(f"{kind}:{chat.session_id}", kind, label, chat, agent)


def _newer(book: Foreign, agent: str, warnings: list[str]) -> Iterator[Chat]:
    rows = {str(row["session_key"]): row for row in _selected(book, "session_nodes")}
    current = {str(row["current_session_id"]): key for key, row in rows.items()}
    for window in _selected(book, "session_windows"):
        session_id, key = str(window["session_id"]), str(window["session_key"])
        named = current.get(session_id)
        entry = _document(rows[named]["entry_json"]) if named is not None else None
        entry = entry if isinstance(entry, Mapping) else {"updatedAt": window.get("updated_at")}
        lines = _events(book, session_id)
        known = {**entry, "sessionId": session_id}
        yield _chat(Chat(named or key, agent, known, (), named is not None), lines, warnings)


def _events(book: Foreign, session_id: str) -> Iterator[bytes]:
    query = "SELECT event_json, event_zstd FROM transcript_events WHERE session_id=? ORDER BY seq"
    for row in book.rows(query, (session_id,)):
        text, frame = row["event_json"], row["event_zstd"]
        yield text.encode() if isinstance(text, str) else packed.unpacked(bytes(frame))


def _older(folder: Path, agent: str, warnings: list[str]) -> Iterator[Chat]:
    listed = files.document(folder / "sessions.json")
    entries = {key: row for key, row in listed.items() if isinstance(row, Mapping)} if isinstance(listed, dict) else {}
    named = {str(row.get("sessionId", "")): (key, row) for key, row in entries.items()}
    for path in sorted(folder.glob("*.jsonl")):
        key, entry = named.get(path.stem, ("", {}))
        try:
            rows = path.read_bytes().split(b"\n")
        except OSError as error:
            warnings.append(f"{path} cannot be read: {error.strerror}")
            continue
        yield _chat(Chat(key, agent, {**entry, "sessionId": path.stem}, (), bool(key)), filter(None, rows), warnings)


def _chat(bare: Chat, rows: Iterable[bytes], warnings: list[str]) -> Chat:
    """A conversation with its lines, and its row as ours."""
    group = bare.entry.get("chatType") in ("group", "channel") or any(part in bare.key for part in GROUPS)
    kept, lost = foreign.lines(rows, "OpenClaw", group=group)
    if lost:
        warnings.append(f"{bare.session_id}: {lost} lines cannot be read and are left out")
    return replace(bare, entry=foreign.row(bare.entry), lines=kept)


def _running(book: Foreign) -> bool:
    """Whether its gateway is at work: the last start has no end, and its process lives."""
    starts = sorted(_selected(book, "gateway_boot_lifecycle"), key=lambda row: int(row["started_at_ms"]))
    return bool(starts) and starts[-1]["completed_at_ms"] is None and atomic.alive(int(starts[-1]["pid"]))
