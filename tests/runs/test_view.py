"""What a model is sent of a history is kept, and made again only where its settings changed."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from garra.config.sections import Config
from garra.core.messages import Assistant, Image, Message, Text, ToolCall, ToolResult, User
from garra.core.pruning import CLEARED, Report, Settings
from garra.core.requests import BAD_PICTURE
from garra.runs.view import SLICE, WINDOWS, View, Views, pruning
from garra.sdk.model import Model

MINUTE = 60_000


def model(window: int = 12_000) -> Model:
    return Model("p", "m", "fake", "http://x", context_window=window)


def talk(turns: int, size: int = 9_000) -> tuple[Message, ...]:
    out: list[Message] = []
    for number in range(turns):
        at = number * 6 * MINUTE
        call = ToolCall(f"c{number}", "exec", {})
        result = ToolResult(call.id, "exec", (Text("x" * size),), at)
        out += [User((Text(f"{number}"),), at), Assistant((call,), at), result, Assistant((Text("ok"),), at)]
    return tuple(out)


@pytest.mark.req("LOOP-07")
async def test_in_slices_or_at_once_it_is_the_same_and_others_have_their_turn() -> None:
    history, turns = talk(SLICE // 2), 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    beside = asyncio.create_task(other())
    view = View(Settings())
    sliced = await view.prepare(history, model())
    beside.cancel()
    assert turns >= len(history) // SLICE - 1
    assert sliced == View(Settings()).messages(history, model())
    assert sliced != history
    assert view.messages(history, model()) == sliced
    assert view.report(model()).rounds > 0
    assert view.report(model(99)) == Report()


async def test_off_is_off_and_other_windows_have_their_own() -> None:
    history = talk(9)
    view = View(Settings(mode="off"))
    assert await view.prepare(history, model()) is history
    seen = View(Settings())
    for window in range(12_000, 12_000 + 2 * WINDOWS):
        assert seen.messages(history, model(window)) != history
    assert seen.messages(history, model(10_000_000)) is history


async def test_pictures_that_were_refused_are_told_in_words_from_then_on() -> None:
    bad, good = Image("image/png", "BAD"), Image("image/png", "GOOD")
    first: tuple[Message, ...] = (User((Text("look"), bad), 1), Assistant((Text("hm"),), 2))
    view, other = View(Settings()), replace(model(), id="other")
    view.refused(first, model())
    later = (*first, User((Text("and this"), good), 3))
    shown = view.messages(later, model())
    assert shown[0].content == (Text("look"), Text(BAD_PICTURE))
    assert shown[1:] == later[1:]
    again = view.messages((*later, Assistant((Text("yes"),), 4)), model())
    assert all(one is two for one, two in zip(shown, again, strict=False))
    assert view.messages(later, other) == later
    view.refused(first, model())
    view.refused(later, model())
    assert view.messages(later, model())[2].content == (Text("and this"), Text(BAD_PICTURE))


class Opened:
    """Stands for an open transcript."""


def test_a_view_lasts_as_long_as_its_settings() -> None:
    views, transcript = Views(), Opened()
    first = views.of(transcript, Settings())
    assert views.of(transcript, Settings()) is first
    assert views.of(transcript, Settings(ttl_ms=1)) is not first


def test_the_configuration_is_read() -> None:
    usual = pruning(Config.model_validate({}))
    assert usual == Settings()
    said = {
        "mode": "cache-ttl",
        "ttl": "1h",
        "tools": {"allow": ["exec"], "deny": ["web_*"]},
        "hardClear": {"enabled": False, "placeholder": "[gone]"},
    }
    read = pruning(Config.model_validate({"agents": {"defaults": {"contextPruning": said}}}))
    assert read == Settings(ttl_ms=60 * MINUTE, allow=("exec",), deny=("web_*",), clears=False, placeholder="[gone]")
    for text, ms in ((7, 7 * MINUTE), ("90s", 90_000), ("1.5m", 90_000), ("250ms", 250)):
        given = {"agents": {"defaults": {"contextPruning": {"ttl": text}}}}
        assert pruning(Config.model_validate(given)).ttl_ms == ms
    for wrong in ("soon", True, "5 weeks"):
        with pytest.raises(ValueError, match="write a time as"):
            Config.model_validate({"agents": {"defaults": {"contextPruning": {"ttl": wrong}}}})
    assert usual.placeholder == CLEARED
