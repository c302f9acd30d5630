"""What a nanobot home (`~/.nanobot`) holds: config.json, workspace, sessions as JSON lines. Blocks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from garra.core import foreign
from garra.core.errors import UserError
from garra.core.migration import Chat, Found, Item
from garra.domains.migration import files, notes

NAME: Final = "nanobot"


def found(source: Path) -> Found:
    """Everything there is. Raises UserError where `source` is no such folder."""
    config = source / "config.json"
    if not config.is_file():
        raise UserError(f"{source} is no nanobot home: it has no config.json; say --from DIR")
    plain = notes.mapping(files.document(config))
    defaults = notes.mapping(notes.mapping(plain.get("agents")).get("defaults"))
    workspace = Path(str(defaults.get("workspace") or source / "workspace")).expanduser()
    if not workspace.is_dir():
        workspace = source / "workspace"
    items = [*_config(plain, defaults), *_workspace(workspace)]
    for folder in (workspace / "sessions", source / "sessions"):
        items += _sessions(folder)
    jobs = notes.mapping(files.document(source / "cron" / "jobs.json")).get("jobs")
    if isinstance(jobs, list) and jobs:
        items.append(Item("cron", "cron", f"{len(jobs)} scheduled jobs", {"version": 1, "jobs": jobs, "from": NAME}))
    return Found(NAME, str(source), tuple({item.id: item for item in items}.values()))


def _config(plain: Mapping[str, Any], defaults: Mapping[str, Any]) -> Iterator[Item]:
    providers: dict[str, Any] = {}
    keys: dict[str, str] = {}
    for name, row in notes.mapping(plain.get("providers")).items():
        row = notes.mapping(row)
        if row.get("apiKey"):
            keys[str(name)] = str(row["apiKey"])
        if row.get("apiBase"):
            providers[str(name)] = {"baseUrl": str(row["apiBase"]), "api": "openai-completions", "models": []}
    merged: dict[str, Any] = {"models": {"providers": providers}} if providers else {}
    if defaults.get("model"):
        merged["agents"] = {"defaults": {"model": {"primary": _model(str(defaults["model"]), keys)}}}
    if merged:
        yield Item("config", "config", "model and providers (config.json)", merged)
    if keys:
        yield Item("auth:main", "auth", f"keys of {', '.join(sorted(keys))}", notes.profiles(keys), secret=True)
    for name, row in notes.mapping(plain.get("channels")).items():
        if notes.mapping(row).get("enabled"):
            yield Item(f"manual:{name}", "manual", f"channel {name}", note=f"set it up: garra channels add {name}")


def _model(name: str, keys: Mapping[str, str]) -> str:
    return name if "/" in name or len(keys) != 1 else f"{next(iter(keys))}/{name}"


def _workspace(folder: Path) -> Iterator[Item]:
    listed = tuple(each for each in files.tree(folder) if not each.target.startswith("sessions/"))
    if listed:
        yield Item("workspace:main", "workspace", f"workspace ({len(listed)} files, {folder})", listed)


def _sessions(folder: Path) -> Iterator[Item]:
    for path in sorted(folder.glob("*.jsonl")):
        rows = [row for line in files.text(path).splitlines() if isinstance(row := _row(line), dict)]
        said = [row for row in rows if row.get("role") in ("user", "assistant") and isinstance(row.get("content"), str)]
        if not said:
            continue
        head = next((row for row in rows if row.get("_type") == "metadata"), {})
        session_id = re.sub(r"[^a-z0-9._-]+", "-", path.stem.lower()).strip("-.")[:100] or "session"
        messages = [{"role": row["role"], "text": row["content"], "ts": _when(row.get("timestamp"))} for row in said]
        key = f"agent:main:{_key(str(head.get('key') or path.stem.replace('_', ':', 1)))}"
        last = messages[-1]["ts"]
        entry = {"sessionId": session_id, "updatedAt": last, "createdAt": messages[0]["ts"], "createdVia": NAME}
        lines = foreign.told(session_id, "", messages, messages[0]["ts"])
        yield Item(f"session:{session_id}", "session", f"{key} ({len(said)} messages)", Chat(key, "main", entry, lines))


def _key(name: str) -> str:
    """`telegram:1001` is a direct chat; the command line's own is the main one."""
    channel, _, peer = name.lower().partition(":")
    if channel in ("cli", "webui", "websocket") or not peer:
        return f"{NAME}-{re.sub(r'[^a-z0-9-]+', '-', name.lower()).strip('-') or 'main'}"
    return f"{channel}:direct:{peer}"


def _row(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None


def _when(text: Any) -> int:
    try:
        return round(datetime.fromisoformat(str(text)).timestamp() * 1_000)
    except ValueError:
        return 0
