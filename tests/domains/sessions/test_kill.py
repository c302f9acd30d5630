"""Kill the program in the middle of anything: every acknowledged message is there, and every chat goes on."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from garra.core import requests, transcript
from garra.domains.sessions.store import Query
from garra.io.store import lines
from tests.core import strict
from tests.domains.sessions.test_store import MODEL, sessions_in, user

TALKER = Path(__file__).with_name("talker.py")


def killed(folder: Path, after_s: float) -> list[list[str]]:
    with subprocess.Popen([sys.executable, str(TALKER), str(folder)], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        first = child.stdout.readline()
        time.sleep(after_s)
        child.kill()
        rest = child.stdout.read()
    return [line.split() for line in (first + rest).decode().split("\n")[:-1]]


@pytest.mark.parametrize("seed", range(10))
def test_nothing_that_was_acknowledged_is_lost_and_every_session_goes_on(tmp_path: Path, seed: int) -> None:
    told = killed(tmp_path, random.Random(seed).uniform(0.0, 0.6))
    kept: dict[str, set[str]] = {}
    for path in (tmp_path / "agents" / "main" / "sessions").glob("*.jsonl*"):
        loaded = transcript.load(lines.read(path))
        assert loaded.skipped == 0
        kept[path.name.split(".jsonl")[0]] = {entry.id for entry in loaded.entries}
    for words in told:
        if words[0] == "kept":
            assert words[2] in kept[words[1]]
    asyncio.run(go_on(tmp_path, f"after-{seed}"))


async def go_on(state: Path, names: str) -> None:
    """Say one more thing in every session there is, and check the request that would be sent."""
    async with sessions_in(state, names) as sessions:
        page = await sessions.list(Query(limit=1_000))
        assert page.total >= 1
        for session in page.sessions:
            opened = await sessions.transcript(session.key)
            await opened.append(user("hi"))
            sent = requests.valid(opened.messages(), MODEL)
            assert sent[-1].text == "hi"
            assert strict.fault(strict.openai(sent), signatures="sig-") is None
            assert strict.fault(strict.anthropic(sent), signatures="sig-") is None
