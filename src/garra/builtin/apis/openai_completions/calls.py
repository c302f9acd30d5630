"""Tool calls that arrive in fragments: told apart even where a server gives no ids, or one index to all of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from garra.core.events import CallDelta


@dataclass(slots=True)
class _Call:
    """One call so far. `part` is its place in the message; `held` came before its name was known."""

    part: int
    id: str
    given: str
    name: str = ""
    written: str = ""
    held: str = ""


class Fragments:
    """Puts fragments to their calls. `salt` makes ids for calls that come without one."""

    def __init__(self, salt: str) -> None:
        self._salt = salt
        self._calls: list[_Call] = []
        self._slots: dict[int, _Call] = {}

    def __bool__(self) -> bool:
        return any(call.name for call in self._calls)

    def feed(self, fragment: Mapping[str, Any], part: int) -> CallDelta | None:
        """The event of one fragment, None while its call has no name yet. A new call becomes part number `part`."""
        function = fragment.get("function")
        about: Mapping[str, Any] = function if isinstance(function, Mapping) else fragment
        name, given = _text(about.get("name")), _text(fragment.get("id"))
        call = self._known(fragment.get("index"), given, name) or self._new(fragment.get("index"), given, part)
        call.name = call.name or name
        words = _written(about.get("arguments"))
        call.written += words
        if not call.name:
            call.held += words
            return None
        words, call.held = call.held + words, ""
        return CallDelta(call.part, call.id, call.name, words)

    def _known(self, index: Any, given: str, name: str) -> _Call | None:
        if isinstance(index, int):
            call = self._slots.get(index)
            return None if call is None or _another(call, given, name) else call
        if given:
            return next((call for call in self._calls if call.given == given), None)
        if not self._calls or (name and _another(self._calls[-1], given, name)):
            return None
        return self._calls[-1]

    def _new(self, index: Any, given: str, part: int) -> _Call:
        taken = {call.id for call in self._calls}
        made = f"call_{self._salt}_{len(self._calls)}"
        call = _Call(part, given if given and given not in taken else made, given)
        self._calls.append(call)
        if isinstance(index, int):
            self._slots[index] = call
        return call


def _another(call: _Call, given: str, name: str) -> bool:
    """Whether a fragment that goes to `call`'s place begins another call instead."""
    if given and call.given and given != call.given:
        return bool(name)
    return bool(name and call.name) and not (given and given == call.given) and _whole(call.written)


def _whole(written: str) -> bool:
    try:
        return isinstance(json.loads(written), dict)
    except ValueError:
        return False


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _written(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
