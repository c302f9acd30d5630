"""The drawing of the layers, made from the contracts that the import checker enforces (.importlinter)."""

from __future__ import annotations

import configparser
from html import escape

from docs.make.page import ROOT

SAYS = {
    "faces": "command line, terminal, web page",
    "app": "puts everything together",
    "gateway": "server, methods, events",
    "checks": "doctor, audit",
    "turns": "a message of a chat",
    "runs": "one run, from words to answer",
    "domains": "one subject each",
    "client": "speaks to a gateway",
    "config": "load, check, write, watch",
    "agent": "the loop",
    "io": "the doors to the world",
    "sdk": "what a plugin sees",
    "core": "decides",
}
"""Every layer in a few words; one without fails the tests."""
WIDE, HIGH, GAP, LEFT = 560, 46, 8, 12


def layers() -> list[list[str]]:
    """The layers from high to low; names of one layer do not import each other."""
    contracts = configparser.ConfigParser()
    contracts.read(ROOT / ".importlinter")
    lines = contracts["importlinter:contract:layers"]["layers"].split("\n")
    return [[name.strip() for name in line.split("|")] for line in lines if line.strip()]


def barred() -> list[str]:
    """What built-in plugins may not import."""
    contracts = configparser.ConfigParser()
    contracts.read(ROOT / ".importlinter")
    return contracts["importlinter:contract:plugins-see-sdk-only"]["forbidden_modules"].split()


def drawing() -> str:
    """docs/images/layers.svg"""
    rows = layers()
    height = len(rows) * (HIGH + GAP) + 2 * LEFT
    seen = [name for row in rows for name in row if f"garra.{name}" not in barred()]
    shapes = []
    tops: dict[str, int] = {}
    for number, row in enumerate(rows):
        top = LEFT + number * (HIGH + GAP)
        wide = (WIDE - GAP * (len(row) - 1)) / len(row)
        for place, name in enumerate(row):
            tops[name] = top
            shapes.append(_box(LEFT + place * (wide + GAP), top, wide, name))
    beside = LEFT + WIDE + 64
    first = min(tops[name] for name in seen)
    shapes.append(_plugins(beside, first, max(tops[name] for name in seen) + HIGH - first))
    shapes.append(_arrow(LEFT + WIDE + 24, LEFT + 6, height - LEFT - GAP - 6))
    total = beside + 190 + LEFT
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total} {height}" role="img"'
        f' font-family="system-ui, sans-serif"><title>The layers, high to low; a layer imports only what stands below'
        f" it</title><style>{STYLE}</style>{''.join(shapes)}</svg>\n"
    )


STYLE = (
    "rect{fill:#fffefb;stroke:#e3dfd5}.name{font-size:15px;font-weight:600;fill:#1d1c19}.says{font-size:12.5px;fill:#55514a}"
    ".plugin{stroke:#0b6e63;stroke-dasharray:5 4}line,path{stroke:#0b6e63;stroke-width:1.5;fill:none}"
    "@media(prefers-color-scheme:dark){rect{fill:#1f211e;stroke:#31332f}.name{fill:#eceae3}.says{fill:#b4b1a7}"
    ".plugin{stroke:#5cc2b0}line,path{stroke:#5cc2b0}}"
)


def _box(left: float, top: float, wide: float, name: str) -> str:
    return (
        f'<rect x="{left:g}" y="{top}" width="{wide:g}" height="{HIGH}" rx="6"/>'
        f'<text class="name" x="{left + 12:g}" y="{top + 20}">{escape(name)}</text>'
        f'<text class="says" x="{left + 12:g}" y="{top + 37}">{escape(SAYS[name])}</text>'
    )


def _plugins(left: float, top: float, high: float) -> str:
    return (
        f'<rect class="plugin" x="{left:g}" y="{top:g}" width="190" height="{high:g}" rx="6"/>'
        f'<text class="name" x="{left + 12:g}" y="{top + 24:g}">builtin</text>'
        f'<text class="says" x="{left + 12:g}" y="{top + 43:g}">channels, models, tools,</text>'
        f'<text class="says" x="{left + 12:g}" y="{top + 59:g}">sandboxes: plugins, which</text>'
        f'<text class="says" x="{left + 12:g}" y="{top + 75:g}">see these two alone</text>'
    )


def _arrow(left: float, top: float, bottom: float) -> str:
    return (
        f'<line x1="{left:g}" y1="{top:g}" x2="{left:g}" y2="{bottom:g}"/>'
        f'<path d="M{left - 5:g} {bottom - 8:g} L{left:g} {bottom:g} L{left + 5:g} {bottom - 8:g}"/>'
    )
