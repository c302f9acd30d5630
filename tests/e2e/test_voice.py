"""The running program and a voice message: words where a provider can hear, one line where none can."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from garra.testing.audio import AudioServer, Refuse, Words
from garra.testing.model_server import Say, Silence
from garra.testing.telegram import TelegramServer
from tests.e2e.outside import until
from tests.e2e.resident import Resident, StrictModel, strict_model
from tests.e2e.test_chats import FRIEND, STRANGER, chats

pytestmark = pytest.mark.e2e

SECRET = "gsk-the-key-that-hears"


@asynccontextmanager
async def running(
    root: Path, ears: AudioServer | None = None
) -> AsyncIterator[tuple[Resident, StrictModel, TelegramServer]]:
    async with strict_model() as model, TelegramServer() as telegram:
        program = Resident(root, model.url, chats(telegram))
        if ears is not None:
            address, audio = f"{ears.url}/v1", {"model": "whisper-large-v3-turbo"}
            program.config["models"]["providers"]["groq"] = {"baseUrl": address, "apiKey": SECRET, "audio": audio}
        program.write()
        await program.start()
        try:
            yield program, model, telegram
        finally:
            program.kill()
            await program.gone()


def speak(telegram: TelegramServer, user: int, **more: Any) -> None:
    telegram.files["v1"] = b"OggS" + b"\1" * 4_000
    voice = {"file_id": "v1", "file_unique_id": "u1", "duration": 12, "mime_type": "audio/ogg"}
    message = {**telegram.message(user, ""), "voice": voice, **more}
    message.pop("text")
    telegram.push({"message": message})


async def story(program: Resident) -> str:
    _, out, _ = await program.run("messages", "list", "--in", "--json")
    _, told, _ = await program.run("messages", "show", json.loads(out)["messages"][0]["id"])
    return told


async def test_the_model_reads_what_was_said(tmp_path: Path) -> None:
    async with AudioServer() as ears, running(tmp_path, ears) as (program, model, telegram):
        ears.then(Words("when does the tide turn?"), Words("/status"))
        model.then(Say("At noon."), Say("A word."))
        speak(telegram, FRIEND, caption="listen")
        await until(lambda: "At noon." in telegram.shown(FRIEND))
        said = json.dumps(model.asked("tide turn?")[0]["messages"][-1])
        assert r"listen\n[voice message, transcribed]\nwhen does the tide turn?" in said
        assert ears.asked[0].fields == {"model": "whisper-large-v3-turbo", "response_format": "json"}
        assert ears.asked[0].headers["authorization"] == f"Bearer {SECRET}"
        told = await story(program)
        assert "turned into words" in told
        assert "by groq/whisper-large-v3-turbo, 24 characters" in told

        speak(telegram, FRIEND)
        await until(lambda: "A word." in telegram.shown(FRIEND))
        assert model.asked(r"transcribed]\n/status"), "a command that is only spoken is ordinary words"

        speak(telegram, STRANGER)
        await until(lambda: telegram.shown(STRANGER))
        assert len(ears.asked) == 2

        code, told, _ = await program.run("doctor")
        assert "voice messages are turned into words by groq/whisper-large-v3-turbo" in told, code


async def test_what_cannot_be_heard_is_one_line(tmp_path: Path) -> None:
    async with AudioServer() as ears, running(tmp_path, ears) as (program, model, telegram):
        ears.then(Refuse(401, f"invalid key {SECRET}"))
        speak(telegram, FRIEND)
        await until(lambda: telegram.shown(FRIEND))
        line = (
            "[attached voice message, 0:12: it could not be turned into words (groq: 401, the key is refused);"
            " ask its sender for the words]"
        )
        assert model.asked(line)
        told = await story(program)
        assert "not turned into words" in told
        assert "401, the key is refused" in told
        assert SECRET not in told + program.log() + json.dumps(model.asked("attached voice"))


async def test_where_nobody_hears_the_model_is_told_so(tmp_path: Path) -> None:
    async with running(tmp_path) as (program, model, telegram):
        speak(telegram, FRIEND)
        await until(lambda: telegram.shown(FRIEND))
        assert model.asked("[attached voice message, 0:12: nothing here can hear it; ask its sender for the words]")
        _, told, _ = await program.run("doctor")
        assert "nobody turns voice messages into words" in told


async def test_a_kill_after_the_words_came_does_not_have_them_paid_twice(tmp_path: Path) -> None:
    async with AudioServer() as ears, running(tmp_path, ears) as (program, model, telegram):
        ears.then(Words("when does the tide turn?"))
        model.then(Silence())
        speak(telegram, FRIEND)
        await until(lambda: model.asked("tide turn?"))
        program.kill()
        await program.gone()
        telegram.files.clear()
        model.then(Say("At noon."))
        await program.start()
        await until(lambda: "At noon." in telegram.shown(FRIEND), 30)
        assert len(ears.asked) == 1
        assert len(telegram.shown(FRIEND)) == 1
        assert "as before, by groq" in await story(program)
