"""The conversation on the screen: a column of views, kept by the key of what they show."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from textual.containers import VerticalScroll

from garra.faces.tui.items import Item
from garra.faces.tui.views import Empty, ToolView, View, WordsView, renew, view_of

FIRST_WORDS = "Nothing said yet. Write below; /help says what else can be done."


class Transcript(VerticalScroll):
    """It stays at the end while the person has not scrolled away from it."""

    def __init__(self) -> None:
        super().__init__(id="transcript")
        self._views: dict[str, View] = {}
        self.can_focus = False

    def on_mount(self) -> None:
        self.anchor()

    async def put(self, items: Iterable[Item]) -> None:
        """Show new items at the end and changed ones where they stand."""
        for item in items:
            view = self._views.get(item.key)
            if view is not None:
                await renew(view, item)
                continue
            await self.query(Empty).remove()
            self._views[item.key] = view = view_of(item)
            view.set_class(isinstance(self.children[-1] if self.children else None, ToolView), "apart")
            await self.mount(view)

    async def settle(self) -> None:
        """No answer is growing any more."""
        for view in self._views.values():
            if isinstance(view, WordsView):
                await view.settle()

    async def show(self, items: Iterable[Item]) -> None:
        """Show these items and nothing else."""
        await self.settle()
        await self.remove_children()
        self._views = {item.key: view_of(item) for item in items}
        for before, view in pairwise(self._views.values()):
            view.set_class(isinstance(before, ToolView), "apart")
        await self.mount_all(list(self._views.values()) or [Empty(FIRST_WORDS)])
        self.anchor()
