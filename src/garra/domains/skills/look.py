"""What a person is shown of a skill before it is installed: what it is, what it asks for, what in it is hidden."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from garra.core import bundle
from garra.core.patterns import later
from garra.core.skills import Skill, read
from garra.core.value import frozen

SCRIPTS: Final = (
    ".py",
    ".sh",
    ".bash",
    ".zsh",
    ".js",
    ".mjs",
    ".cjs",
    ".ts",
    ".rb",
    ".pl",
    ".php",
    ".ps1",
    ".bat",
    ".exe",
)
SHOWN: Final = 12
_HOST = later(r"https?://([A-Za-z0-9.-]+\.[A-Za-z]{2,}|\d{1,3}(?:\.\d{1,3}){3}|\[[0-9A-Fa-f:]+\])")


@frozen
class Look:
    """One skill as it would be. `hosts` are those that it names, `scripts` its programs, `unseen` the characters that
    nobody sees, by file and line.
    """

    skill: Skill
    files: Mapping[str, int]
    hosts: tuple[str, ...] = ()
    scripts: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()

    @property
    def asks(self) -> dict[str, tuple[str, ...]]:
        """What it asks for, by kind; what it does not ask for is left out."""
        needs, skill = self.skill.needs, self.skill
        env = tuple(dict.fromkeys((*needs.env, *((skill.primary_env,) if skill.primary_env else ()))))
        asked = {
            "bins": needs.bins,
            "anyBins": needs.any_bins,
            "env": env,
            "config": needs.config,
            "os": needs.os,
            "hosts": self.hosts,
            "scripts": self.scripts,
            "install": tuple(hint.label for hint in skill.hints),
        }
        return {name: found for name, found in asked.items() if found}

    def told(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "name": self.skill.name,
            "description": self.skill.description,
            "homepage": self.skill.homepage or None,
            "files": dict(self.files),
            "bytes": sum(self.files.values()),
            "asks": {name: list(found) for name, found in self.asks.items()},
            "unseen": list(self.unseen),
        }


def look(files: Mapping[str, bytes], folder: str) -> Look:
    """The skill that `files` are, to lie in a folder of that name."""
    texts = {path: data.decode("utf-8", "replace") for path, data in files.items() if b"\0" not in data}
    skill = read(texts.get(bundle.MAIN, ""), bundle.MAIN, "managed", folder)
    hosts = dict.fromkeys(found.lower() for text in texts.values() for found in _HOST.findall(text))
    unseen = [f"{path} {line}" for path, text in texts.items() for line in bundle.unseen(text)]
    scripts = [path for path, data in files.items() if path.lower().endswith(SCRIPTS) or data.startswith(b"#!")]
    return Look(
        skill,
        {path: len(data) for path, data in sorted(files.items())},
        tuple(hosts),
        tuple(sorted(scripts)),
        tuple(unseen),
    )


WORDS: Final[Mapping[str, str]] = {
    "bins": "programs",
    "anyBins": "one of the programs",
    "env": "variables",
    "config": "settings",
    "os": "systems",
    "hosts": "hosts it names",
    "scripts": "scripts in it",
    "install": "its hints for installing programs (Garra runs none of them)",
}


def lines(asks: Mapping[str, Any]) -> Iterator[str]:
    """What it asks for, a line a kind."""
    for name, word in WORDS.items():
        if found := list(asks.get(name, ())):
            more = f", and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
            yield f"{word}: {', '.join(found[:SHOWN])}{more}"
