"""Who else can read or change what belongs to the installation."""

from __future__ import annotations

from collections.abc import Iterator

from garra.checks.security.finding import Chmod, Finding, Severity, found
from garra.checks.security.ground import Ground, Spot

CLOUDS = {
    "dropbox": "Dropbox",
    "google drive": "Google Drive",
    "googledrive": "Google Drive",
    "my drive": "Google Drive",
    "onedrive": "OneDrive",
    "icloud drive": "iCloud",
    "mobile documents": "iCloud",
    "com~apple~clouddocs": "iCloud",
    "nextcloud": "Nextcloud",
    "owncloud": "ownCloud",
    "syncthing": "Syncthing",
    "box sync": "Box",
    "pcloud": "pCloud",
    "cloudstorage": "a cloud's folder",
}
"""How a synchronised folder is called, in small letters, and by whom."""


def judge(ground: Ground) -> Iterator[Finding]:
    for spot in ground.spots:
        yield from _spot(spot)
    yield from _synced(ground)


def _spot(spot: Spot) -> Iterator[Finding]:
    if spot.link and spot.what in {"state_dir", "config"}:
        yield found(f"fs.{spot.what}.symlink", f"{spot.path} is a symbolic link.")
    told = _problem(spot)
    if told:
        problem, severity = told
        fix = Chmod(spot.path, 0o700 if spot.folder else 0o600, spot.mode)
        detail = f"{spot.path} has mode {spot.mode:03o}."
        yield found(f"fs.{spot.what}.{problem}", detail, severity, fixes=(fix,))


def _problem(spot: Spot) -> tuple[str, Severity] | None:
    """What of its mode is wrong, the worst alone."""
    others, group = spot.mode & 0o007, spot.mode >> 3 & 0o7
    match spot.what:
        case "state_dir":
            if others & 0o2:
                return "perms_world_writable", "critical"
            if group & 0o2:
                return "perms_group_writable", "warn"
            return ("perms_readable", "warn") if others | group else None
        case "config" | "config_include":
            if (others | group) & 0o2:
                return "perms_writable", "critical"
            if others & 0o4:
                return "perms_world_readable", "critical"
            return ("perms_group_readable", "warn") if group & 0o4 else None
        case "auth_profiles" | "credentials_dir" | "database" if (others | group) & 0o2:
            return "perms_writable", "critical"
        case _:
            return ("perms_readable", "warn") if (others | group) & 0o6 else None


def _synced(ground: Ground) -> Iterator[Finding]:
    for part in ground.state.lower().split("/"):
        name = next((name for word, name in CLOUDS.items() if part == word or part.startswith(f"{word}-")), "")
        name = name or ("OneDrive" if part.startswith("onedrive") else "")
        if name:
            yield found("fs.synced_dir", f"{ground.state} lies in a folder of {name}.")
            return
