"""A list to choose from, narrowed by typing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Label, OptionList
from textual.widgets.option_list import Option

from garra.faces.tui.backend import Choice

EMPTY = "nothing here fits"


class Picker(ModalScreen[str | None]):
    """Gives the chosen value, None when the person left it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "close"),
        Binding("down", "move(1)", priority=True),
        Binding("up", "move(-1)", priority=True),
    ]

    def __init__(self, title: str, choices: Sequence[Choice], current: str = "") -> None:
        super().__init__()
        self._title, self._choices, self._current = title, list(choices), current
        self._shown: list[Choice] = []

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Label(self._title)
            yield Input(placeholder="type to narrow, Enter to choose, Esc to close")
            yield OptionList()

    def on_mount(self) -> None:
        self._narrow("")
        self.query_one(Input).focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        self._narrow(event.value)

    def on_input_submitted(self) -> None:
        at = self.query_one(OptionList).highlighted
        self.dismiss(self._shown[at].value if at is not None and at < len(self._shown) else None)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self._shown[event.option_index].value if self._shown else None)

    def action_move(self, step: int) -> None:
        options = self.query_one(OptionList)
        (options.action_cursor_down if step > 0 else options.action_cursor_up)()

    def _narrow(self, text: str) -> None:
        wanted = text.casefold().split()
        self._shown = [
            choice
            for choice in self._choices
            if all(word in f"{choice.label} {choice.about} {choice.value}".casefold() for word in wanted)
        ]
        options = self.query_one(OptionList)
        options.clear_options()
        options.add_options([Option(self._line(choice)) for choice in self._shown] or [Option(EMPTY, disabled=True)])
        at = next((n for n, choice in enumerate(self._shown) if choice.value == self._current), 0)
        options.highlighted = at if self._shown else None

    def _line(self, choice: Choice) -> Content:
        mark = "● " if choice.value == self._current else "  "
        about = f"  {choice.about}" if choice.about and choice.about != choice.label else ""
        return Content.assemble(mark, choice.label, (about, "$quiet"))
