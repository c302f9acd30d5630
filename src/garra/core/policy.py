"""Which tools a run may call: layers of allowing and denying, folded.

A layer narrows what came before it and never widens it; a denial wins; what is unknown grants nothing. Each decision
names the layer it came from. Where layers come from is not known here: they are data.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Literal

from garra.core.value import frozen

Step = Literal[
    "profile", "provider profile", "global", "global for the provider", "agent", "agent for the provider", "group",
    "sender", "sandbox", "sub-agent", "inherited", "surface",
]  # fmt: skip
ORDER: tuple[Step, ...] = (
    "profile", "provider profile", "global", "global for the provider", "agent", "agent for the provider", "group",
    "sender", "sandbox", "sub-agent", "inherited", "surface",
)  # fmt: skip
"""The steps of a policy, in the order in which they narrow. `surface` is what is out of reach over HTTP."""

GROUPS = {
    "group:runtime": ("exec", "process", "code_execution"),
    "group:fs": ("read", "write", "edit", "apply_patch", "ls", "find", "grep"),
    "group:sessions": (
        "sessions", "sessions_list", "sessions_history", "sessions_search", "sessions_send", "sessions_spawn",
        "sessions_yield", "subagents", "session_status", "conversations_list", "conversations_send",
        "conversations_turn", "suggest_task", "dismiss_task",
    ),
    "group:memory": ("memory_search", "memory_get"),
    "group:web": ("web_search", "x_search", "web_fetch"),
    "group:ui": ("browser", "screen", "theme", "dashboard", "terminal", "portal", "canvas", "show_widget"),
    "group:automation": ("heartbeat_respond", "automations", "gateway", "plugins", "openclaw"),
    "group:messaging": ("message",),
    "group:nodes": ("nodes", "computer"),
    "group:agents": (
        "agents_list", "get_goal", "create_goal", "update_goal", "progress_card", "ask_user", "skill_workshop",
    ),
    "group:media": ("view_image", "image_generate", "music_generate", "video_generate", "tts", "pdf"),
}  # fmt: skip
"""Names of sets, as the original has them; those of `OWN_GROUPS` are a tool's own to say."""

OWN_GROUPS = ("group:plugins", "group:openclaw")
BARE = frozenset(("read", "write", "edit", "apply_patch", "exec", "process", "canvas"))
"""What `group:openclaw` leaves out of the tools in the box."""

PROFILES: dict[str, tuple[str, ...] | None] = {
    "minimal": ("session_status", "gateway"),
    "coding": (
        "group:fs", "group:runtime", "group:web", "group:sessions", "group:memory", "automations", "gateway",
        "get_goal", "create_goal", "update_goal", "progress_card", "ask_user", "skill_workshop", "view_image",
        "image_generate", "music_generate", "video_generate", "theme", "bundle-mcp",
    ),
    "messaging": (
        "group:messaging", "sessions", "sessions_list", "sessions_history", "sessions_search", "conversations_list",
        "conversations_send", "conversations_turn", "sessions_send", "sessions_spawn", "sessions_yield", "subagents",
        "session_status", "gateway", "ask_user", "theme", "bundle-mcp",
    ),
    "full": None,
}  # fmt: skip
"""What each profile allows; None allows everything."""

ALIASES = {"bash": "exec", "apply-patch": "apply_patch", "cron": "automations"}
COVERED = {"apply_patch": "write"}
"""A tool that does what another does is reached by that one's allowing and denying too."""

SANDBOX_ALLOWED = (
    "exec", "process", "read", "ls", "find", "grep", "write", "edit", "apply_patch", "view_image", "sessions_list",
    "sessions_history", "sessions_search", "sessions_send", "sessions_spawn", "sessions_yield", "subagents",
    "session_status",
)  # fmt: skip
SANDBOX_DENIED = ("browser", "canvas", "computer", "nodes", "automations", "gateway")
"""What a session behind the fence is offered, and never is, where its owner lists nothing."""

SUBAGENT_DENIED = (
    "gateway", "agents_list", "session_status", "progress_card", "automations", "message", "sessions_send",
    "conversations_list", "conversations_send", "conversations_turn", "ask_user",
)  # fmt: skip
LEAF_DENIED = ("subagents", "sessions_list", "sessions_history", "sessions_spawn")
"""What no sub-agent has, and what those at the deepest level have not either."""

OVER_HTTP_DENIED = frozenset(
    {"exec", "process", "spawn", "shell", "read", "write", "edit", "apply_patch", "ls", "find", "grep", "fs_write",
     "fs_delete", "fs_move", "sessions_spawn", "sessions_send", "automations", "cron", "gateway", "nodes"}
)  # fmt: skip
"""What POST /tools/invoke answers 404 for unless the owner lists it under gateway.tools.allow."""


class Verdict(StrEnum):
    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


@frozen
class Decision:
    """What was decided, and which layer said so."""

    verdict: Verdict
    source: str


