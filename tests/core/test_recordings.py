"""What a recording is, how it is sent, and which words come back."""

from __future__ import annotations

import pytest

from garra.core import recordings


@pytest.mark.parametrize(
    ("head", "mime", "name", "kind"),
    [
        (b"OggS\0\0", "audio/mpeg", "a.mp3", "ogg"),
        (b"ID3\x04", "", "", "mp3"),
        (b"\xff\xfb\x90", "", "", "mp3"),
        (b"RIFF\0\0\0\0WAVEfmt ", "", "", "wav"),
        (b"\0\0\0\x20ftypM4A ", "", "", "m4a"),
        (b"\x1a\x45\xdf\xa3", "", "", "webm"),
        (b"fLaC", "", "", "flac"),
        (b"????", "audio/x-m4a", "", "m4a"),
        (b"????", "audio/OGG; codecs=opus", "", "ogg"),
        (b"????", "application/octet-stream", "a.MP3", "mp3"),
        (b"????", "audio/../../x", 'b"\r\nx: y', "ogg"),
        (b"", "", "", "ogg"),
    ],
)
def test_a_recording_is_what_its_bytes_say(head: bytes, mime: str, name: str, kind: str) -> None:
    assert recordings.ending(head, mime, name) == kind


def test_the_form_holds_the_fields_and_the_file_byte_for_byte() -> None:
    data = bytes(range(256))
    body = recordings.form([("model", "m"), ("language", "de")], data, "ogg", "cut")
    assert body.startswith(b'--cut\r\ncontent-disposition: form-data; name="model"\r\n\r\nm\r\n--cut\r\n')
    assert b'name="file"; filename="recording.ogg"\r\ncontent-type: audio/ogg\r\n\r\n' + data in body
    assert body.endswith(b"\r\n--cut--\r\n")


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b'{"text": " hi "}', " hi "),
        (b"plain words\n", "plain words"),
        (b"", ""),
        (b'{"text": ""}', ""),
    ],
)
def test_an_answer_is_json_or_plain(body: bytes, text: str) -> None:
    assert recordings.answered(body) == text


@pytest.mark.parametrize("body", [b"<html>login</html>", b'{"words": "x"}', b'{"text": 5}', b'{"text": "cut'])
def test_anything_else_is_no_answer(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        recordings.answered(body)


@pytest.mark.parametrize(
    ("text", "most", "said"),
    [
        ("  two\r\nlines\r ", None, "two\nlines"),
        ("a\x1b[31mb\u202ec\u200bd\x00", None, "a[31mbcd"),
        ("0123456789", 5, "0123…"),
        ("0123456789", 1, "0…"),
        ("Context:", None, ""),
        ("Transcribe the audio.", None, ""),
        ("Transcribe the audio. Please.", None, "Transcribe the audio. Please."),
    ],
)
def test_words_are_plain_and_bounded(text: str, most: int | None, said: str) -> None:
    assert recordings.words(text, most) == said
    assert len(recordings.words("x" * 200_000)) == recordings.MOST
