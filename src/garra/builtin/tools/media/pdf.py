"""Read a PDF: the text of its pages."""

from __future__ import annotations

import importlib.util
import json
import re
from typing import Any, Final

import msgspec

from garra.builtin.tools.media.source import Taken, take
from garra.core import outside
from garra.core.errors import ToolFailed, Unavailable
from garra.core.messages import joined
from garra.core.taint import Mark
from garra.sdk.sight import Documents, Shelf, Sight, Study
from garra.sdk.tool import Call, Effect, Result, ToolInfo, Update
from garra.sdk.web import Bounded, Web

READER: Final = "garra.builtin.tools.media.pages"
CHARS: Final = 36_000
"""Characters of one answer; the other pages are read by another call."""
READ_S: Final = 20.0


class Pdf:
    """The tool `pdf`."""

    info = ToolInfo(
        "pdf",
        "Read a PDF",
        "Read a PDF, or ask about it: a file, a media:// handle or an address.",
        {
            "type": "object",
            "properties": {
                "pdf": {"type": "string", "minLength": 1, "maxLength": 4_000},
                "pages": {"type": "string", "pattern": "^[0-9]{1,6}(-[0-9]{1,6})?(,[0-9]{1,6}(-[0-9]{1,6})?){0,50}$"},
                "prompt": {"type": "string", "maxLength": 4_000, "description": "answered by a model that reads PDF"},
                "password": {"type": "string", "maxLength": 200},
            },
            "required": ["pdf"],
            "additionalProperties": False,
        },
        groups=("group:media",),
        effects=("sends",),
    )

    def __init__(self, web: Web, bounded: Bounded, sight: Sight, shelf: Shelf) -> None:
        self._web, self._bounded, self._sight, self._shelf = web, bounded, sight, shelf

    def prepare(self, arguments: Any) -> Any:
        given = dict(arguments)
        if "pdf" not in given:
            for name in ("path", "file", "url"):
                if name in given:
                    given["pdf"] = given.pop(name)
        if isinstance(given.get("pages"), str):
            given["pages"] = re.sub(r"\s+", "", given["pages"])
        return given

    async def affects(self, call: Call) -> tuple[Effect, ...]:
        """As `web_fetch`: an address that the model has made up may carry words of the conversation."""
        place = call.arguments["pdf"].strip()
        return self.info.effects if place.startswith("http") and not call.context.seen(place) else ()

    async def execute(self, call: Call, _: Update) -> Result:
        if importlib.util.find_spec("pypdf") is None:
            raise ToolFailed("PDF files need the package pypdf, which is not installed: pip install pypdf")
        rules = self._sight.documents()
        taken = await take(call, call.arguments["pdf"].strip(), rules.max_bytes, web=self._web, shelf=self._shelf)
        if b"%PDF-" not in taken.data[:1_024]:
            raise ToolFailed(f"{taken.name} is no PDF")
        prompt = call.arguments.get("prompt", "")
        if prompt and (found := await self._studied(call, taken, prompt, rules)) is not None:
            return found
        return told(taken.name, await self._read(call, taken, rules), taken.marks)

    async def _studied(self, call: Call, taken: Taken, prompt: str, rules: Documents) -> Result | None:
        """What a model says that reads it; None where the caller is to read the text itself."""

        async def text() -> str:
            return joined(told(taken.name, await self._read(call, taken, rules), taken.marks).content)

        whole = not call.arguments.get("pages") and not call.arguments.get("password")
        asked = Study(taken.data, prompt, call.context.agent_id, call.context.model, text, whole, call.context.run_id)
        said = await self._sight.study(asked)
        if said is None:
            return None
        mark = taken.marks[0] if taken.marks else Mark("file", taken.name)
        details = {"pdf": taken.name, "text": said.text, "model": said.model, "native": said.native}
        line = f"[{outside.name(taken.name)}, as {said.model} reads it]"
        return Result.of(f"{line}\n{outside.wrap(said.text, mark)}", details, (mark,))

    async def _read(self, call: Call, taken: Taken, rules: Documents) -> dict[str, Any]:
        """The text of its pages. Raises ToolFailed."""
        wanted = ranges(call.arguments.get("pages", ""))
        asked = {
            "pages": wanted,
            "most": rules.max_pages,
            "password": call.arguments.get("password", ""),
            "chars": CHARS,
        }
        try:
            said = await self._bounded.run(READER, json.dumps(asked).encode() + b"\n" + taken.data, timeout_s=READ_S)
        except Unavailable as fault:
            raise ToolFailed(f"{taken.name}: {fault.message}") from None
        found: dict[str, Any] = msgspec.json.decode(said)
        if "error" in found:
            raise ToolFailed(f"{taken.name}: {found['error']}")
        return found


def ranges(text: str) -> list[list[int]]:
    """`1-3,7` as pairs of first and last."""
    parts = [part.split("-") for part in text.split(",") if part]
    return [[int(part[0]), int(part[-1])] for part in parts]


def told(name: str, found: dict[str, Any], marks: tuple[Mark, ...]) -> Result:
    """The text of a document is never more than data, wherever the file came from."""
    pages = found["pages"]
    if not pages:
        raise ToolFailed(f"{name} has {found['count']} pages; none of them was asked for")
    mark = marks[0] if marks else Mark("file", name)
    title = f"Title: {outside.name(found['title'])}\n\n" if found["title"] else ""
    body = "\n\n".join(f"[page {number}]\n{text.strip() or '(no text: a picture?)'}" for number, text in pages)
    last = pages[-1][0]
    more = f"; go on with pages={last + 1}-{found['count']}" if last < found["count"] else ""
    details = {"pdf": name, "pageCount": found["count"], "pages": [number for number, _ in pages]}
    line = f"[{outside.name(name)}: {found['count']} pages, {pages[0][0]} to {last} here{more}]"
    return Result.of(f"{line}\n{outside.wrap(title + body, mark)}", details, (mark,))
