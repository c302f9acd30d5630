"""What is found in the folders of other programs; nothing there is touched."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from garra.core import transcript
from garra.core.errors import UserError
from garra.core.migration import Chat, Found, Item, Words
from garra.domains.migration import claude, hermes, nanobot, openclaw
from tests.domains.migration import places


def by_kind(found: Found, kind: str) -> list[Item]:
    return [item for item in found.items if item.kind == kind]


def digest(folder: Path) -> dict[str, str]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_openclaw_of_2026_9_is_read_from_its_databases_and_left_as_it_was(tmp_path: Path) -> None:
    state = places.openclaw(tmp_path)
    before = digest(state)
    found = openclaw.found(state)
    assert digest(state) == before
    assert (found.warnings, found.running) == ((), False)
    chats = [item.content for item in by_kind(found, "session")]
    assert sorted(chat.key for chat in chats) == [
        "agent:main:explicit:my-cli-session", "agent:main:telegram:direct:1001", "agent:main:telegram:direct:1002",
        "agent:main:telegram:direct:1003",
    ]  # fmt: skip
    first = next(chat for chat in chats if chat.key.endswith(":1001"))
    text = " ".join(m.text for m in transcript.visible(transcript.load(b"\n".join(first.lines)).entries))
    assert "My dog is called Bruno" in text
    assert text.count("The story of Bruno. ") == 120  # a line that was compressed
    assert first.entry["lastTo"] == "telegram:1001"
    assert by_kind(found, "pairing")[0].content == {"channel": "telegram", "account": "default", "sender": "1003"}
    assert by_kind(found, "approvals")[0].content["agents"]["main"]["allowlist"][0]["pattern"] == "/usr/bin/git"
    assert "socket" not in by_kind(found, "approvals")[0].content
    assert by_kind(found, "auth")[0].secret
    assert [job["name"] for job in by_kind(found, "cron")[0].content["jobs"]] == ["morning"]
    targets = {each.target for each in by_kind(found, "workspace")[0].content}
    assert {"MEMORY.md", "memory/2026-11-30.md", "skills/tea/SKILL.md"} <= targets


def test_openclaw_before_its_database_is_read_from_its_files(tmp_path: Path) -> None:
    found = openclaw.found(places.older(tmp_path))
    session, archive = by_kind(found, "session")[0].content, by_kind(found, "archive")[0].content
    assert isinstance(session, Chat)
    assert (session.key, len(session.lines), archive.session_id) == ("agent:main:main", 2, "two")
    assert found.warnings == ("one: 1 lines cannot be read and are left out",)
    assert [item.content["sender"] for item in by_kind(found, "pairing")] == ["42"]
    assert json.loads(by_kind(found, "config")[0].content)["models"] == {"providers": {}}
    assert [each.target for each in by_kind(found, "workspace")[0].content] == ["MEMORY.md"]
    assert by_kind(found, "cron")


def test_hermes_gives_models_words_memory_skills_and_keys(tmp_path: Path) -> None:
    (tmp_path / "memories").mkdir()
    (tmp_path / "skills" / "deep" / "tea").mkdir(parents=True)
    (tmp_path / "skills" / "deep" / "tea" / "SKILL.md").write_text("---\nname: tea\n---\n")
    (tmp_path / "sessions").mkdir()
    (tmp_path / "SOUL.md").write_text("Be kind.")
    (tmp_path / "memories" / "MEMORY.md").write_text("- Bruno is a dog")
    (tmp_path / ".env").write_text('OPENAI_API_KEY="sk-1"\nOTHER=x\n')
    (tmp_path / "config.yaml").write_text(
        "model: {provider: lab, base_url: http://lab/v1, default: big, api_mode: chat_completions}\n"
        "providers: {lab: {key_env: LAB_KEY}}\nmcp_servers: {x: {command: y}}\n"
    )
    found = hermes.found(tmp_path)
    config = by_kind(found, "config")[0].content
    assert config["models"]["providers"]["lab"]["baseUrl"] == "http://lab/v1"
    assert config["agents"]["defaults"]["model"]["primary"] == "lab/big"
    assert by_kind(found, "auth")[0].content["profiles"]["openai:default"]["key"] == "sk-1"
    assert by_kind(found, "skill")[0].content[0].target == "skills/tea/SKILL.md"
    assert by_kind(found, "memory")[0].content == (Words("MEMORY.md", "- Bruno is a dog", behind=True),)
    assert {item.id for item in by_kind(found, "manual")} == {"manual:mcp", "manual:sessions"}


def test_nanobot_gives_its_workspace_and_its_chats(tmp_path: Path) -> None:
    (tmp_path / "workspace" / "sessions").mkdir(parents=True)
    (tmp_path / "workspace" / "USER.md").write_text("Ann")
    providers = {"openrouter": {"apiKey": "sk-or"}, "lab": {"apiBase": "http://lab/v1"}}
    config = {
        "providers": providers, "agents": {"defaults": {"model": "a/b"}}, "channels": {"telegram": {"enabled": True}}
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config))
    rows = [
        {"_type": "metadata", "key": "telegram:1001"},
        {"role": "user", "content": "hi", "timestamp": "2026-01-01T00:00:00"},
        {"role": "assistant", "content": "ho", "timestamp": "2026-01-01T00:00:01"},
        {"role": "tool", "content": "x"},
    ]
    file = tmp_path / "workspace" / "sessions" / "telegram_1001.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)) + "\n{torn")
    found = nanobot.found(tmp_path)
    chat = by_kind(found, "session")[0].content
    assert (chat.key, chat.session_id, len(chat.lines)) == ("agent:main:telegram:direct:1001", "telegram_1001", 3)
    assert [each.target for each in by_kind(found, "workspace")[0].content] == ["USER.md"]
    assert by_kind(found, "config")[0].content["models"]["providers"]["lab"]["baseUrl"] == "http://lab/v1"
    assert by_kind(found, "auth")[0].secret
    assert by_kind(found, "manual")[0].label == "channel telegram"


def test_claude_code_gives_memory_skills_and_commands_and_keeps_its_logins(tmp_path: Path) -> None:
    home = tmp_path / ".claude"
    (home / "projects" / "-home-ann" / "memory").mkdir(parents=True)
    (home / "projects" / "-home-ann" / "memory" / "facts.md").write_text("- tea")
    (home / "commands").mkdir()
    (home / "commands" / "Review.md").write_text("---\nallowed-tools: all\n---\nLook at the diff.")
    (home / "CLAUDE.md").write_text("Short answers.")
    (home / ".credentials.json").write_text('{"token":"tok-4711"}')
    (home / "settings.json").write_text("{}")
    (tmp_path / ".claude.json").write_text('{"mcpServers":{"files":{}}}')
    found = claude.found(home)
    assert [item.id for item in by_kind(found, "memory")] == ["memory:USER.md", "memory:home-ann"]
    (skill,) = by_kind(found, "skill")[0].content
    assert skill.target == "skills/review/SKILL.md"
    assert "disable-model-invocation: true" in skill.text
    assert "allowed-tools" not in skill.text
    assert {item.id for item in by_kind(found, "manual")} == {"manual:settings.json", "manual:mcp"}
    assert "tok-4711" not in str(found)


@pytest.mark.parametrize("look", [openclaw.found, hermes.found, nanobot.found, claude.found])
def test_a_folder_that_is_none_is_said_so(look: Callable[[Path], Found], tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"--from DIR|nothing that could be taken"):
        look(tmp_path)