@frozen
class Face:
    """A tool as a policy sees it: its name, and the names of the sets it says it belongs to."""

    name: str
    groups: tuple[str, ...] = ()


@frozen
class Layer:
    """One step of a policy. `allow` None allows all; empty allows nothing. Items are names, groups, `*` patterns.

    `source` is the place in the configuration that says so, or the words for it; `remedy` how its owner changes what it
    refuses, where that is not the usual way of its step.
    """

    source: str
    allow: tuple[str, ...] | None = None
    deny: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    step: Step = "global"
    remedy: str = ""


def profile(name: str | None, also: Sequence[str] = (), source: str = "profile", step: Step = "profile") -> Layer:
    """The layer of a profile, widened by the owner's `alsoAllow`. None: no profile; an unknown one is the smallest."""
    if name is None:
        return Layer(source, step=step)
    allowed = PROFILES.get(name, PROFILES["minimal"])
    return Layer(source, None if allowed is None else (*allowed, *also), step=step)


def decide(tool: Face, layers: Iterable[Layer]) -> Decision:
    """Fold `layers` left to right."""
    decision = Decision(Verdict.ALLOW, "default")
    for layer in layers:
        if matches(tool, layer.deny) or (layer.allow is not None and not matches(tool, layer.allow)):
            return Decision(Verdict.DENY, layer.source)
        if matches(tool, layer.ask):
            decision = Decision(Verdict.ASK, layer.source)
    return decision


Word = Literal["says nothing", "allows", "asks", "denies", "leaves out"]
"""What one layer says of one tool; `leaves out`: its list of what is allowed does not name it."""


@frozen
class Heard:
    """What one layer says of a tool, and by which of its items."""

    layer: Layer
    word: Word
    item: str = ""

    @property
    def refuses(self) -> bool:
        return self.word in ("denies", "leaves out")


def trace(tool: Face, layers: Iterable[Layer]) -> tuple[Heard, ...]:
    """What each layer says by itself, in their order; the first that refuses is the one that decides."""
    return tuple(_heard(tool, layer) for layer in layers)


def _heard(tool: Face, layer: Layer) -> Heard:
    if denied := named(tool, layer.deny):
        return Heard(layer, "denies", denied)
    allowed = named(tool, layer.allow) if layer.allow is not None else ""
    if layer.allow is not None and not allowed:
        return Heard(layer, "leaves out")
    if asked := named(tool, layer.ask):
        return Heard(layer, "asks", asked)
    return Heard(layer, "allows", allowed) if allowed else Heard(layer, "says nothing")


def matches(tool: Face, patterns: Iterable[str]) -> bool:
    """Whether one of `patterns` means `tool`."""
    return bool(named(tool, patterns))


def named(tool: Face, patterns: Iterable[str]) -> str:
    """The first of `patterns` that means `tool`; empty when none does."""
    names = {tool.name.lower(), COVERED.get(tool.name.lower(), tool.name.lower())}
    return next((pattern for pattern in patterns if _means(tool, names, pattern.strip().lower())), "")


def _means(tool: Face, names: set[str], pattern: str) -> bool:
    pattern = ALIASES.get(pattern, pattern)
    if pattern.startswith("group:"):
        return pattern in tool.groups or not names.isdisjoint(GROUPS.get(pattern, ()))
    if "*" in pattern:
        return any(fnmatchcase(name, pattern.replace("[", "[[]")) for name in names)
    return pattern in names or pattern in tool.groups


def unknown(patterns: Iterable[str]) -> tuple[str, ...]:
    """The groups among `patterns` that do not exist, for a warning; they allow and deny nothing."""
    known = {*GROUPS, *OWN_GROUPS}
    return tuple(p for p in patterns if p.lower().startswith("group:") and p.lower() not in known)


def strange(patterns: Iterable[str], tools: Iterable[Face]) -> tuple[str, ...]:
    """The items among `patterns` that mean nothing: no group, none of `tools`, no tool that a group or profile names.

    They allow and deny nothing, so their owner means something else than he wrote.
    """
    planned = [name for names in (*GROUPS.values(), *(each or () for each in PROFILES.values())) for name in names]
    faces = (*tools, *(Face(name, OWN_GROUPS) for name in planned))
    return tuple(pattern for pattern in patterns if not any(matches(face, (pattern,)) for face in faces))


def own_groups(name: str, source: str) -> tuple[str, ...]:
    """The sets a tool is in by where it comes from: a plugin's, or those in the box."""
    if source == "plugin":
        return ("group:plugins",)
    return () if name.lower() in BARE else ("group:openclaw",)


def over_http(name: str, *, allow: Iterable[str] = (), deny: Iterable[str] = ()) -> bool:
    """Whether POST /tools/invoke may reach a tool at all; the layers still decide after it."""
    name = ALIASES.get(name.lower(), name.lower())
    if matches(Face(name), deny):
        return False
    return name not in OVER_HTTP_DENIED or matches(Face(name), allow)
