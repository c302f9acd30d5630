"""Numbers out of samples, and the book of results: one JSON line a result."""

from __future__ import annotations

import json
import os
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Row = dict[str, Any]


def quantile(values: Sequence[float], share: float) -> float:
    """The value below which `share` of the sorted samples lie, interpolated."""
    ordered = sorted(values)
    at = (len(ordered) - 1) * share
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def spread(values: Sequence[float], digits: int = 3) -> Row:
    """Smallest, median and largest of a few samples."""
    return {
        "n": len(values),
        "min": round(min(values), digits),
        "median": round(statistics.median(values), digits),
        "max": round(max(values), digits),
    }


def latency(seconds: Sequence[float]) -> Row:
    """Quantiles in milliseconds of many samples in seconds."""
    shares = {"p50_ms": 0.5, "p95_ms": 0.95, "p99_ms": 0.99, "max_ms": 1.0}
    return {"n": len(seconds)} | {name: round(quantile(seconds, share) * 1e3, 2) for name, share in shares.items()}


@dataclass(frozen=True, slots=True)
class Book:
    """Where results go, and to the screen as they come."""

    path: Path

    def write(self, product: str, test: str, **figures: object) -> None:
        now = time.strftime("%Y-%m-%dT%H:%M:%S")
        row = {"at": now, "product": product, "test": test, "load": round(os.getloadavg()[0], 1), **figures}
        line = json.dumps(row)
        print(line, flush=True)
        with self.path.open("a") as book:
            book.write(line + "\n")

    def rows(self) -> dict[tuple[str, str], Row]:
        """The newest row of each product and test."""
        rows = (json.loads(line) for line in self.path.read_text().splitlines())
        return {(row["product"], row["test"]): row for row in rows}
