"""The colours: warm paper or dark ink, one accent (kelp green), amber and red where a person has to look."""

from __future__ import annotations

from textual.theme import Theme

INK = Theme(
    name="ink",
    dark=True,
    primary="#5cc2b0",
    secondary="#5cc2b0",
    accent="#5cc2b0",
    success="#71c492",
    warning="#e0b25a",
    error="#f08a7c",
    foreground="#eceae3",
    background="#141513",
    surface="#191a18",
    panel="#1f211e",
    boost="#262824",
    variables={"quiet": "#8f8c82", "soft": "#b0ada3", "line": "#31332f", "tint": "#1c332e", "code": "#262824"},
)
PAPER = Theme(
    name="paper",
    dark=False,
    primary="#0b6e63",
    secondary="#0b6e63",
    accent="#0b6e63",
    success="#2f7d4f",
    warning="#96620a",
    error="#b3372b",
    foreground="#1d1c19",
    background="#f7f6f2",
    surface="#f1efe9",
    panel="#fffefb",
    boost="#f0ede5",
    variables={"quiet": "#736e63", "soft": "#5b574e", "line": "#e3dfd5", "tint": "#e2f0ec", "code": "#f0ede5"},
)


def fitting(hint: str, colour_hint: str) -> str:
    """The theme's name: `hint` when it names one, else by the terminal's own word on its background (COLORFGBG)."""
    if hint in {INK.name, PAPER.name}:
        return hint
    background = colour_hint.rpartition(";")[2]
    return PAPER.name if background in {"7", "15"} else INK.name
