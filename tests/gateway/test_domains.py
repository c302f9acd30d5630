"""agents, models, config, logs, status, tools and the lists of what waits, over a real socket."""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path
from typing import Any

import pytest

from garra.config.paths import resolve
from garra.io import log as logs
from garra.io.env import Environment
from tests.gateway.house import TOKEN, Refused
from tests.gateway.standing import CONFIG, standing
from tests.gateway.test_chat import final, message


async def test_every_agent_says_which_model_answers(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.guest() as guest:
        listed = await guest.call("agents.list", {})
        assert (listed["defaultId"], listed["mainKey"]) == ("main", "main")
        (row,) = listed["agents"]
        assert (row["id"], row["model"], row["thinkingOptions"]) == ("main", {"primary": "fake/fake"}, ["off"])
        assert row["workspace"] == str(tmp_path / "workspace")
        name = await guest.call("agent.identity.get", {"sessionKey": "main"})
        assert name == {"agentId": "main", "name": "Assistant", "nameSource": "default", "avatar": "A"}


async def test_agents_come_change_and_go(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.guest() as guest:
        made = await guest.call("agents.create", {"name": "Night Owl", "emoji": "🦉", "model": "fake"})
        assert (made["agentId"], made["model"]) == ("night-owl", "fake/fake")
        ids = [row["id"] for row in (await guest.call("agents.list", {}))["agents"]]
        assert ids == ["main", "night-owl"]
        with pytest.raises(Refused, match="already exists"):
            await guest.call("agents.create", {"name": "night owl"})
        await guest.call("agents.update", {"agentId": "night-owl", "name": "Owl", "model": None})
        shown = await guest.call("agent.identity.get", {"agentId": "night-owl"})
        assert (shown["name"], shown["avatar"]) == ("Owl", "🦉")
        assert (await guest.call("agents.delete", {"agentId": "night-owl"}))["ok"] is True
        bad: list[tuple[str, dict[str, Any], str]] = [
            ("agents.delete", {"agentId": "night-owl"}, "unknown agent"),
            ("agents.delete", {"agentId": "main"}, "default agent"),
            ("agents.create", {"name": "…"}, "needs a letter"),
            ("agents.update", {"agentId": "main", "agentRuntime": "x"}, "nothing this gateway can set"),
        ]
        for method, params, words in bad:
            with pytest.raises(Refused, match=words):
                await guest.call(method, params)


async def test_agents_of_a_list_are_changed_in_it(tmp_path: Path) -> None:
    config = {**CONFIG, "agents": {**CONFIG["agents"], "list": [{"id": "main"}, {"id": "b", "skills": ["x"]}]}}
    async with standing(tmp_path, config) as gateway, gateway.guest() as guest:
        await guest.call("agents.update", {"agentId": "b", "name": "Bee"})
        written = json.loads((tmp_path / "garra.json").read_text())
        assert written["agents"]["list"][1] == {"id": "b", "skills": ["x"], "name": "Bee"}
        await guest.call("agents.delete", {"agentId": "b"})
        assert [row["id"] for row in (await guest.call("agents.list", {}))["agents"]] == ["main"]


async def test_an_agents_own_files_are_read_and_written_under_a_hash(tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "SOUL.md").write_text("calm")
    async with standing(tmp_path) as gateway, gateway.guest() as guest:
        files = (await guest.call("agents.files.list", {"agentId": "main"}))["files"]
        assert {f["name"]: f["missing"] for f in files}["SOUL.md"] is False
        soul = (await guest.call("agents.files.get", {"agentId": "main", "name": "SOUL.md"}))["file"]
        assert soul["content"] == "calm"
        put = {"agentId": "main", "name": "SOUL.md", "content": "bold", "expectedHash": soul["hash"]}
        assert (await guest.call("agents.files.set", put))["file"]["content"] == "bold"
        for bad, words in ((put, "has changed"), ({**put, "name": "../garra.json"}, "unsupported file")):
            with pytest.raises(Refused, match=words):
                await guest.call("agents.files.set", bad)
        assert (workspace / "SOUL.md").read_text() == "bold"


async def test_a_workspace_is_looked_into_and_not_left(tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    (workspace / "notes").mkdir(parents=True)
    (workspace / "notes" / "a.txt").write_text("hello")
    (workspace / "b.bin").write_bytes(b"\xff\xfe\x00")
    (workspace / "out").symlink_to("/etc")
    async with standing(tmp_path) as gateway, gateway.guest() as guest:
        top = await guest.call("agents.workspace.list", {"agentId": "main"})
        assert [(e["name"], e["kind"]) for e in top["entries"]] == [("b.bin", "file"), ("notes", "directory")]
        below = await guest.call("agents.workspace.list", {"agentId": "main", "path": "notes"})
        assert (below["parentPath"], below["entries"][0]["path"]) == ("", "notes/a.txt")
        text = await guest.call("agents.workspace.get", {"agentId": "main", "path": "notes/a.txt"})
        assert (text["file"]["encoding"], text["file"]["content"]) == ("utf8", "hello")
        raw = await guest.call("agents.workspace.get", {"agentId": "main", "path": "b.bin"})
        assert raw["file"]["encoding"] == "base64"
        for path in ("../garra.json", "out/passwd", "/etc/passwd", "none"):
            with pytest.raises(Refused):
                await guest.call("agents.workspace.get", {"agentId": "main", "path": path})


async def test_models_are_listed_and_keys_never_shown(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.guest() as guest:
        (row,) = (await guest.call("models.list", {"includeDetails": True}))["models"]
        assert (row["id"], row["tags"], row["available"], row["contextWindow"]) == ("fake", ["default"], True, 200_000)
        every = await guest.call("models.list", {"view": "all"})
        assert [m["id"] for m in every["models"]] == ["fake", "other"]
        assert (await guest.call("models.list", {"view": "all", "provider": "else"}))["models"][0]["available"] is False
        status = await guest.call("models.authStatus", {})
        assert [(p["provider"], p["status"]) for p in status["providers"]] == [("fake", "static"), ("else", "missing")]


async def test_configuration_is_shown_without_secrets_and_kept_with_them(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.guest() as guest:
        shown = await guest.call("config.get", {})
        assert TOKEN not in json.dumps(shown)
        assert shown["valid"] is True
        raw = shown["raw"].replace('"fake/fake"', '"else/other"')
        done = await guest.call("config.set", {"raw": raw, "baseHash": shown["hash"]})
        assert TOKEN not in json.dumps(done)
        event = await guest.event("config.changed")
        assert event["payload"]["hash"] == done["hash"]
        assert gateway.host.config.agents.defaults.model.primary == "else/other"
        assert json.loads((tmp_path / "garra.json").read_text())["gateway"]["auth"]["token"] == TOKEN


@pytest.mark.parametrize(
    ("method", "params", "words"),
    [
        ("config.set", {"raw": "{}"}, "base hash required"),
        ("config.set", {"raw": "{}", "baseHash": "stale"}, "has changed"),
        ("config.patch", {"raw": "{gateway: {port: 'x'}}", "baseHash": "HASH"}, "not written"),
        ("config.patch", {"raw": "{", "baseHash": "HASH"}, "JSON5"),
        ("config.patch", {"raw": "[]", "baseHash": "HASH"}, "must be an object"),
        ("config.patch", {"raw": "{}", "baseHash": "HASH", "replacePaths": ["a"]}, "replacePaths"),
        ("config.schema.lookup", {"path": "no.such"}, "not found"),
    ],
)
async def test_a_bad_change_is_refused_in_words(
    tmp_path: Path, method: str, params: dict[str, Any], words: str
) -> None:
    async with standing(tmp_path) as gateway, gateway.guest() as guest:
        if params.get("baseHash") == "HASH":
            params = {**params, "baseHash": (await guest.call("config.get", {}))["hash"]}
        before = (tmp_path / "garra.json").read_text()
        with pytest.raises(Refused, match=words) as caught:
            await guest.call(method, params)
        assert caught.value.error["code"] == "INVALID_REQUEST"
        assert (tmp_path / "garra.json").read_text() == before


async def test_a_patch_is_merged_and_serves_at_once(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.guest() as guest:
        base = (await guest.call("config.get", {}))["hash"]
        await guest.call(
            "config.patch", {"raw": "{agents: {defaults: {userTimezone: 'Asia/Tokyo'}}}", "baseHash": base}
        )
        assert gateway.host.config.agents.defaults.time_zone == "Asia/Tokyo"
        schema = await guest.call("config.schema", {})
        assert schema["schema"]["properties"]["gateway"]
        assert (await guest.call("config.schema.lookup", {"path": "gateway.port"}))["schema"]["type"] == "integer"


async def test_the_log_is_followed_by_a_cursor(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.guest() as guest:
        empty = await guest.call("logs.tail", {})
        assert (empty["lines"], empty["file"]) == ([], str(tmp_path / "logs"))
        log = await asyncio.to_thread(logs.setup, resolve(Environment({"GARRA_STATE_DIR": str(tmp_path), "HOME": "/"})))
        try:
            for word in ("first", "second"):
                logging.getLogger("garra.test").error(word)
        finally:
            logging.getLogger().removeHandler(log)
            await asyncio.to_thread(log.close)
        page = await guest.call("logs.tail", {})
        assert "second" in page["lines"][-1]
        small = await guest.call("logs.tail", {"maxBytes": len(page["lines"][-1]) + 5})
        assert (len(small["lines"]), small["truncated"]) == (1, True)
        assert (await guest.call("logs.tail", {"cursor": page["cursor"]}))["lines"] == []


async def test_status_and_machine_are_told(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.guest() as guest:
        await guest.call("sessions.patch", {"key": "a", "label": "A"})
        status = await guest.call("status", {"includeCliProjection": True})
        assert (status["runtimeVersion"], status["sessions"]["count"]) == ("1.0.0", 1)
        assert status["sessions"]["recent"][0]["key"] == "agent:main:a"
        assert status["processMemory"]["rssBytes"] > 1 << 20
        assert status["cliProjection"]["agents"]["rows"] == [{"id": "main"}]
        machine = await guest.call("system.info", {})
        assert machine["memoryTotalBytes"] > 0
        assert machine["pid"] == status["pid"]


async def test_tools_are_shown_and_called_from_outside_under_the_policy(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.guest() as guest:
        (group,) = (await guest.call("tools.effective", {"sessionKey": "main"}))["groups"]
        assert [tool["id"] for tool in group["tools"]] == ["echo", "exec"]
        assert (await guest.call("tools.catalog", {}))["profile"] == "full"
        done = await guest.call("tools.invoke", {"name": "echo", "args": {"text": "hi"}})
        assert (done["ok"], done["output"]["content"][0]["text"]) == (True, "hi in agent:main:main")
        for name in ("exec", "nothing"):
            refused = await guest.call("tools.invoke", {"name": name, "args": {}})
            assert (refused["ok"], refused["error"]["code"]) == (False, "not_found")
        own = await guest.call("tools.invoke", {"name": "sessions_list", "args": {}})
        assert own["output"]["details"] == {"count": 0, "sessions": []}
        wrong = await guest.call("tools.invoke", {"name": "sessions_history", "args": {"nope": 1}})
        assert wrong["error"]["code"] == "tool_error"
        agents = await guest.call("tools.invoke", {"name": "agents_list"})
        assert agents["output"]["details"] == {"agents": [{"id": "main"}]}


async def test_nothing_waits_and_the_lists_say_so(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.guest(scopes=("operator.admin",)) as guest:
        assert await guest.call("question.list", {}) == {"questions": []}
        assert await guest.call("exec.approval.list", {}) == []
        assert await guest.call("plugin.approval.list", {}) == []
        assert await guest.call("taskSuggestions.list", {"agentId": "main"}) == {"suggestions": []}
        listed = await guest.call("commands.list", {"includeArgs": False})
        assert all("args" not in command for command in listed["commands"])


async def test_usage_is_counted_from_what_was_said(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.guest() as guest:
        for number in range(2):
            await guest.call("chat.send", message("tool say hi", f"k{number}", f"agent:main:u{number}"))
            await final(guest, f"k{number}")
        every = await guest.call("sessions.usage", {"range": "all", "mode": "specific", "timeZone": "Asia/Tokyo"})
        assert [row["key"] for row in every["sessions"]] == ["agent:main:u1", "agent:main:u0"]
        assert every["totals"] == {
            "input": 200, "output": 10, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 210, "totalCost": 0,
        }  # fmt: skip
        counted = every["aggregates"]
        assert counted["messages"] == {
            "total": 8, "user": 2, "assistant": 4, "toolCalls": 2, "toolResults": 2, "errors": 0,
        }  # fmt: skip
        assert counted["tools"]["tools"] == [{"name": "exec", "count": 2}]
        one = await guest.call("sessions.usage", {"key": "u0", "startDate": "2000-01-01", "endDate": "2000-01-02"})
        assert (one["sessions"][0]["usage"], one["totals"]["totalTokens"]) == (None, 0)
        for bad in ({"startDate": "soon"}, {"mode": "specific", "timeZone": "Mars/Base"}):
            with pytest.raises(Refused, match=r"no date|no time zone"):
                await guest.call("sessions.usage", bad)
