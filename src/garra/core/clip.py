"""Text made to fit: long text loses its middle, terminal text its colours."""

from __future__ import annotations

from garra.core.patterns import later

_ESCAPES = later(
    r"\x1b\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)"  # titles and links
    r"|\x1b[PX^_][^\x1b]{0,4096}\x1b\\"
    r"|\x1b\[[0-?]{0,32}[ -/]{0,8}[@-~]"  # colours and movements
    r"|\x1b[ -/]{0,4}[0-~]"
    r"|[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f]"
)


def plain(text: str) -> str:
    """`text` as a program printed it, without what only a terminal understands; line ends are `\\n`."""
    if "\x1b" in text or "\r" in text or not text.isprintable():
        text = _ESCAPES.sub("", text.replace("\r\n", "\n"))
        text = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
    return text


def clip(text: str, limit: int, hint: str = "") -> tuple[str, int]:
    """`text` within about `limit` characters, and how many its middle lost. `hint` says where the rest is."""
    if len(text) <= limit:
        return text, 0
    head = limit * 2 // 3
    tail = limit - head
    left_out = len(text) - limit
    # plain ASCII: one other character would make the whole text take twice the memory
    note = f"\n\n[{left_out} of {len(text)} characters left out here{'. ' + hint if hint else ''}]\n\n"
    return text[:head] + note + text[-tail:], left_out
