"""A session's history as a model is sent it: times in front of words, then checked; only what is new costs work."""

from __future__ import annotations

import asyncio
import weakref
from datetime import tzinfo

from garra.core import requests
from garra.core.messages import Message
from garra.domains.context.stamps import Stamps
from garra.sdk.model import Model

TARGETS = 4
"""For how many models of one session the checked history is kept."""

SLICE = 125
"""So many messages are looked at before others have their turn."""


class History:
    """One session's history. The same messages always give the same request, byte for byte."""

    def __init__(self, zone: tzinfo) -> None:
        self._stamps = Stamps(zone)
        self._known = 0
        self._checked: dict[tuple[str, str, str], requests.Request] = {}

    def request(self, messages: tuple[Message, ...], model: Model) -> tuple[Message, ...]:
        """`messages` as `model` accepts them."""
        name = (model.provider, model.id, model.api)
        self._known = len(messages)
        checked = requests.extend(self._checked.pop(name, None), self._stamps.apply(messages), model)
        self._checked[name] = checked
        if len(self._checked) > TARGETS:
            self._checked.pop(next(iter(self._checked)))
        return checked.messages

    async def prepare(self, messages: tuple[Message, ...], model: Model) -> None:
        """Work through a long history that is not known yet, in slices: others have their turn in between."""
        for end in range(self._known + SLICE, len(messages), SLICE):
            self.request(messages[:end], model)
            await asyncio.sleep(0)


class Histories:
    """The histories of the open transcripts; one is forgotten with its transcript."""

    def __init__(self) -> None:
        self._kept: weakref.WeakKeyDictionary[object, tuple[tzinfo, History]] = weakref.WeakKeyDictionary()

    def of(self, transcript: object, zone: tzinfo) -> History:
        found = self._kept.get(transcript)
        if found is None or found[0] is not zone:
            found = self._kept[transcript] = (zone, History(zone))
        return found[1]
