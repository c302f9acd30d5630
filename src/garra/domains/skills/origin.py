"""Where a skill is to come from, as a person writes it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, Literal
from urllib.parse import urlsplit

from garra.core.characters import escaped
from garra.core.errors import NotFound, UserError
from garra.core.patterns import later
from garra.core.value import frozen

Kind = Literal["folder", "archive", "url", "git"]

SOURCES: Final = "a folder, a .zip or .tar.gz, an https address of one, or git:OWNER/REPO"
GITHUB: Final = "https://github.com"
_OWNED = later(r"[A-Za-z0-9][A-Za-z0-9_-]*/[A-Za-z0-9_.][A-Za-z0-9._-]*")
_REPOSITORY = later(r"^https://[^@]+\.git(@[^@]*)?$")
_REF = later(r"[A-Za-z0-9][A-Za-z0-9._/+-]{0,199}")


@frozen
class Origin:
    """`at` is a real path, or an address. `ref` is a branch, tag or commit of git; empty: what the repository shows."""

    kind: Kind
    at: str
    ref: str = ""

    @property
    def shown(self) -> str:
        return f"{'git:' * (self.kind == 'git')}{self.at}{f'@{self.ref}' if self.ref else ''}"

    @property
    def name(self) -> str:
        """What the skill may be called where it does not say itself."""
        return re.sub(r"(\.git|\.zip|\.tgz|\.tar\.gz|\.tar)$", "", self.at.rstrip("/").rpartition("/")[2])


def origin(text: str, here: Path, home: Path) -> Origin:
    """What `text` means to somebody who works in `here`. Blocks. Raises UserError for what is no source."""
    text = text.strip()
    head, colon, rest = text.partition(":")
    if colon and head in ("git", "github"):
        return _git(rest, here, home)
    if head in ("http", "https") and rest.startswith("//"):
        return _git(text, here, home) if _REPOSITORY.search(text) else _web(text)
    if text.startswith("@") or head in ("clawhub", "skills-sh"):
        raise UserError(
            f"{escaped(text)} is in a registry of skills, and Garra reads none: download it, look at it, and install "
            "the folder or the archive"
        )
    return _local(text, here, home)


def _web(text: str) -> Origin:
    if not _host(text):
        raise UserError(
            f"{escaped(text)[:200]} is no address of an archive: write https://host/path, without a password"
        )
    return Origin("url", text)


def _host(text: str) -> str:
    """The host of an address; empty where it is none, or holds a password."""
    try:
        parts = urlsplit(text)
        found = parts.hostname or ""
    except ValueError:
        return ""
    return found if parts.username is None else ""


def _git(text: str, here: Path, home: Path) -> Origin:
    at, _, ref = _parted(text)
    if ref and not _REF.fullmatch(ref):
        raise UserError(f"{escaped(ref)} is no branch, tag or commit of git")
    if at.startswith("https://"):
        return Origin("git", _web(at).at, ref)
    if at.startswith(("/", "./", "../", "~/")):
        return Origin("git", str(_path(at, here, home)), ref)
    if _OWNED.fullmatch(at):
        return Origin("git", f"{GITHUB}/{at.removesuffix('.git')}.git", ref)
    raise UserError(
        f"{escaped(text)} is no repository: write git:OWNER/REPO, git:https://… or git:/path, and @REF behind"
    )


def _parted(text: str) -> tuple[str, str, str]:
    """The repository and what is behind the @; one within the address's host is no such @."""
    start = text.find("/", len("https://")) if text.startswith("https://") else 0
    at, mark, ref = text[max(start, 0) :].partition("@")
    return text[: max(start, 0)] + at, mark, ref


def _local(text: str, here: Path, home: Path) -> Origin:
    path = _path(text, here, home)
    if path.is_dir():
        return Origin("folder", str(path))
    if path.is_file():
        return Origin("folder", str(path.parent)) if path.name == "SKILL.md" else Origin("archive", str(path))
    raise NotFound(f"there is no {escaped(text)}; a skill comes from {SOURCES}")


def _path(text: str, here: Path, home: Path) -> Path:
    whole = home / text[2:] if text.startswith("~/") else here / text
    return whole.resolve()
