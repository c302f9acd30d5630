"""A skill: instructions in a SKILL.md that a model reads when it needs them. Which are fit for use, and how listed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from typing import Any, Literal

from garra.core.frontmatter import split
from garra.core.value import frozen

Place = Literal["workspace", "managed", "bundled", "extra"]
DESCRIPTION_CHARS = 240
LIST_CHARS = 12_000
NAME_CHARS = 64


@frozen
class Needs:
    """What must be there. `config` are dotted paths that must be true, `any_bins` one of which is enough."""

    bins: tuple[str, ...] = ()
    any_bins: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    config: tuple[str, ...] = ()
    os: tuple[str, ...] = ()


@frozen
class Hint:
    """How a program that it needs could be installed: `kind` is brew, node, go, uv, download or another."""

    id: str
    kind: str
    label: str
    bins: tuple[str, ...] = ()


@frozen
class Skill:
    """`path` is its SKILL.md. `always`: fit wherever its `os` fits. `hidden`: not for the model's list. `settings` is
    its name under `skills.entries`. `hints` are what it says its programs come from: shown to people, run by nobody.
    """

    name: str
    description: str
    path: str
    place: Place
    needs: Needs = Needs()
    always: bool = False
    hidden: bool = False
    emoji: str = ""
    homepage: str = ""
    primary_env: str = ""
    settings: str = ""
    hints: tuple[Hint, ...] = ()

    @property
    def key(self) -> str:
        return self.settings or self.name


@frozen
class Judged:
    """A skill and why it may not be used (`reasons` empty: it may)."""

    skill: Skill
    reasons: tuple[str, ...] = ()

    @property
    def eligible(self) -> bool:
        return not self.reasons


@frozen
class Listed:
    """One line of the prompt."""

    name: str
    line: str


@frozen
class World:
    """What is there: answers for programs, variables and true configuration paths; the platform's name. `given` are the
    names of the variables that `skills.entries` has for a skill, by its key; `""` for its `apiKey`. `only`: no other
    skills are for this agent; None: all are.
    """

    has_bin: Callable[[str], bool]
    has_env: Callable[[str], bool]
    has_config: Callable[[str], bool]
    platform: str = "linux"
    given: Mapping[str, frozenset[str]] = field(default_factory=dict)
    only: frozenset[str] | None = None


def read(text: str, path: str, place: Place, folder: str) -> Skill:
    """The skill a SKILL.md describes; `folder` names it where the file does not."""
    fields, body = split(text)
    extra = _extra(fields.get("metadata"))
    needs = extra.get("requires")
    needs = needs if isinstance(needs, Mapping) else {}
    return Skill(
        name=(_text(fields.get("name")) or folder)[:NAME_CHARS],
        description=_text(fields.get("description")) or _first(body),
        path=path,
        place=place,
        needs=Needs(
            bins=_texts(needs.get("bins")),
            any_bins=_texts(needs.get("anyBins")),
            env=_texts(needs.get("env")),
            config=_texts(needs.get("config")),
            os=_texts(extra.get("os")),
        ),
        always=extra.get("always") is True,
        hidden=fields.get("disable-model-invocation") is True,
        emoji=_text(extra.get("emoji")),
        homepage=_text(fields.get("homepage") or extra.get("homepage")),
        primary_env=_text(extra.get("primaryEnv")),
        settings=_text(extra.get("skillKey")),
        hints=tuple(_hints(extra.get("install"))),
    )


def _extra(metadata: Any) -> Mapping[str, Any]:
    """Our part of the metadata; `openclaw` and its older names are read alike."""
    if isinstance(metadata, Mapping):
        for name in ("garra", "openclaw", "clawdbot", "clawdis"):
            if isinstance(metadata.get(name), Mapping):
                return dict(metadata[name])
    return {}


def _hints(value: Any) -> Iterable[Hint]:
    for number, one in enumerate(value if isinstance(value, list) else []):
        if isinstance(one, Mapping):
            kind = _text(one.get("kind"))
            what = next((_text(one.get(name)) for name in _WHAT if one.get(name)), "")
            said = _text(one.get("label")) or f"{kind} {what}".strip()
            yield Hint(_text(one.get("id")) or f"{kind}-{number}", kind, said, _texts(one.get("bins")))


_WHAT = ("formula", "package", "module", "url")


def _text(value: Any) -> str:
    return " ".join(str(value).split()) if isinstance(value, str | int) else ""


def _texts(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    return tuple(str(one) for one in value) if isinstance(value, list) else ()


def _first(body: str) -> str:
    lines = (line.strip() for line in body.splitlines())
    return next((line for line in lines if line and not line.startswith(("#", "---", "```"))), "")


def judge(skill: Skill, world: World, off: frozenset[str] = frozenset()) -> Judged:
    """Whether it is fit for use here; every reason against it. `off` are names switched off by configuration."""
    return Judged(skill, tuple(_against(skill, world, off)))


def _against(skill: Skill, world: World, off: frozenset[str]) -> Iterable[str]:
    if skill.key in off or skill.name in off:
        yield "switched off in skills.entries"
    if world.only is not None and skill.name not in world.only:
        yield "not among the skills of this agent"
    lacking = lacks(skill, world)
    if lacking.os:
        yield f"for {', '.join(lacking.os)} only"
    if skill.always:
        return
    yield from (f"missing program: {name}" for name in lacking.bins)
    if lacking.any_bins:
        yield f"missing one of the programs: {', '.join(lacking.any_bins)}"
    yield from (f"missing variable: {name}" for name in lacking.env)
    yield from (f"not set: {path}" for path in lacking.config)


def lacks(skill: Skill, world: World) -> Needs:
    """What of its needs is not there."""
    needs, given = skill.needs, world.given.get(skill.key, frozenset())
    given = given | {skill.primary_env} if "" in given else given
    return Needs(
        bins=tuple(name for name in needs.bins if not world.has_bin(name)),
        any_bins=() if any(world.has_bin(name) for name in needs.any_bins) else needs.any_bins,
        env=tuple(name for name in needs.env if name not in given and not world.has_env(name)),
        config=tuple(path for path in needs.config if not world.has_config(path)),
        os=() if not needs.os or world.platform in needs.os else needs.os,
    )


def shadow(found: Iterable[Skill]) -> tuple[Skill, ...]:
    """One skill a name: the first of those given, in order of names."""
    first: dict[str, Skill] = {}
    for skill in found:
        first.setdefault(skill.name, skill)
    return tuple(first[name] for name in sorted(first))


def listed(judged: Iterable[Judged], home: str, limit: int = LIST_CHARS) -> tuple[Listed, ...]:
    """The lines of the prompt, paths below `home` written with `~`. What does not fit in `limit` is left out."""
    lines: list[Listed] = []
    for one in judged:
        if not one.eligible or one.skill.hidden:
            continue
        line = _line(one.skill, home)
        limit -= len(line) + 1
        if limit < 0:
            break
        lines.append(Listed(one.skill.name, line))
    return tuple(lines)


def _line(skill: Skill, home: str) -> str:
    said = skill.description
    if len(said) > DESCRIPTION_CHARS:
        said = said[: DESCRIPTION_CHARS - 1].rstrip() + "…"
    root = home.rstrip("/")
    path = f"~{skill.path[len(root) :]}" if root and skill.path.startswith(f"{root}/") else skill.path
    return f"- {skill.name}: {said} ({path})"
