"""The browser as the model uses it: pages as trees with refs, and what can be done with them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from garra.core import outside
from garra.core.errors import ToolFailed
from garra.core.messages import Image, Text
from garra.core.taint import Mark
from garra.sdk.browsing import Browsing
from garra.sdk.sight import Shelf, Sight
from garra.sdk.tool import Call, Effect, Result, ToolInfo, Update

SNAPSHOT: Final = 20_000
MOST: Final = 36_000
ACTIONS: Final = (
    "status", "start", "stop", "tabs", "open", "focus", "close", "navigate", "snapshot", "act", "screenshot", "console",
)  # fmt: skip
KINDS: Final = ("click", "type", "press", "hover", "select", "wait")
_STRING: Final = {"type": "string", "maxLength": 20_000}


class Browser:
    """The tool `browser`."""

    info = ToolInfo(
        "browser",
        "Browser",
        "A real browser. open or navigate to a url, read the snapshot, act on its refs (kind, ref, text).",
        {
            "type": "object",
            "properties": {
                "action": {"type": "string", "enum": list(ACTIONS)},
                "url": {"type": "string", "maxLength": 4_000},
                "targetId": {"type": "string", "maxLength": 20, "description": "tab"},
                "kind": {"type": "string", "enum": list(KINDS)},
                "ref": {"type": "string", "pattern": "^[a-z0-9]{0,20}$"},
                "text": _STRING,
                "values": {"type": "array", "items": _STRING, "maxItems": 50},
                "submit": {"type": "boolean"},
                "doubleClick": {"type": "boolean"},
                "timeMs": {"type": "integer", "minimum": 0, "maximum": 20_000},
                "fullPage": {"type": "boolean"},
                "maxChars": {"type": "integer", "minimum": 200},
            },
            "required": ["action"],
            "additionalProperties": False,
        },
        mode="sequential",
        groups=("group:ui",),
        effects=("sends",),
    )

    def __init__(self, browsing: Browsing, sight: Sight, shelf: Shelf) -> None:
        self._browsing, self._sight, self._shelf = browsing, sight, shelf

    def prepare(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """The original's ways to say it: `targetUrl`, a `request` object, `key` for `press`."""
        given = dict(arguments)
        request = given.pop("request", None)
        if isinstance(request, Mapping):
            given = {**request, **given}
        for theirs, ours in (("targetUrl", "url"), ("key", "text")):
            if theirs in given and ours not in given:
                given[ours] = given.pop(theirs)
        return given

    async def affects(self, call: Call) -> tuple[Effect, ...]:
        """What is done on a page may send something, and so may an address that the model has made up; looking does
        not.
        """
        told = call.arguments
        acts = told["action"] == "act" and told.get("kind") in ("click", "type", "press", "select")
        goes = bool(told.get("url")) and not call.context.seen(str(told["url"]))
        return ("sends",) if acts or goes else ()

    async def execute(self, call: Call, _: Update) -> Result:
        told = call.arguments
        match told["action"]:
            case "status":
                return await self._status()
            case "stop":
                await self._browsing.stop()
                return Result.of("The browser is stopped.", {"running": False})
            case "start":
                await self._asked(call, "tabs", {})
                return await self._status()
            case action:
                found = await self._asked(call, action, wanted(action, told))
                return await self._told(call, action, found)

    async def _status(self) -> Result:
        standing = await self._browsing.standing()
        line = "The browser runs." if standing.running else "The browser does not run; it starts when it is needed."
        details = {"running": standing.running, "executablePath": standing.executable, "lacks": standing.lacks}
        return Result.of(standing.lacks or line, details)

    async def _asked(self, call: Call, op: str, more: Mapping[str, Any]) -> Mapping[str, Any]:
        try:
            return await self._browsing.ask(call.context.session_key, op, more)
        except ToolFailed as fault:
            if (fault.details or {}).get("outside"):
                mark = Mark("web", "a page in the browser")
                raise ToolFailed(outside.name(fault.message), details={"marks": (mark,)}) from None
            raise

    async def _told(self, call: Call, action: str, found: Mapping[str, Any]) -> Result:
        if action == "tabs":
            return listed(found["tabs"])
        downloads = await self._downloads(call, found.get("downloads", ()))
        if found.get("closed"):
            return Result.of(f"Tab {found['tab']} is closed.{downloads}", {"tab": found["tab"]})
        mark = Mark("web", found["url"])
        details = {"targetId": found["tab"], "url": found["url"], "title": found["title"]}
        head = f"[tab {found['tab']}]{downloads}"
        if action == "screenshot":
            return await self._shown(call, head, found, details)
        body = f"Address: {found['url']}\nTitle: {outside.name(found['title'])}"
        if "snapshot" in found:
            most = min(call.arguments.get("maxChars", SNAPSHOT), MOST)
            whole = found["snapshot"]
            body += f"\n\n{whole[:most]}"
            head += f" {most} of {len(whole)} characters" if len(whole) > most else ""
        if "lines" in found:
            body += "\n\n" + ("\n".join(found["lines"])[:MOST] or "(nothing was said)")
        if found.get("status"):
            head += f" status {found['status']}"
        return Result.of(f"{head}\n{outside.wrap(body, mark)}", details, (mark,))

    async def _shown(self, call: Call, head: str, found: Mapping[str, Any], details: dict[str, Any]) -> Result:
        mark, picture = Mark("web", found["url"]), Image(found["mime"], found["data"])
        if self._sight.sees(call.context.model):
            return Result((Text(f"{head} {outside.name(found['url'])}"), picture), details, (mark,))
        here = call.context
        words = await self._sight.describe((picture,), "Describe this page.", here.agent_id, here.run_id)
        return Result.of(f"{head} as another model describes it:\n{outside.wrap(words, mark)}", details, (mark,))

    async def _downloads(self, call: Call, fetched: Any) -> str:
        """A line for each file that pages gave, with the handle by which it is found."""
        lines = []
        for one in fetched:
            name = outside.name(one["name"], 100)
            if "error" in one:
                lines.append(f"\n[download {name}: {one['error']}]")
                continue
            data = await self._browsing.take(one["file"])
            handle = await self._shelf.keep(call.context.session_key, one["name"], data, "")
            lines.append(f"\n[download {name}, {len(data)} bytes: {handle}]")
        return "".join(lines)


