"""Makes a picture smaller, as a program of its own: `python -m garra.builtin.tools.media.shrink`.

Standard input: a JSON line `{"side", "bytes"}`, then the picture. Standard output: a JSON line `{"mime", "width",
"height"}`, then the new picture; or `{"error"}`. Of one that moves the first frame is kept.
"""

from __future__ import annotations

import importlib
import io
import json
import sys
from collections.abc import Iterator
from typing import Any

QUALITIES = (85, 75, 60, 45)
STEPS = (1.0, 0.75, 0.5, 0.35)
SHARP = 1 << 20
"""A PNG of so many bytes at most stays one: it is a drawing or a screen, not a photograph."""


def main() -> None:
    asked = json.loads(sys.stdin.buffer.readline())
    try:
        head, body = smaller(sys.stdin.buffer.read(), asked["side"], asked["bytes"])
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        MemoryError,
        OSError,
        SyntaxError,
        TypeError,
        ValueError,
    ) as fault:
        head, body = {"error": f"it cannot be read ({type(fault).__name__})"}, b""
    sys.stdout.buffer.write(json.dumps(head).encode() + b"\n" + body)


def smaller(data: bytes, side: int, most: int) -> tuple[dict[str, Any], bytes]:
    """The picture with at most `side` points a side and `most` bytes, the right way up."""
    images, ops = importlib.import_module("PIL.Image"), importlib.import_module("PIL.ImageOps")
    with images.open(io.BytesIO(data)) as opened:
        if opened.format == "JPEG":
            opened.draft("RGB", (side, side))
        picture = ops.exif_transpose(opened)
        photograph = opened.format == "JPEG"
    picture = picture.convert("RGBA" if picture.has_transparency_data else "RGB")
    for mime, made in _tries(images, picture, side, photograph=photograph):
        if len(made[1]) <= most:
            (width, height), body = made
            return {"mime": mime, "width": width, "height": height}, body
    return {"error": "it stays too heavy"}, b""


def _tries(images: Any, picture: Any, side: int, *, photograph: bool) -> Iterator[tuple[str, Any]]:
    """Ever lighter ones: (mime, ((width, height), bytes))."""
    for step in STEPS:
        shown = picture.copy()
        shown.thumbnail((max(1, int(side * step)),) * 2, images.Resampling.LANCZOS)
        if not photograph:
            drawn = _saved(shown, format="PNG", optimize=True)
            if len(drawn) <= SHARP:
                yield "image/png", (shown.size, drawn)
        flat = shown if shown.mode == "RGB" else _on_white(images, shown)
        for quality in QUALITIES:
            yield "image/jpeg", (shown.size, _saved(flat, format="JPEG", quality=quality))


def _on_white(images: Any, picture: Any) -> Any:
    ground = images.new("RGB", picture.size, "white")
    ground.paste(picture, mask=picture.getchannel("A"))
    return ground


def _saved(picture: Any, **form: Any) -> bytes:
    out = io.BytesIO()
    picture.save(out, **form)
    return out.getvalue()


if __name__ == "__main__":
    main()
