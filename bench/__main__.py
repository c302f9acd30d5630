"""python -m bench [TEST ...]: measure Garra, then the peers found in PEERS_DIR, and print the tables."""

from __future__ import annotations

import argparse
import os
import platform
import resource
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from bench import chats, crowds, floor, starts, turns
from bench.figures import Book
from bench.ground import Ground, model
from bench.products import HERE, STATE, Product, read
from bench.report import report

Test = Callable[[Ground, Sequence[Product], int], None]

TESTS: Mapping[str, tuple[Test, int]] = {
    "cli": (starts.cli, 5),
    "oneshot": (starts.oneshot, 5),
    "start": (starts.start, 5),
    "rest": (starts.rest, 1),
    "turns": (turns.turns, 200),
    "tool": (turns.tool, 20),
    "conc": (crowds.conc, 1),
    "rpc": (crowds.rpc, 4),
    "conns": (crowds.conns, 1_000),
    "load": (turns.load, 6),
    "chats": (chats.chats, 10),
    "floor": (floor.calls, 200),
    "inside": (floor.inside, 60),
    "soak": (chats.soak, 5_000),
}
"""Each test and how often it does what it does."""

BY_NAME = frozenset({"soak"})
"""Tests that are long, and run only when they are named."""

OPEN_FILES = 65_536


def main() -> None:
    asked = _asked()
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(OPEN_FILES, limit), limit))
    products = read(HERE / "peers.toml", {"garra": str(asked.garra), "peers": os.environ.get("PEERS_DIR", "/nowhere")})
    names = asked.products.split(",") if asked.products else list(products)
    if strange := set(names) - set(products):
        raise SystemExit(f"peers.toml has no {', '.join(sorted(strange))}; it has {', '.join(products)}")
    chosen = [products[name] for name in names if products[name].installed]
    if not chosen:
        raise SystemExit(f"none of {', '.join(names)} is installed: see peers.sh, and set PEERS_DIR")
    STATE.mkdir(exist_ok=True)
    if not asked.keep:
        asked.out.unlink(missing_ok=True)
    ground = Ground(Book(asked.out), str(asked.garra.with_name("python")))
    with model():
        for product in chosen:
            product.prepare(fresh=not asked.keep)
        for name in asked.tests or [name for name in TESTS if name not in BY_NAME]:
            test, count = TESTS[name]
            test(ground, chosen, asked.count or count)
    text = f"{_where()}\n\n{report(ground.book.rows())}\n"
    print(f"\n{text}")
    if asked.results:
        asked.results.write_text(f"# Results\n\n{text}")


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "tests",
        nargs="*",
        choices=[[], *TESTS],
        metavar="TEST",
        help=", ".join(TESTS) + "; without any, all but " + ", ".join(BY_NAME),
    )
    parser.add_argument("-p", "--products", help="sections of peers.toml, with commas; all that are installed")
    parser.add_argument("-n", "--count", type=int, help="how often, instead of each test's own number")
    parser.add_argument("--garra", type=Path, default=HERE.parent / ".venv/bin/garra", help="the command to measure")
    parser.add_argument("--out", type=Path, default=STATE / "results.jsonl")
    parser.add_argument("--results", type=Path, help="also write the tables to this file")
    parser.add_argument("--keep", action="store_true", help="add to the results and states of an earlier run")
    return parser.parse_args()


def _where() -> str:
    """The machine in one line."""
    now, load = time.strftime("%Y-%m-%d"), os.getloadavg()
    return (
        f"{now}: {os.cpu_count()} cores, {platform.system()} {platform.release()}, Python {platform.python_version()}; "
        f"load of the last 1, 5 and 15 minutes {load[0]:.1f}, {load[1]:.1f}, {load[2]:.1f}"
    )


if __name__ == "__main__":
    main()