def wanted(action: str, told: Mapping[str, Any]) -> dict[str, Any]:
    """What the browser is asked. Raises ToolFailed for an address that is none of the web, or an act without a kind."""
    if action in ("open", "navigate"):
        url = told.get("url", "").strip()
        if url or action == "navigate":
            check(url)
        return {"tab": told.get("targetId", ""), "url": url}
    asked = {"tab": told.get("targetId", ""), "ref": told.get("ref", ""), "full": told.get("fullPage", False)}
    if action != "act":
        return asked
    if "kind" not in told:
        raise ToolFailed(f"act needs a kind: {', '.join(KINDS)}")
    names = {"kind": "kind", "text": "text", "values": "values", "submit": "submit", "doubleClick": "double"}
    return (
        asked
        | {ours: told[theirs] for theirs, ours in names.items() if theirs in told}
        | {"time": told.get("timeMs", 0)}
    )


def check(url: str) -> None:
    try:
        parts = urlsplit(url)
        fits = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.username is None
    except ValueError:
        fits = False
    if not fits:
        raise ToolFailed(f"{url[:200]!r} is not opened: give a whole http:// or https:// address without a password")


def listed(tabs: Any) -> Result:
    if not tabs:
        return Result.of("No tab is open.", {"tabs": []})
    lines = [
        f"{tab['id']}{' (current)' if tab['current'] else ''} {tab['url']} {outside.name(tab['title'])}" for tab in tabs
    ]
    mark = Mark("web", tabs[0]["url"])
    return Result.of(outside.wrap("\n".join(lines), mark), {"tabs": tabs}, (mark,))
