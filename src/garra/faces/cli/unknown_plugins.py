"""What the configuration says of plugins that are not there, or of channels that know no such key: slips of the pen."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

from garra.config import channel_keys, originals
from garra.config.issue import Issue, issue
from garra.config.load import Snapshot
from garra.config.paths import Paths
from garra.config.validate import strange
from garra.domains.plugins import discover


def complaints(paths: Paths, snapshot: Snapshot) -> tuple[Issue, ...]:
    """What is wrong with the names of plugins, and with the keys of channels from outside the box. No code of theirs
    runs."""
    return (*_entries(paths, snapshot), *_channels(paths, snapshot))


def _channels(paths: Paths, snapshot: Snapshot) -> Iterator[Issue]:
    """Of channels from outside the box: the others are looked at wherever a configuration is read."""
    written = snapshot.resolved.get("channels")
    if not isinstance(written, dict) or all(originals.channel_in_the_box(name) for name in written):
        return
    found = [*discover.installed(), *discover.extensions(paths.extensions)]
    manifests = [one.manifest for one in found if isinstance(one, discover.Plugin) and one.manifest.kind == "channel"]
    schemas = {part.name: each.settings.get("properties") or {} for each in manifests for part in each.parts}
    own = {name: keys for name, keys in schemas.items() if originals.channel_in_the_box(name) is None}
    told = {warning.at for warning in snapshot.warnings}
    for one in (
        *strange(channel_keys.unknown(snapshot.resolved, own)),
        *channel_keys.misfits(snapshot.resolved, told, own),
    ):
        if one.at not in told:
            yield one


def _entries(paths: Paths, snapshot: Snapshot) -> tuple[Issue, ...]:
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
