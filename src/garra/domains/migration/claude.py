"""What Claude Code keeps of a person (`~/.claude`): memory, instructions, skills, commands. Blocks.

Its logins stay its own; hooks, permissions and project histories are for a person to look at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from garra.core.errors import UserError
from garra.core.migration import Found, Item, Words
from garra.domains.migration import files, notes

NAME: Final = "claude"
LEFT: Final = {"settings.json": "hooks, permissions and environment", "agents": "its sub-agents", "plans": "its plans"}


def found(source: Path) -> Found:
    """Everything there is. Raises UserError where `source` is no such folder."""
    if not source.is_dir():
        raise UserError(f"{source} is no Claude Code folder; say --from DIR")
    items = [*_words(source), *_memory(source), *notes.skills(source / "skills"), *_commands(source / "commands")]
    items += [
        Item(f"manual:{name}", "manual", f"{name}: {what}", note="stays where it is; look at it by hand")
        for name, what in LEFT.items()
        if (source / name).exists()
    ]
    servers = notes.mapping(notes.mapping(_account(source)).get("mcpServers"))
    if servers:
        label = f"MCP servers: {', '.join(sorted(map(str, servers)))}"
        items.append(Item("manual:mcp", "manual", label, note="add them under mcp.servers when you use them"))
    if not items:
        raise UserError(f"{source} holds nothing that could be taken over")
    return Found(NAME, str(source), tuple(items))


def _account(source: Path) -> Any:
    return files.document(source.with_name(f"{source.name}.json"))


def _words(source: Path) -> Iterator[Item]:
    if words := files.text(source / "CLAUDE.md").strip():
        yield Item("memory:USER.md", "memory", "CLAUDE.md, put behind USER.md", (Words("USER.md", words, behind=True),))


def _memory(source: Path) -> Iterator[Item]:
    for folder in sorted((source / "projects").glob("*/memory")):
        listed = tuple(files.tree(folder, f"memory/imports/claude-code/{folder.parent.name.strip('-')}/"))
        plain = tuple(each for each in listed if each.target.endswith(".md"))
        if plain:
            name = folder.parent.name.strip("-")
            yield Item(f"memory:{name}", "memory", f"memory of {name} ({len(plain)} files)", plain)


def _commands(folder: Path) -> Iterator[Item]:
    """A command is a skill that a person calls."""
    for path in sorted(folder.rglob("*.md")) if folder.is_dir() else ():
        name = path.stem.lower()
        yield Item(
            f"skill:{name}",
            "skill",
            f"command /{name}",
            (Words(f"skills/{name}/SKILL.md", _skill(name, files.text(path))),),
        )


def _skill(name: str, text: str) -> str:
    """A command's text as a skill; what stood before it as settings is Claude Code's own."""
    body = re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.S)
    head = f"---\nname: {name}\ndescription: The command /{name}, taken over from Claude Code.\n"
    return f"{head}disable-model-invocation: true\n---\n\n{body.strip()}\n"
