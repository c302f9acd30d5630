"""Recordings become words: real servers, real programs, a real store; what fails is told in a few words."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from garra.config.sections import Config
from garra.config.sections.media import Media
from garra.domains.hearing.ask import Asking, Recording
from garra.domains.hearing.choice import Place
from garra.domains.hearing.ears import KEEP_MS, Ears, Heard, Ports
from garra.domains.hearing.programs import Running
from garra.domains.models import catalog
from garra.domains.models.audio import Listening
from garra.domains.models.names import Names
from garra.io.env import read
from garra.io.http import GuardedHttp
from garra.io.process.door import Programs
from garra.io.store.db import Database
from garra.io.store.shelf import Shelf
from garra.testing.audio import AudioServer, Refuse, Words
from garra.testing.clock import ManualClock

HERE = Place("telegram", "direct", "agent:main:main")
SECRET = "gsk-a-long-secret-key"
SOUND = b"OggS" + b"\1" * 2_000


@dataclass
class Room:
    """Everything around the ears; `settings` is the configuration."""

    server: AudioServer
    root: Path
    http: GuardedHttp
    programs: Programs
    shelf: Shelf
    clock: ManualClock = field(default_factory=ManualClock)
    settings: dict[str, Any] = field(default_factory=dict)
    numbers: Any = field(default_factory=count)

    def provider(self, name: str, **more: Any) -> dict[str, Any]:
        audio = {"model": f"{name}-ear"}
        return {name: {"baseUrl": f"{self.server.url}/{name}", "apiKey": SECRET, "audio": audio, **more}}

    def config(self) -> Config:
        return Config.model_validate(self.settings)

    def listening(self) -> Listening:
        config = self.config()
        return Listening(Names(config, catalog.entries(config, ()), ()), {})

    def ears(self) -> Ears:
        def media() -> Media:
            return self.config().tools.media

        running = Running(self.programs, read())
        asking = Asking(self.http, lambda: str(next(self.numbers)))
        return Ears(Ports(media, self.listening, asking, running, self.shelf, self.clock))

    async def recording(self, data: bytes = SOUND, name: str = "") -> Recording:
        path = self.root / "note.ogg"
        await asyncio.to_thread(path.write_bytes, data)
        return Recording(path, "audio/ogg", name, len(data))

    async def hear(self, data: bytes = SOUND, key: str = "k", place: Place = HERE) -> Heard:
        return await self.ears().hear(key, await self.recording(data), place)


@pytest.fixture
async def room(tmp_path: Path) -> AsyncIterator[Room]:
    async with AudioServer() as server, _doors(tmp_path) as (http, programs, db):
        made = Room(server, tmp_path, http, programs, Shelf(db, "heard"))
        made.settings = {"models": {"providers": {**made.provider("one"), **made.provider("two")}}}
        yield made


@asynccontextmanager
async def _doors(root: Path) -> AsyncIterator[tuple[GuardedHttp, Programs, Database]]:
    http, programs, db = GuardedHttp(), Programs(), Database(root / "state.db")
    await db.open()
    try:
        yield http, programs, db
    finally:
        await db.close()
        await programs.close()
        await http.close()


def media(room: Room, **audio: Any) -> None:
    room.settings["tools"] = {"media": {"audio": audio}}


async def test_the_words_come_from_the_form_of_the_original(room: Room) -> None:
    media(room, language="de", prompt="names:\r\nGarra")
    assert await room.hear() == Heard("hello there", "one/one-ear")
    asked = room.server.asked[0]
    assert asked.path == "/one/audio/transcriptions"
    assert asked.headers["authorization"] == f"Bearer {SECRET}"
    said = {"model": "one-ear", "response_format": "json", "language": "de", "prompt": "names: Garra"}
    assert (asked.fields, asked.file_name, asked.data) == (said, "recording.ogg", SOUND)


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (Refuse(401, f"bad key {SECRET}"), "401, the key is refused"),
        (Refuse(402), "402, its account has no credit left"),
        (Refuse(404), "404, no such model or address there"),
        (Refuse(413), "413, the recording is too large for it"),
        (Refuse(415), "415, it refused the recording"),
        (Refuse(429), "429, too many requests"),
        (Refuse(500), "500, it has a fault"),
        (Refuse(503), "503, it is overloaded"),
        (Refuse(0), "the connection broke"),
        (Refuse(-1), "no answer within 0.3 s"),
        (Words(raw=b"<html>sign in</html>"), "it answered with a page, not with words"),
        (Words(raw=b'{"text"'), "its answer cannot be read"),
        (Words(raw=b'{"id": 1}'), "its answer has no text"),
    ],
)
async def test_who_fails_is_followed_by_the_next(
    room: Room, reply: Words | Refuse, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    media(room, timeoutSeconds=0.3)
    room.server.then(reply, Words("from the other"))
    assert await room.hear() == Heard("from the other", "two/two-ear")
    room.server.then(reply, reply)
    failed = await room.hear(key="other")
    assert failed.why == f"it could not be turned into words (one: {words}; two: {words})"
    assert await room.ears().recall("other") is None
    assert SECRET not in caplog.text + failed.why
    assert "could not be heard by one" in caplog.text


async def test_nobody_is_asked_twice_for_one_recording(room: Room) -> None:
    assert await room.ears().recall("k") is None
    room.server.then(Words("first"))
    await room.hear()
    assert await room.ears().recall("k") == Heard("first", "one/one-ear", again=True)
    await room.ears().forget()
    assert await room.ears().recall("k") is not None
    await room.clock.advance(KEEP_MS / 1_000 + 1)
    await room.ears().forget()
    assert await room.ears().recall("k") is None


@pytest.mark.parametrize(
    ("audio", "data", "why"),
    [
        ({"enabled": False}, SOUND, "nothing here can hear it"),
        ({"scope": {"default": "deny"}}, SOUND, "recordings are not heard in this chat"),
        ({}, b"OggS", "it is too short to hold a word"),
        ({"maxBytes": 1_500}, SOUND, "one: it is over the limit of 0.0 MB"),
        ({"models": [{"provider": "three"}]}, SOUND, "three: no provider is called three"),
        ({"models": [{"provider": "mute"}]}, SOUND, "mute: it turns nothing into words here"),
        ({"models": [{"provider": "keyless"}]}, SOUND, "keyless: no key for keyless"),
        ({"models": [{"provider": "one", "headers": {"X-A": "${NO_SUCH}"}}]}, SOUND, "one: its header X-A names"),
    ],
)
async def test_what_is_not_to_be_heard_goes_nowhere(
    room: Room, audio: Mapping[str, Any], data: bytes, why: str
) -> None:
    room.settings["models"]["providers"] |= {
        "mute": {"baseUrl": room.server.url, "api": "anthropic-messages", "apiKey": "k", "models": []},
        **room.provider("keyless", apiKey="${NO_SUCH}"),
    }
    media(room, **audio)
    heard = await room.hear(data)
    assert why in heard.why
    assert not heard.by
    assert not room.server.asked


async def test_a_silent_recording_and_a_long_one(room: Room) -> None:
    room.server.then(Words("  "), Words("one two three four"))
    assert await room.hear(key="a") == Heard("", "one/one-ear")
    media(room, maxChars=8)
    assert (await room.hear(key="b")).words == "one two…"


async def test_an_entry_may_say_address_headers_and_model(room: Room) -> None:
    entry = {"provider": "one", "model": "m", "baseUrl": f"{room.server.url}/else/", "headers": {"X-Team": "blue"}}
    media(room, models=[{**entry, "language": "fr", "maxChars": 3}], language="de")
    assert await room.hear() == Heard("he…", "one/m")
    asked = room.server.asked[0]
    assert (asked.path, asked.headers["x-team"]) == ("/else/audio/transcriptions", "blue")
    assert (asked.fields["model"], asked.fields["language"]) == ("m", "fr")


def program(*lines: str) -> dict[str, Any]:
    return {"type": "cli", "command": "sh", "args": ["-c", "\n".join(lines), "hear", "{{MediaPath}}", "{{OutputDir}}"]}


@pytest.mark.parametrize(
    ("entry", "heard"),
    [
        (program('printf "%s bytes of %s" "$(wc -c < "$1")" "$(basename "$1")"'), "2004 bytes of note.ogg"),
        (program('test "$(pwd)" = "$2" && env | cut -d= -f1 | grep -c SECRET; true'), "0"),
        (program("echo oops; exit 3"), "sh: it ended with 3"),
        ({**program("sleep 30"), "timeoutSeconds": 0.3}, "sh: no answer"),
        ({"type": "cli", "command": "no-such-program", "args": ["x"]}, "no-such-program: there is no such program"),
        ({"type": "cli", "command": "sh", "args": []}, "sh: command and args must both be set"),
        ({"type": "cli", "command": "sh", "args": ["{{Secrets}}"]}, "sh: args name {{Secrets}}, which is not known"),
    ],
)
async def test_a_program_of_the_owners_may_hear(room: Room, entry: Mapping[str, Any], heard: str) -> None:
    media(room, models=[entry])
    found = await room.hear()
    assert heard in (found.words or found.why)
    assert found.by in ("sh", "")
    assert not room.server.asked


@pytest.mark.parametrize("most", [1, 3])
async def test_only_so_many_are_asked_at_one_time(room: Room, most: int) -> None:
    room.settings["tools"] = {"media": {"concurrency": most}}
    room.server.then(*[Refuse(-1)] * 5)
    ears, recording = room.ears(), await room.recording()
    tasks = [asyncio.ensure_future(ears.hear(str(number), recording, HERE)) for number in range(5)]
    for _ in range(most):
        await room.server.arrival()
    await asyncio.sleep(0.05)
    assert len(room.server.asked) == most
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def test_those_with_a_key_are_asked_in_the_originals_order() -> None:
    known = catalog.shipped()
    config = Config.model_validate(
        {"models": {"providers": {"mine": {"baseUrl": "http://x/v1", "audio": {"model": "w"}}}}}
    )
    env = {"OPENAI_API_KEY": "a", "GROQ_API_KEY": "b", "MISTRAL_API_KEY": "c", "ANTHROPIC_API_KEY": "d"}
    entries = catalog.entries(config, known)
    listening = Listening(Names(config, entries, known), env)
    assert listening.ready() == ("mine", "groq", "openai", "mistral")
    assert Listening(listening.names, env, "mistral/mistral-large-latest").ready()[0] == "mistral"
    assert Listening(listening.names, {}).ready() == ("mine",)
    assert listening.listener("groq").url == "https://api.groq.com/openai/v1/audio/transcriptions"
    kept = Listening(listening.names, {}, kept=lambda provider: SECRET if provider == "groq" else "")
    assert kept.ready() == ("mine", "groq")
    assert kept.listener("groq").secret == SECRET
    long = Listening(listening.names, {"GROQ_API_KEY": SECRET})
    assert SECRET not in repr(long.listener("groq"))


def test_another_address_is_another_server() -> None:
    known = catalog.shipped()
    config = Config.model_validate({"models": {"providers": {"openai": {"baseUrl": "http://proxy/v1", "apiKey": "k"}}}})
    listening = Listening(Names(config, catalog.entries(config, known), known), {})
    assert listening.ready() == ()
    assert listening.listener("openai", "whisper-1").url == "http://proxy/v1/audio/transcriptions"
