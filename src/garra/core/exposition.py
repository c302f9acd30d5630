"""Measurements as values, and as the text that Prometheus reads (exposition format 0.0.4).

What a label may say is bounded: a word of a short alphabet, never a conversation's key, a person or a message.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Final, Literal

from garra.core.patterns import later
from garra.core.value import frozen

Kind = Literal["counter", "gauge", "histogram"]
CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
OTHER: Final = "other"
_WORD: Final = later(r"[A-Za-z0-9][A-Za-z0-9_.:/@+-]{0,79}")
_KEY: Final = later(r"(?:agent|subagent|cron|hook|acp):.*")


@frozen
class Spread:
    """What a histogram has seen. `counts` has one more than `bounds`: what is above the last."""

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    sum: float

    @property
    def count(self) -> int:
        return sum(self.counts)


@frozen
class Family:
    """One metric. Each row has a value for each label, and a number or a spread."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    rows: tuple[tuple[tuple[str, ...], float | Spread], ...] = ()


def word(text: str) -> str:
    """`text` as a label's value; what is no short word, or a conversation's key, is `other`; nothing is `none`."""
    if not text:
        return "none"
    return text if _WORD.fullmatch(text) and not _KEY.fullmatch(text) else OTHER


def text(families: Iterable[Family], prefix: str) -> str:
    """All of them, each name behind `prefix` and a `_`, but for those of the process, whose names are everybody's."""
    return "".join(line for family in families for line in _lines(family, prefix))


def _lines(family: Family, prefix: str) -> Iterator[str]:
    name = named(family.name, prefix)
    if not family.rows:
        return
    yield f"# HELP {name} {family.help}\n# TYPE {name} {family.kind}\n"
    for values, found in family.rows:
        labels = list(zip(family.labels, values, strict=True))
        if isinstance(found, Spread):
            yield from _spread(name, labels, found)
        else:
            yield f"{name}{_labels(labels)} {_number(found)}\n"


def named(name: str, prefix: str) -> str:
    return name if name.startswith("process_") else f"{prefix}_{name}"


def _spread(name: str, labels: Sequence[tuple[str, str]], found: Spread) -> Iterator[str]:
    bounds = (*(_number(bound) for bound in found.bounds), "+Inf")
    for bound, count in zip(bounds, accumulate(found.counts), strict=True):
        yield f"{name}_bucket{_labels([*labels, ('le', bound)])} {count}\n"
    yield f"{name}_sum{_labels(labels)} {_number(found.sum)}\n"
    yield f"{name}_count{_labels(labels)} {found.count}\n"


def _labels(pairs: Sequence[tuple[str, str]]) -> str:
    inside = ",".join(f'{name}="{_escaped(value)}"' for name, value in pairs)
    return f"{{{inside}}}" if inside else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) and abs(value) < 2**53 else repr(value)
