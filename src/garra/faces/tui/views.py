"""One widget for each kind of item. A view is given its item, and given it again when it changed."""

from __future__ import annotations

from typing import Any, assert_never

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from rich.cells import cell_len
from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Markdown, Static
from textual.widgets.markdown import MarkdownStream

from garra.faces.tui.items import Foot, Item, Notice, Said, Thought, Tool, Words, duration

MARKS = {"running": "·", "done": "✓", "failed": "✗"}
TONES = {"running": "quiet", "done": "accent", "failed": "error"}
OUTPUT_LINES = 200


class SaidView(Horizontal):
    """A person's words, at the right."""

    def __init__(self, item: Said) -> None:
        super().__init__(Static(Content(item.text)))


def lined() -> MarkdownIt:
    """Markdown in which an end of a line is one: answers of commands are lists of lines, and models write verses."""
    parser = MarkdownIt("gfm-like")

    def keep(state: StateCore) -> None:
        for token in state.tokens:
            for child in token.children or ():
                if child.type == "softbreak":
                    child.type = "hardbreak"

    parser.core.ruler.push("lined", keep)
    return parser


class WordsView(Markdown):
    """An agent's words, Markdown that grows."""

    def __init__(self, item: Words) -> None:
        super().__init__(item.text, parser_factory=lined)
        self._text = item.text
        self._flow: MarkdownStream | None = None

    async def renew(self, item: Words) -> None:
        """Show the words so far; only what is new is laid out."""
        if item.text == self._text:
            return
        if item.text.startswith(self._text):
            self._flow = self._flow or Markdown.get_stream(self)
            await self._flow.write(item.text[len(self._text) :])
        else:
            await self.settle()
            await self.update(item.text)
        self._text = item.text

    async def settle(self) -> None:
        """No more words come."""
        if self._flow is not None:
            flow, self._flow = self._flow, None
            await flow.stop()


class ThoughtView(Static):
    """What a model thought; shown when asked for."""

    def __init__(self, item: Thought) -> None:
        super().__init__(Content(item.text))

    async def renew(self, item: Thought) -> None:
        self.update(Content(item.text))


class ToolLine(Static):
    """`✓ exec  ls -la      0.3 s`, as wide as the screen, the time at the right."""

    def __init__(self, item: Tool) -> None:
        super().__init__(classes="line")
        self.item = item

    def render(self) -> Text:
        item, width = self.item, max(20, self.size.width)
        colours = self.app.theme_variables
        end = duration(item.ms) if item.state != "running" else "…"
        line = Text(f"{MARKS[item.state]} ", style=colours.get(TONES[item.state], ""), no_wrap=True)
        line.append(item.name, style=f"bold {colours.get('foreground', '')}")
        words = Text(f"  {item.hint}" if item.hint else "", style=colours.get("soft", ""))
        words.truncate(max(0, width - cell_len(line.plain) - len(end) - 2), overflow="ellipsis", pad=False)
        line.append_text(words)
        line.append(" " * max(1, width - cell_len(line.plain) - len(end)))
        return line.append(end, style=colours.get("quiet", ""))


class ToolView(Vertical):
    """A folded tool call; a click or ctrl+o unfolds what came out of it."""

    def __init__(self, item: Tool) -> None:
        super().__init__()
        self._line = ToolLine(item)
        self._output = Static(Content(_clipped(item.output)), classes="output")

    def compose(self) -> ComposeResult:
        yield self._line
        yield self._output

    async def renew(self, item: Tool) -> None:
        self._line.item = item
        self._line.refresh()
        self._output.update(Content(_clipped(item.output)))

    def on_click(self) -> None:
        self.toggle_class("open")


class FootView(Static):
    """Model, time, tokens, price."""

    def __init__(self, item: Foot) -> None:
        super().__init__(Content(item.line()))

    async def renew(self, item: Foot) -> None:
        self.update(Content(item.line()))


class NoticeView(Static):
    """A line of the program itself."""

    def __init__(self, item: Notice) -> None:
        super().__init__(Content(item.text), classes=item.tone)

    async def renew(self, item: Notice) -> None:
        self.update(Content(item.text))


class Empty(Static):
    """What an empty conversation says."""


View = SaidView | WordsView | ThoughtView | ToolView | FootView | NoticeView


def view_of(item: Item) -> View:
    match item:
        case Said():
            return SaidView(item)
        case Words():
            return WordsView(item)
        case Thought():
            return ThoughtView(item)
        case Tool():
            return ToolView(item)
        case Foot():
            return FootView(item)
        case Notice():
            return NoticeView(item)
        case _:
            assert_never(item)


async def renew(view: View, item: Any) -> None:
    """Show a changed item. A person's words do not change."""
    if not isinstance(view, SaidView):
        await view.renew(item)


def _clipped(output: str) -> str:
    lines = output.rstrip().splitlines()
    more = len(lines) - OUTPUT_LINES
    return "\n".join([*lines[:OUTPUT_LINES], f"({more} more lines)"] if more > 0 else lines)
