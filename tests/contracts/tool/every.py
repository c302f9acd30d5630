"""Every tool in the box, made with stand-ins for what it is granted, and a call of each that is right."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from garra.domains.plugins import discover, load
from garra.domains.plugins.discover import Plugin
from garra.domains.web import settings
from garra.sdk.searcher import Searcher
from garra.sdk.tool import Tool
from garra.sdk.web import Searching


class Stuck:
    """What never answers: every method of it waits for ever, as does whatever it opens."""

    def __getattr__(self, name: str) -> Any:
        def asked(*_: Any, **__: Any) -> Any:
            return _Never()

        return asked


class _Never:
    def __await__(self) -> Any:
        return asyncio.Event().wait().__await__()

    async def __aenter__(self) -> Any:
        await asyncio.Event().wait()

    async def __aexit__(self, *_: object) -> None:
        return None

    def __getattr__(self, name: str) -> Any:
        return 60


class StuckWeb(Stuck):
    """There is somebody to ask, who never answers."""

    def __init__(self, searcher: Searcher) -> None:
        self._searcher = searcher

    def searching(self) -> Searching:
        return Searching(self._searcher, explicit=True, cache_ttl_s=0.0)


def tools() -> tuple[Tool, ...]:
    """As the manifests say. Blocks: reads files."""
    box = [item for item in discover.bundled(discover.box()) if isinstance(item, Plugin)]
    web = StuckWeb(next(each for each in settings.shipped() if each.keyless))
    return tuple(
        load.attribute(plugin, part)(**{need: web if need == "web" else Stuck() for need in plugin.manifest.needs})
        for plugin in box
        if plugin.manifest.kind == "tool"
        for part in plugin.manifest.parts
    )


CALLS: Mapping[str, Mapping[str, Any]] = {
    "agents_list": {},
    "apply_patch": {"input": "*** Begin Patch\n*** Add File: new\n+x\n*** End Patch"},
    "ask_user": {"questions": [{"question": "Which?", "options": [{"label": "A"}, {"label": "B"}]}]},
    "browser": {"action": "open", "url": "https://x.test/"},
    "edit": {"path": "a.txt", "edits": [{"oldText": "one", "newText": "two"}]},
    "exec": {"command": "true"},
    "find": {"pattern": "*"},
    "gateway": {"action": "config.get"},
    "grep": {"pattern": "one"},
    "ls": {},
    "memory_get": {"path": "MEMORY.md"},
    "memory_search": {"query": "x"},
    "message": {"action": "send", "text": "x"},
    "pdf": {"pdf": "https://x.test/a.pdf"},
    "process": {"action": "poll", "sessionId": "s"},
    "read": {"path": "media://in/1"},
    "session_status": {},
    "sessions_history": {},
    "sessions_list": {},
    "sessions_search": {"query": "x"},
    "sessions_send": {"sessionKey": "main", "message": "x"},
    "sessions_spawn": {"task": "x"},
    "sessions_yield": {},
    "subagents": {"action": "log", "target": "1"},
    "view_image": {"path": "https://x.test/a.png"},
    "web_fetch": {"url": "https://x.test/"},
    "web_search": {"query": "x"},
    "write": {"path": "b.txt", "content": "x"},
}
"""One call of each that asks somebody, where the tool does at all."""

AT_ONCE = frozenset({"apply_patch", "edit", "find", "ls", "write"})
"""Those that only touch the workspace: there is nothing to wait for."""

ANSWERS: Mapping[str, Mapping[str, Any]] = {
    "memory_get": {"text": "x", "path": "MEMORY.md"},
    "memory_search": {"results": [{"citation": "MEMORY.md#L1", "score": 0.5, "snippet": "x"}]},
    "sessions_history": {"messages": [{"role": "user", "text": "x", "at": 1}]},
    "sessions_search": {"hits": [{"sessionKey": "other", "role": "user", "text": "x"}]},
    "sessions_send": {"status": "ok", "reply": "x"},
}
"""What the gateway answers those that bring words of other conversations; the marks come with it."""

SHOWN: Mapping[str, str] = {
    "browser": "test_browser.py::test_a_page_is_read_and_worked_with",
    "pdf": "test_media.py::test_the_text_of_a_pdf_is_data",
    "read": "test_house_tools.py::test_what_came_with_a_message_is_read_by_its_name",
    "view_image": "test_media.py::test_a_picture_of_the_web_comes_through_the_same_door",
    "web_fetch": "test_web_fetch.py::test_a_page_is_read_as_what_it_is_about",
    "web_search": "test_web_search.py::test_brave_is_asked_with_its_key_and_read",
}
"""Those whose marks are shown against real servers and files, in `tests/builtin/tools`."""

INSIDE = frozenset({
    "agents_list", "apply_patch", "ask_user", "edit", "find", "gateway", "grep", "ls", "message", "session_status",
    "sessions_list", "sessions_spawn", "sessions_yield", "write",
})  # fmt: skip
"""Those that bring nothing from outside: the workspace, the house's own facts, the words of whoever asked."""
