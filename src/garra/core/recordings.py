"""Recordings on their way to words: what kind one is, the form it is sent in, the words that come back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from garra.core.patterns import later

MOST: Final = 50_000
"""Characters of a transcript that are kept where nobody says how many."""

_KINDS: Final = {
    "ogg": "audio/ogg",
    "mp3": "audio/mpeg",
    "m4a": "audio/mp4",
    "wav": "audio/wav",
    "webm": "audio/webm",
    "flac": "audio/flac",
}
_STARTS: Final = (
    (b"OggS", "ogg"),
    (b"ID3", "mp3"),
    (b"fLaC", "flac"),
    (b"\x1a\x45\xdf\xa3", "webm"),
    (b"\xff\xfb", "mp3"),
    (b"\xff\xf3", "mp3"),
    (b"\xff\xf2", "mp3"),
)
_NAMED: Final = {
    "opus": "ogg",
    "oga": "ogg",
    "mpeg": "mp3",
    "mpga": "mp3",
    "mp4": "m4a",
    "x-m4a": "m4a",
    "x-wav": "wav",
}
_NOTHING: Final = frozenset({"context:", "###", "transcribe the audio."})
"""What models write for a recording without speech."""

_UNSEEN = later(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")


def ending(head: bytes, mime: str, name: str) -> str:
    """How the file of a recording is to be called, by its first bytes, else by what its sender says of it."""
    if head[:4] == b"RIFF" and head[8:12] == b"WAVE":
        return "wav"
    if head[4:8] == b"ftyp":
        return "m4a"
    found = next((kind for start, kind in _STARTS if head.startswith(start)), "")
    told = (mime.partition(";")[0].rpartition("/")[2], name.rpartition(".")[2])
    named = (_NAMED.get(each.strip().lower(), each.strip().lower()) for each in told)
    return found or next((each for each in named if each in _KINDS), "ogg")


def form(fields: Sequence[tuple[str, str]], recording: bytes, kind: str, boundary: str) -> bytes:
    """The body of a multipart form: `fields`, then the file. Nothing its sender chose stands in its name."""
    parts = [
        f'--{boundary}\r\ncontent-disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
        for name, value in fields
    ]
    head = f'content-disposition: form-data; name="file"; filename="recording.{kind}"\r\ncontent-type: {_KINDS[kind]}'
    return b"".join([*parts, f"--{boundary}\r\n{head}\r\n\r\n".encode(), recording, f"\r\n--{boundary}--\r\n".encode()])


def answered(body: bytes) -> str:
    """The words of an answer: `{"text": …}`, or plain text. Raises ValueError for anything else."""
    said = body.decode("utf-8", "replace").strip()
    if not said.startswith("{"):
        if said.startswith("<"):
            raise ValueError("it answered with a page, not with words")
        return said
    text: Any = json.loads(said).get("text")
    if isinstance(text, str):
        return text
    raise ValueError("its answer has no text")


def words(text: str, most: int | None = None) -> str:
    """A transcript as plain words of at most `most` characters; empty where it holds no speech."""
    plain = _UNSEEN.sub("", text.replace("\r\n", "\n").replace("\r", "\n")).strip()
    if plain.lower() in _NOTHING:
        return ""
    limit = most or MOST
    return plain if len(plain) <= limit else plain[: max(1, limit - 1)].rstrip() + "…"
