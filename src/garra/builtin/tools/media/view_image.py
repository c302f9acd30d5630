"""Look at a picture: it comes before the model's eyes, or is described where it has none."""

from __future__ import annotations

from garra.builtin.tools.media.source import take
from garra.core import outside
from garra.core.errors import ToolFailed
from garra.core.messages import Text
from garra.core.pictures import LARGEST, image, read
from garra.core.taint import Mark
from garra.sdk.sight import Shelf, Sight
from garra.sdk.tool import Call, Effect, Result, ToolInfo, Update
from garra.sdk.web import Bounded, Web


class ViewImage:
    """The tool `view_image`."""

    info = ToolInfo(
        "view_image",
        "Look at a picture",
        "Look at a picture: a file, a media:// handle or an address.",
        {
            "type": "object",
            "properties": {
                "path": {"type": "string", "minLength": 1, "maxLength": 4_000},
                "prompt": {"type": "string", "maxLength": 4_000, "description": "what to look for"},
            },
            "required": ["path"],
            "additionalProperties": False,
        },
        groups=("group:media",),
        effects=("sends",),
    )

    def __init__(self, web: Web, bounded: Bounded, sight: Sight, shelf: Shelf) -> None:
        self._web, self._sight, self._shelf = web, sight, shelf

    async def affects(self, call: Call) -> tuple[Effect, ...]:
        """As `web_fetch`: an address that the model has made up may carry words of the conversation."""
        place = call.arguments["path"].strip()
        return self.info.effects if place.startswith("http") and not call.context.seen(place) else ()

    async def execute(self, call: Call, _: Update) -> Result:
        taken = await take(call, call.arguments["path"].strip(), LARGEST, web=self._web, shelf=self._shelf)
        try:
            found = read(taken.data)
        except ValueError as fault:
            raise ToolFailed(f"{taken.name}: {fault}") from None
        shown = image(taken.data, found.mime)
        size = f"{found.mime}, {found.width} × {found.height}, {len(taken.data)} bytes"
        details = {"path": taken.name, "mimeType": found.mime, "width": found.width, "height": found.height}
        line = f"{outside.name(taken.name)} ({size})"
        if self._sight.sees(call.context.model):
            return Result((Text(line), shown), details, taken.marks)
        prompt, here = call.arguments.get("prompt", ""), call.context
        words = await self._sight.describe((shown,), prompt, here.agent_id, here.run_id)
        mark = taken.marks[0] if taken.marks else Mark("file", taken.name)
        return Result.of(f"{line}, as another model describes it:\n{outside.wrap(words, mark)}", details, (mark,))
