"""The results as Markdown: first Garra against its targets, then every figure of every product."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from bench.figures import Row
from bench.ground import STACK
from bench.products import HERE

OURS = "garra"
ABOUT = ("at", "product", "test", "load")
SKIPPED = {*ABOUT, "first_failure"}

Rows = Mapping[tuple[str, str], Row]


def report(rows: Rows) -> str:
    """Both tables; a target whose test did not run has no verdict."""
    return "\n".join([*_targets(rows), "", *_products(rows)])


def _targets(rows: Rows) -> Iterator[str]:
    yield "| figure | target | Garra | met | bare stack |"
    yield "| --- | --- | --- | --- | --- |"
    for target in tomllib.loads((HERE / "targets.toml").read_text())["target"]:
        row = rows.get((OURS, target["test"]), {})
        value = _at(row, target["figure"])
        floor = ""
        if "floor" in target:
            floor = cell(_at(rows.get((STACK, target["floor"]), {}), target.get("floor_figure", target["figure"])))
        bound = f"≤ {target['most']:g}" if "most" in target else f"≥ {target['least']:g}"
        yield f"| {target['words']} | {bound} | {cell(value)} | {_verdict(target, row, value)} | {floor} |"


def _verdict(target: Row, row: Row, value: Any) -> str:
    if value is None:
        return ""
    if row.get("codes", [0]) != [0] or row.get("failures"):
        return "**failed**"
    met = value <= target["most"] if "most" in target else value >= target["least"]
    return "yes" if met else "**no**"


def _at(row: Row, figure: str) -> Any:
    found: Any = row
    for name in figure.split("."):
        found = found.get(name) if isinstance(found, dict) else None
    return found


def _products(rows: Rows) -> Iterator[str]:
    names = list(dict.fromkeys(product for product, _ in rows if product != STACK))
    yield "| test | figure | " + " | ".join(names) + " | bare stack |"
    yield "| --- | --- |" + " --- |" * (len(names) + 1)
    for test in dict.fromkeys(test for _, test in rows):
        beside = [rows.get((name, test), {}) for name in [*names, STACK]]
        figures = dict.fromkeys(figure for row in beside for figure in row if figure not in SKIPPED)
        for figure in figures:
            yield f"| {test} | {figure} | " + " | ".join(cell(row.get(figure)) for row in beside) + " |"


def cell(value: Any) -> str:
    """One figure; of a spread the median and, in brackets, the ends."""
    match value:
        case None:
            return ""
        case {"median": median, "min": low, "max": high}:
            return f"{median:g} ({low:g} to {high:g})"
        case dict():
            return ", ".join(f"{key} {cell(item)}" for key, item in value.items())
        case list():
            return ", ".join(cell(item) for item in value)
        case float():
            return f"{value:g}"
        case int():
            return f"{value:,}"
        case _:
            return str(value)
