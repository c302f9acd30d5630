"""A session's history as a model is sent it: times in front of words, then checked; only what is new costs work."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from datetime import tzinfo

from garra.core import requests
from garra.core.blots import NONE, Blots
from garra.core.messages import Message
from garra.domains.context.stamps import Stamps
from garra.sdk.model import Model
from garra.sdk.written import Messages, Rest, breath, ends, shared

TARGETS = 4
"""For how many models of one session the checked history is kept."""

SLICE = 64
"""So many short messages are looked at before others have their turn."""


class Quiet:
    """A history without the secrets that are known now. The same messages are the same objects again."""

    def __init__(self, blots: Callable[[], Blots]) -> None:
        self._find, self._blots = blots, NONE
        self._plain: Messages = ()
        self._clean: Messages = ()

    def apply(self, messages: Messages) -> Messages:
        """Where the history begins with the one before, only what is new costs work, until a secret is new."""
        blots = self._find()
        if blots is not self._blots:
            self._blots, self._plain, self._clean = blots, (), ()
        if not blots:
            return messages
        known = shared(messages, self._plain)
        self._plain, self._clean = messages, (*self._clean[:known], *map(blots.message, messages[known:]))
        return self._clean


class History:
    """One session's history. The same messages always give the same request, byte for byte."""

    def __init__(self, zone: tzinfo, blots: Callable[[], Blots] = lambda: NONE) -> None:
        self._stamps = Stamps(zone)
        self._quiet = Quiet(blots)
        self._known = 0
        self._checked: dict[tuple[str, str, str], requests.Request] = {}

    def request(self, messages: tuple[Message, ...], model: Model) -> tuple[Message, ...]:
        """`messages` as `model` accepts them."""
        name = (model.provider, model.id, model.api)
        self._known = len(messages)
        checked = requests.extend(self._checked.pop(name, None), self._stamps.apply(self._quiet.apply(messages)), model)
        self._checked[name] = checked
        if len(self._checked) > TARGETS:
            self._checked.pop(next(iter(self._checked)))
        return checked.messages

    async def prepare(self, messages: tuple[Message, ...], model: Model, rest: Rest = breath) -> None:
        """Work through a long history that is not known yet, in slices with a `rest` behind each."""
        for end in ends(messages, self._known, SLICE):
            if end < len(messages):
                self.request(messages[:end], model)
                await rest()


class Histories:
    """The histories of the open transcripts; one is forgotten with its transcript."""

    def __init__(self, blots: Callable[[], Blots] = lambda: NONE) -> None:
        self._blots = blots
        self._kept: weakref.WeakKeyDictionary[object, tuple[tzinfo, History]] = weakref.WeakKeyDictionary()

    def of(self, transcript: object, zone: tzinfo) -> History:
        found = self._kept.get(transcript)
        if found is None or found[0] is not zone:
            found = self._kept[transcript] = (zone, History(zone, self._blots))
        return found[1]
