"""Pictures that are too large never enter a history as they are."""

from __future__ import annotations

import base64
import io
import json
import os
from pathlib import Path
from typing import Any

import pytest

from garra.core.errors import Unavailable
from garra.core.messages import Image, Text, ToolResult, User
from garra.core.pictures import read
from garra.io.process.bounded import Bounded
from garra.io.process.door import Programs
from garra.runs.pictures import Pictures

pillow = pytest.importorskip("PIL.Image")


def picture(width: int, height: int, kind: str = "PNG", mode: str = "RGB", *, noise: bool = False) -> Image:
    made = pillow.effect_noise((width, height), 90).convert(mode) if noise else pillow.new(mode, (width, height))
    out = io.BytesIO()
    made.save(out, kind)
    return Image(f"image/{kind.lower()}", base64.b64encode(out.getvalue()).decode())


def user(*content: Any) -> User:
    return User((Text("look"), *content), 1)


class Fails:
    async def run(self, module: str, given: bytes, *, timeout_s: float = 20.0, limit: int = 8 << 20) -> bytes:
        raise Unavailable("it took too much memory")


class Says:
    async def run(self, module: str, given: bytes, *, timeout_s: float = 20.0, limit: int = 8 << 20) -> bytes:
        return json.dumps({"error": "it cannot be read (OSError)"}).encode() + b"\n"


@pytest.mark.parametrize(
    ("given", "size", "kind"),
    [
        (picture(3_000, 1_500), (1_200, 600), "image/png"),
        (picture(3_000, 1_500, "JPEG"), (1_200, 600), "image/jpeg"),
        (picture(2_400, 2_400, noise=True), (1_200, 1_200), "image/jpeg"),
        (picture(2_400, 2_400, "WEBP", "RGBA"), (1_200, 1_200), "image/png"),
        (picture(600, 2_400, "GIF", "P"), (300, 1_200), "image/png"),
        (picture(9_000, 20), (1_200, 3), "image/png"),
    ],
)
async def test_a_large_picture_is_made_smaller(tmp_path: Path, given: Image, size: tuple[int, int], kind: str) -> None:
    programs = Programs()
    pictures = Pictures(Bounded(programs, os.environ, str(tmp_path)), lambda: 1_200)
    try:
        text, made = (await pictures.message(user(given))).content
        assert text == Text("look")
        assert isinstance(made, Image)
        found = read(base64.b64decode(made.data))
        assert ((found.width, found.height), found.mime, made.media_type) == (size, kind, kind)
        result = ToolResult("c", "browser", (given,), 1)
        assert (await pictures.after(None, result, 5)).content == (made,)
    finally:
        await programs.close()


async def test_what_is_small_is_left_alone() -> None:
    pictures = Pictures(Fails(), lambda: 1_200)
    for message in (
        user(),
        user(picture(1_200, 10)),
        user(Image("image/png", "aGk=")),
        user(Image("application/pdf", "x")),
    ):
        assert (await pictures.message(message)).content == message.content


@pytest.mark.parametrize(("bounded", "why"), [(Fails(), "too much memory"), (Says(), "cannot be read")])
async def test_where_it_cannot_be_made_smaller_words_stand_for_what_no_service_takes(bounded: Any, why: str) -> None:
    pictures = Pictures(bounded, lambda: 1_200)
    fair = user(picture(2_000, 10))
    assert (await pictures.message(fair)).content == fair.content, "services take it"
    said = (await pictures.message(user(picture(9_000, 20)))).text
    assert "9000 × 20 points" in said
    assert why in said
    assert "left out" in (await pictures.message(user(Image("image/png", "a" * 40_000)))).text


async def test_without_the_library_the_line_says_what_brings_it() -> None:
    said = (await Pictures(Fails(), lambda: 1_200, lambda: False).message(user(picture(9_000, 20)))).text
    assert "garra plugins install media" in said
