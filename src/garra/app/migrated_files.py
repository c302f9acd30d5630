"""The files of an installation that something is taken over into: what stands there, and putting more beside it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from garra.config.load import Snapshot
from garra.config.paths import Paths
from garra.core import dotted, foreign, json5, jsonedit
from garra.core.errors import Forbidden
from garra.core.migration import File, Found, Here, Item, Kind, Words
from garra.domains.context.workspace import templates
from garra.io.files import atomic

PRIVATE, OWN = 0o600, 0o644


class Desk:
    """`aside` is where what is replaced goes to. All calls block."""

    def __init__(self, paths: Paths, snapshot: Snapshot, aside: Path | None = None) -> None:
        self._paths, self._snapshot, self._aside = paths, snapshot, aside
        self._blank = templates()

    def here(self, source: Found, sessions: Mapping[str, str]) -> Here:
        """What stands here already of what a source holds. `sessions` gives the session id of each key."""
        differing, same = set(), set()
        documents: set[Kind] = set()
        for item in source.items:
            states = {self._state(item.agent, each) for each in _files(item)}
            if "differs" in states:
                differing.add(item.id)
            elif states == {"same"} or self._same(item, sessions):
                same.add(item.id)
            if item.kind == "auth" and self._logins(item.agent).is_file():
                documents.add("auth")
        if self._cron.is_file():
            documents.add("cron")
        configured = bool(self._snapshot.parsed)
        return Here(configured, frozenset(sessions), frozenset(differing), frozenset(same), frozenset(documents))

    def _same(self, item: Item, sessions: Mapping[str, str]) -> bool:
        match item.kind:
            case "session":
                return bool(sessions.get(item.content.key) == item.content.session_id)
            case "archive":
                return (self._paths.sessions(item.agent) / f"{item.content.session_id}.jsonl").is_file()
            case "cron":
                return bool(_json(self._cron) == item.content)
            case "auth":
                had = _json(self._logins(item.agent)).get("profiles")
                return isinstance(had, dict) and set(item.content.get("profiles") or {}) <= set(had)
            case "config":
                # written with a line end that the source may lack
                had = self._snapshot.raw or ""
                return isinstance(item.content, str) and had.rstrip() == self.settled(item.content).rstrip()
            case _:
                return False

    @property
    def _cron(self) -> Path:
        return self._paths.state / "cron" / "jobs.json"

    def workspace(self, agent: str) -> Path:
        return self._paths.workspace(agent, self._snapshot.config)

    def files(self, item: Item) -> str:
        """Put an item's files into the workspace of its agent. What they replace is kept aside."""
        count = sum(self._put(item.agent, each) for each in _files(item))
        return f"{count} files in {self.workspace(item.agent)}"

    def document(self, path: Path, content: Any) -> None:
        """Put a JSON document in its place."""
        atomic.folder(path.parent)
        self._keep(path)
        atomic.write(path, f"{json.dumps(content, ensure_ascii=False, indent=2)}\n".encode(), PRIVATE)

    def logins(self, item: Item) -> str:
        """Put logins beside those that an agent has; its own are not replaced."""
        path = self._logins(item.agent)
        had = _json(path)
        old = had.get("profiles") if isinstance(had.get("profiles"), dict) else {}
        new = {name: row for name, row in dict(item.content.get("profiles") or {}).items() if name not in (old or {})}
        self.document(path, {"version": 1, **had, "profiles": {**new, **(old or {})}})
        return f"{len(new)} logins"

    @staticmethod
    def settled(text: str) -> str:
        """A foreign configuration's text for this place: workspaces are our own."""
        root = json5.parse(text)
        for at in (("agents", "defaults", "workspace"), *_listed(root)):
            if json5.find(json5.parse(text), at) is not None:
                text = jsonedit.remove(text, at)
        return text

    def _logins(self, agent: str) -> Path:
        return self._paths.agents / agent / "agent" / "auth-profiles.json"

    def _target(self, agent: str, named: str) -> Path:
        """Raises Forbidden for a name that leads out of the workspace."""
        root = self.workspace(agent)
        target = root / named
        if not target.resolve().is_relative_to(root.resolve()):
            raise Forbidden(f"{named} leads out of the workspace")
        return target

    def _state(self, agent: str, each: File | Words) -> str:
        target = self._target(agent, each.target)
        if not target.is_file():
            return "absent"
        old = target.read_bytes()
        if old == self._wanted(each, old.decode("utf-8", "replace")):
            return "same"
        blank = self._blank.get(each.target)
        mine = blank is not None and old.decode("utf-8", "replace") == blank
        return "absent" if mine or (isinstance(each, Words) and each.behind) else "differs"

    @staticmethod
    def _wanted(each: File | Words, old: str) -> bytes:
        if isinstance(each, File):
            return Path(each.source).read_bytes()
        return (foreign.joined(old, each.text, each.target) if each.behind else each.text).encode()

    def _put(self, agent: str, each: File | Words) -> int:
        target = self._target(agent, each.target)
        old = target.read_bytes() if target.is_file() else b""
        new = self._wanted(each, old.decode("utf-8", "replace"))
        if old == new:
            return 0
        self._keep(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        executable = isinstance(each, File) and Path(each.source).stat().st_mode & 0o100
        atomic.write(target, new, 0o755 if executable else OWN)
        return 1

    def _keep(self, path: Path) -> None:
        """What stands at a path goes aside, under its whole name."""
        if self._aside is None or not path.is_file():
            return
        place = self._aside / path.relative_to(path.anchor)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(path.read_bytes())
        place.chmod(PRIVATE)


def _files(item: Item) -> Iterator[File | Words]:
    if item.kind in ("workspace", "memory", "skill"):
        yield from item.content


def _json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _listed(root: json5.Node) -> Iterator[dotted.Path]:
    """Where an agent of the list names a workspace."""
    agents = json5.find(root, ("agents", "list"))
    for at in range(len(agents.items) if agents is not None else 0):
        yield ("agents", "list", at, "workspace")
