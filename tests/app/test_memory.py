"""What memory is searched with, as the configuration says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from garra.app.memory import installed, owners, settings, told
from garra.config.paths import resolve
from garra.config.sections import Config
from garra.core.taint import Mark
from garra.domains.memory.index import Answer, Hit
from garra.domains.memory.sources import Extra


def made(tmp_path: Path, memory: dict[str, Any], **more: Any) -> Any:
    config = Config.model_validate({"memory": {"search": memory}, **more})
    return settings(resolve({"GARRA_STATE_DIR": str(tmp_path), "HOME": str(tmp_path)}), config, "main")


def test_without_a_word_it_is_what_is_installed(tmp_path: Path) -> None:
    found = made(tmp_path, {})
    assert found.provider == ("local" if installed() else "none")
    assert (found.weights.vector, found.weights.text, found.weights.half_life, found.weights.mmr) == (0.7, 0.3, 30, 0.3)
    assert found.places.kinds == ("memory", "sessions")
    assert found.index == str(tmp_path / "agents" / "main" / "memory.sqlite")
    assert (found.most, found.least, found.enabled) == (6, 0.1, True)


@pytest.mark.parametrize(
    ("given", "provider", "model"),
    [
        ({"provider": "gemini"}, "google", "gemini-embedding-001"),
        ({"provider": "openai", "model": "x"}, "openai", "x"),
        ({"provider": "none"}, "none", ""),
        ({"provider": "mine"}, "mine", ""),
        ({"provider": "openai", "query": {"hybrid": {"enabled": False}}}, "none", ""),
    ],
)
def test_names_of_providers(tmp_path: Path, given: dict[str, Any], provider: str, model: str) -> None:
    found = made(tmp_path, given)
    assert found.provider == provider
    assert found.model == model or provider == "none"
    assert found.identity == (f"{provider}/{model}" if provider != "none" else "")


def test_settings_are_the_files(tmp_path: Path) -> None:
    query = {"maxResults": 3, "hybrid": {"mmr": {"enabled": False}, "temporalDecay": {"enabled": False}}}
    given = {"sources": ["memory"], "extraPaths": ["a", {"path": "b", "pattern": "*.md"}], "query": query}
    found = made(tmp_path, given, plugins={"slots": {"memory": "none"}})
    assert (found.enabled, found.most, found.weights.mmr, found.weights.half_life) == (False, 3, 0, 0)
    assert found.places.extra == (Extra("a"), Extra("b", "*.md"))
    assert found.places.kinds == ("memory",)


def test_a_star_is_no_owner() -> None:
    assert owners(Config.model_validate({"commands": {"ownerAllowFrom": ["telegram:1", "*", 7]}})) == (
        "telegram:1",
        "7",
    )


def test_an_answer_has_the_marks_of_its_hits() -> None:
    hit = Hit("MEMORY.md", 1, 2, "x", 0.5, "memory", "", "", 0, (Mark("web", "y"),))
    answer = told(Answer((hit,), "words", "none", "", "late"))
    assert answer["marks"] == [{"source": "web", "where": "y"}]
    assert answer["warning"] == "late"
    assert answer["results"][0]["citation"] == "MEMORY.md#L1-L2"
