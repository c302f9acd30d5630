"""What of a stored history a model is sent: the one place where messages are changed on their way to a request.

    transcript -> engine (may choose, may add) -> pruning (old results in brief) -> runs/history (made valid, encoded)

The transcript is never changed here. A view only changes at the moments that `core.pruning` names, so that a provider's
prompt cache and the kept encoded history hold.
"""

from __future__ import annotations

import weakref
from typing import Final

from garra.config.sections import Config
from garra.core.compaction import Steps
from garra.core.messages import Image, Message
from garra.core.pruning import CLEARED, Pruning, Report, Settings
from garra.core.requests import without_pictures
from garra.sdk.model import Model
from garra.sdk.written import Rest, breath, shared

Messages = tuple[Message, ...]

WINDOWS: Final = 4
"""For how many sizes of windows a view is kept."""

SLICE: Final = 500
"""So many messages are looked at before others have their turn."""


def pruning(config: Config) -> Settings:
    """What the configuration says of old results (`agents.defaults.contextPruning`)."""
    said = config.agents.defaults.context_pruning
    return Settings(
        said.mode,
        said.ttl,
        clears=said.hard_clear.enabled,
        placeholder=said.hard_clear.placeholder or CLEARED,
        allow=said.tools.allow,
        deny=said.tools.deny,
    )


class Refused:
    """Pictures that a model's provider did not take: they are told in words from then on, until the program ends."""

    def __init__(self) -> None:
        self._seen: set[Image] = set()
        self._plain: Messages = ()
        self._clean: Messages = ()

    def learn(self, messages: Messages) -> None:
        """All in `messages`: which of them it was, nobody says."""
        found = {part for message in messages for part in message.content if isinstance(part, Image)}
        if not found <= self._seen:
            self._seen |= found
            self._plain = self._clean = ()

    def apply(self, messages: Messages) -> Messages:
        """`messages` without them; only what is new costs work."""
        if not self._seen:
            return messages
        known = shared(messages, self._plain)
        fresh = without_pictures(messages[known:], self._seen)
        self._plain, self._clean = messages, (*self._clean[:known], *fresh)
        return self._clean


class View:
    """One session's history as models are sent it. The same messages always give the same view."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._pruned: dict[int, Pruning] = {}
        self._refused: dict[str, Refused] = {}
        self._known = 0

    def messages(self, messages: Messages, model: Model) -> Messages:
        """`messages` for `model`; only what is new costs work."""
        self._known = len(messages)
        shown = self._of(model).view(messages)
        refused = self._refused.get(model.ref)
        return shown if refused is None else refused.apply(shown)

    def refused(self, messages: Messages, model: Model) -> None:
        """`model` took `messages` only without their pictures: they are not sent to it again."""
        self._refused.setdefault(model.ref, Refused()).learn(messages)

    async def prepare(self, messages: Messages, model: Model, rest: Rest = breath) -> Messages:
        """The same, for a long history that is not known yet in slices, with a `rest` behind each."""
        if self._settings.mode == "off":
            return messages
        for end in range(self._known + SLICE, len(messages), SLICE):
            self._of(model).on(messages[:end])
            await rest()
        return self.messages(messages, model)

    def report(self, model: Model) -> Report:
        """What is sent in brief to `model`, as far as was looked."""
        found = self._pruned.get(model.context_window)
        return found.report if found is not None else Report()

    def steps(self, messages: Messages, model: Model) -> Steps:
        """By how much `messages` are smaller when `model` is sent them, and from when on."""
        if self._settings.mode == "off":
            return ()
        found = self._of(model)
        found.on(messages)
        return found.steps

    def _of(self, model: Model) -> Pruning:
        found = self._pruned.pop(model.context_window, None) or Pruning(self._settings, model.context_window)
        self._pruned[model.context_window] = found
        if len(self._pruned) > WINDOWS:
            self._pruned.pop(next(iter(self._pruned)))
        return found


class Views:
    """The views of the open transcripts; one is forgotten with its transcript, and when its settings change."""

    def __init__(self) -> None:
        self._kept: weakref.WeakKeyDictionary[object, tuple[Settings, View]] = weakref.WeakKeyDictionary()

    def of(self, transcript: object, settings: Settings) -> View:
        found = self._kept.get(transcript)
        if found is None or found[0] != settings:
            found = self._kept[transcript] = (settings, View(settings))
        return found[1]
