"""The keys of `channels.*` as far as the channels themselves declare them: what is unknown, and what does not fit."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from garra.config import originals
from garra.config.issue import Issue, issue
from garra.config.sections.channels import Channel
from garra.config.sections.lookup import Odd, keys_of
from garra.core.dotted import Path
from garra.core.schema import faults

NO_CHANNEL = frozenset({"modelByChannel"})
"""What stands among the channels and is none."""
_WANTED = {"string": "text", "boolean": "true or false", "integer": "a whole number", "number": "a number",
           "object": "an object", "array": "a list"}  # fmt: skip

Schemas = Mapping[str, Mapping[str, Any]]
"""By channel: its keys, each with its JSON Schema."""


def accounts(tree: Any, brought: Schemas | None = None) -> Iterator[tuple[Path, str, Mapping[str, Any]]]:
    """Each place where a channel's keys stand, with the channel: its own, and those of its accounts."""
    channels = tree.get("channels") if isinstance(tree, dict) else None
    for name, section in channels.items() if isinstance(channels, dict) else ():
        if not isinstance(section, dict) or name in NO_CHANNEL or (brought is not None and name not in brought):
            continue
        yield ("channels", name), name, section
        listed = section.get("accounts")
        for account, own in listed.items() if isinstance(listed, dict) else ():
            if isinstance(own, dict):
                yield ("channels", name, "accounts", account), name, own


def unknown(tree: Any, brought: Schemas | None = None) -> Iterator[Odd]:
    """The keys that nobody declares; `brought` are the channels to look at, all of the box where there is none.

    Of a channel that says nothing of its keys only those that are not wholly foreign count (`Odd.sure` is false).
    """
    for at, name, section in accounts(tree, brought):
        own = _schema(name, brought)
        plain = keys_of(Channel).union(own or ())
        for key in section:
            if key not in plain and key not in (others := originals.of_channel(name) or frozenset()):
                sure = own is not None or originals.of_channel(name) is not None
                yield Odd((*at, key), (*plain, *others), sure)


def misfits(tree: Any, unset: Collection[Path] = (), brought: Schemas | None = None) -> Iterator[Issue]:
    """The values that do not fit what their channel declares; those at `unset` are not looked at."""
    typed = keys_of(Channel)
    for at, name, section in accounts(tree, brought):
        for key, part in (_schema(name, brought) or {}).items():
            if key in section and key not in typed and (*at, key) not in unset:
                yield from _misfit((*at, key), part, section[key])


def declared(at: Path) -> Mapping[str, Any] | None:
    """What a channel of the box says of the key at this place, as JSON Schema; None where none says anything."""
    match at:
        case ("channels", str(name), "accounts", _, str(key)) | ("channels", str(name), str(key)):
            return (originals.channel_in_the_box(name) or {}).get(key)
        case _:
            return None


def _schema(name: str, brought: Schemas | None) -> Mapping[str, Any] | None:
    return originals.channel_in_the_box(name) if brought is None else brought.get(name)


def _misfit(at: Path, part: Mapping[str, Any], value: Any) -> Iterator[Issue]:
    kinds = part.get("type")
    if value is None or (part.get("secret") and isinstance(value, dict)):  # a reference to a secret
        return
    if kinds == "string" and isinstance(value, bool | int | float):
        yield issue(at, "expected text, received a number or a word; write it in quotes", wrong=True)
        return
    allowed = tuple(map(str, part.get("enum", ())))
    if not faults({"properties": {str(at[-1]): part}}, {str(at[-1]): value}):
        return
    if allowed:
        shown = f', got: "{value[:60]}"' if isinstance(value, str) and not part.get("secret") else ""
        listed = ", ".join(f'"{name}"' for name in allowed)
        yield issue(at, f"Invalid input (allowed: {listed}){shown}; its account does not start", allowed, wrong=True)
        return
    yield issue(at, f"does not fit: {_expected(part)}; its account does not start", wrong=True)


def _expected(part: Mapping[str, Any]) -> str:
    kinds = part.get("type") or ()
    words = " or ".join(_WANTED.get(kind, kind) for kind in ([kinds] if isinstance(kinds, str) else kinds))
    bounds = {"minimum": "at least", "exclusiveMinimum": "more than", "maximum": "at most"}
    told = [f"{how} {part[key]}" for key, how in bounds.items() if key in part]
    return " ".join(("expected", words or "something else", *told))
