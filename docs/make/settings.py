"""The page of the settings: every key with its type, what holds without it, and what it means."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from docs.make.methods import kind
from docs.make.page import ROOT, first, join, table

from garra.config import schema
from garra.config.sections import Config
from garra.config.sections.thorough import model

FIRST = ("gateway", "agents", "models", "auth", "tools", "session", "messages", "channels", "approvals", "commands",
         "memory", "skills", "plugins", "browser", "budget", "secrets", "env", "logging", "diagnostics")  # fmt: skip
"""The order of the headings; what is not named follows."""
Row = tuple[str, str, str, str]


class Shapes:
    """The shapes of the configuration, as JSON Schema with references."""

    def __init__(self) -> None:
        whole = model(Config).model_json_schema(by_alias=True)
        self.defs: dict[str, Any] = whole.pop("$defs")
        self.top: dict[str, Any] = whole
        self._said = schema.words()
        self._at: dict[str, str] = {}

    def below(self, key: str) -> Iterator[Row]:
        """One key of the whole, and what is below it."""
        yield from self._row(key, self.top["properties"][key], self._said("Config", key))

    def rows(self, shape: Mapping[str, Any], name: str, at: str) -> Iterator[Row]:
        """Each key of a shape and below it. A shape that stood at another place is named by that place."""
        for key, below in shape.get("properties", {}).items():
            yield from self._row(f"{at}.{key}" if at else key, below, self._said(name, key))

    def _row(self, path: str, below: Mapping[str, Any], said: str) -> Iterator[Row]:
        inner, tail = self._inner(below)
        if inner is None:
            yield path, kind(below, {}), default(below), said or first(below.get("description"))
            return
        meaning = said or first(below.get("description")) or first(self.defs[inner].get("description"))
        if inner in self._at:
            yield f"{path}{tail}", "object", "", f"{meaning} Keys as below `{self._at[inner]}`."
            return
        self._at[inner] = f"{path}{tail}"
        yield f"{path}{tail}", "object", "", meaning
        yield from self.rows(self.defs[inner], inner, f"{path}{tail}")

    def _inner(self, below: Mapping[str, Any]) -> tuple[str | None, str]:
        """The shape that stands at a place, and how one of several there is written."""
        if "$ref" in below:
            return str(below["$ref"]).rsplit("/", 1)[-1], ""
        for part, tail in ((below.get("items"), "[]"), (below.get("additionalProperties"), ".*")):
            if isinstance(part, dict) and (found := self._inner(part))[0] is not None:
                return found[0], tail + found[1]
        for branch in below.get("anyOf", ()):
            found = self._inner(branch)
            if found[0] is not None:
                return found
        return None, ""


def default(shape: Mapping[str, Any]) -> str:
    value = shape.get("default")
    return "" if value in (None, "", [], {}) else f"`{json.dumps(value, ensure_ascii=False)}`"


def settings() -> str:
    """docs/reference/settings.md"""
    shapes = Shapes()
    known = list(shapes.top["properties"])
    order = [*FIRST, *(key for key in known if key not in FIRST)]
    drawn = {key: list(shapes.below(key)) for key in sorted(order, key=lambda key: key != "tools")}
    plain: list[Row] = []
    sections = []
    for key in order:
        found = drawn[key]
        if len(found) == 1:
            plain += found
        else:
            sections.append(join(f"## {key}", found[0][3], _table(found[1:])))
    return join(
        "# Settings",
        "```json5\n// ~/.garra/garra.json\n{ gateway: { port: 18789 } }\n```",
        "Every key of the configuration, [which is a JSON5 file](../concepts/configuration.md). `garra config set KEY"
        " VALUE` changes one; `garra config schema` prints this as JSON Schema. `.*` stands for a name of your own, `[]`"
        " for each of a list. The keys are OpenClaw's; those that nothing reads say so. This page is made from the schema.",
        *sections,
        "## The rest",
        _table(plain),
        "## Keys of channels",
        "Besides the keys of `channels.*` above, which all channels share.",
        *channels(),
    )


def _table(rows: list[Row]) -> str:
    return table(
        ("key", "type", "default", "meaning"), ((f"`{path}`", what, given, said) for path, what, given, said in rows)
    )


def channels() -> Iterator[str]:
    """A table for each channel of the box, as its manifest declares its keys."""
    for path in sorted((ROOT / "src/garra/builtin/channels").glob("*/manifest.toml")):
        body = tomllib.loads(path.read_text())
        keys = body.get("settings", {}).get("properties", {})
        rows: list[Row] = [
            (f"channels.{body['id']}.{key}", kind(each, {}), default(each), meaning(key, each))
            for key, each in keys.items()
        ]
        yield join(f"### {body['name']}", _table(rows))


def meaning(key: str, shape: Mapping[str, Any]) -> str:
    """What a key of a channel means: as its manifest says, else as for all channels."""
    said = schema.words()
    text = shape.get("description") or said("Account", key) or SHARED.get(key, "")
    if shape.get("env"):
        text += f" (`{shape['env']}`)"
    return text[:1].upper() + text[1:]


SHARED = {
    "name": "What this account is called in lists.",
    "accounts": "Several accounts by name; each may set any key of its channel.",
    "defaultAccount": "Which account is meant when nobody names one.",
    "direct": "Settings of single direct chats, by the sender's id.",
    "replyToMode": "Which blocks of an answer refer to the message they answer: `off`, `first`, `all`, `batched`.",
    "reactionLevel": "How freely the agent reacts with signs: `off`, `ack` (the sign of receipt alone), `minimal`, `extensive`.",
    "reactionNotifications": "Which reactions are heard.",
    "ackReaction": "The sign that says a message was received.",
    "linkPreview": "Whether links show what they lead to.",
    "historyLimit": "How many earlier messages of a group a turn is told.",
    "dmHistoryLimit": "The same in direct chats.",
    "customCommands": "Further commands in the platform's menu: `command`, `description`.",
    "commands": "`native`: whether Garra's commands stand in the platform's own menu.",
    "streaming": "How the answer grows: `off`, `partial`, `block` or `progress`.",
    "textChunkLimit": "The longest message sent.",
    "chunkMode": "Where a long answer is cut: by `length`, or at each `newline`.",
    "mediaMaxMb": "The largest file either way.",
    "capabilities": "What is used of the platform, such as `inlineButtons`.",
    "execApprovals": "Who is asked about commands, and where: `enabled`, `approvers`, `target`, `agentFilter`, `sessionFilter`.",
    "markdown": "How Markdown is shown: `tables`.",
    "actions": "Which actions the tool `message` may do, by name.",
    "responsePrefix": "Words in front of each answer.",
    "blockStreaming": "Whether each block of an answer is sent as soon as it stands.",
    "applicationId": "The bot's application; absent: it is asked for.",
    "dm": "Direct chats: `enabled`, `policy`, `allowFrom`, in OpenClaw's older form.",
    "dms": "Settings of single direct chats, by the sender's id.",
    "intents": "Which events the platform is asked for besides those that are needed.",
    "agentComponents": "Buttons and menus that an agent may send.",
    "allowBots": "Whether messages of other bots are answered.",
    "ackReactionScope": "Which messages get the sign of receipt.",
    "mentionPatterns": "Patterns that count as being named.",
    "requireMention": "Whether it answers in groups only when it is named.",
}


def mute() -> list[str]:
    """Keys without a line."""
    lost = []
    for path in sorted((ROOT / "src/garra/builtin/channels").glob("*/manifest.toml")):
        body = tomllib.loads(path.read_text())
        for key, each in body.get("settings", {}).get("properties", {}).items():
            if not meaning(key, each):
                lost.append(f"channels.{body['id']}.{key}")
    shapes = Shapes()
    for key in shapes.top["properties"]:
        lost += [path for path, _, _, said in shapes.below(key) if not said.strip()]
    return lost
