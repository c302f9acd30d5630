"""Plugins that the configuration names and that are not there: most often a slip of the pen."""

from __future__ import annotations

import difflib
from importlib import resources
from pathlib import Path

from garra.config.issue import Issue, issue
from garra.config.load import Snapshot
from garra.config.paths import Paths
from garra.domains.plugins import discover


def complaints(paths: Paths, snapshot: Snapshot) -> tuple[Issue, ...]:
    """One warning for each of `plugins.entries` that no plugin here is called. No plugin code runs."""
    written = snapshot.merged.get("plugins")
    entries = written.get("entries") if isinstance(written, dict) else None
    if not isinstance(entries, dict) or not entries:
        return ()
    known = _known(paths)
    return tuple(issue(("plugins", "entries", name), _words(name, known)) for name in entries if name not in known)


def _known(paths: Paths) -> set[str]:
    """Ids, and the folders of those whose manifest is broken: they are there, though they do not work."""
    box = Path(str(resources.files("garra") / "builtin"))
    roots = (discover.bundled(box), discover.installed(), discover.extensions(paths.extensions))
    return {one.id if isinstance(one, discover.Plugin) else one.folder.name for root in roots for one in root}


def _words(name: str, known: set[str]) -> str:
    near = difflib.get_close_matches(name, sorted(known), n=1)
    return f"no plugin is called {name}" + (f"; did you mean {near[0]}?" if near else "; see garra plugins list")
