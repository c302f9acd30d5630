"""Who is asked for the words of a recording, and whose recordings are heard."""

from __future__ import annotations

from typing import Any

import pytest

from garra.config.sections.media import Media, Scope
from garra.domains.hearing.choice import Place, allowed, chosen, label

OPENAI = {"provider": "openai", "model": "gpt-4o-transcribe", "capabilities": ["audio"]}
GROQ = {"provider": "groq"}
PICTURES = {"provider": "google", "capabilities": ["image"]}
BARE = {"provider": "mistral"}
PROGRAM = {"type": "cli", "command": "/opt/bin/whisper", "args": ["x"], "capabilities": ["audio"]}


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        ({}, ["groq", "openai"]),
        ({"audio": {"enabled": True}}, ["groq", "openai"]),
        ({"audio": {"enabled": False}}, []),
        ({"audio": {"enabled": False, "models": [GROQ]}}, []),
        ({"models": [PICTURES, BARE]}, ["groq", "openai"]),
        ({"models": [PICTURES, OPENAI, PROGRAM]}, ["openai", "whisper"]),
        ({"audio": {"models": [GROQ]}, "models": [OPENAI]}, ["groq", "openai"]),
        ({"models": [OPENAI, PROGRAM], "audio": {"preferredModel": "cli:/opt/bin/whisper"}}, ["whisper", "openai"]),
        ({"models": [PROGRAM, OPENAI], "audio": {"preferredModel": "openai/gpt-4o-transcribe"}}, ["openai", "whisper"]),
        ({"models": [PROGRAM, OPENAI], "audio": {"preferredModel": "provider:openai"}}, ["openai", "whisper"]),
        ({"models": [PROGRAM, OPENAI], "audio": {"preferredModel": "other"}}, ["whisper", "openai"]),
    ],
)
def test_the_configured_are_asked_else_those_with_a_key(settings: dict[str, Any], names: list[str]) -> None:
    media = Media.model_validate(settings)
    assert [label(one) for one in chosen(media, ("groq", "openai"))] == names


@pytest.mark.parametrize(
    ("scope", "heard"),
    [
        ({}, True),
        ({"default": "deny"}, False),
        ({"rules": [{"action": "deny", "match": {"channel": "telegram"}}]}, False),
        ({"rules": [{"action": "deny", "match": {"channel": "irc"}}]}, True),
        ({"default": "deny", "rules": [{"action": "allow", "match": {"chatType": "dm"}}]}, True),
        ({"default": "deny", "rules": [{"action": "allow", "match": {"chatType": "group"}}]}, False),
        ({"default": "deny", "rules": [{"match": {"keyPrefix": "agent:main:"}}]}, True),
        ({"rules": [{"action": "allow"}, {"action": "deny"}]}, True),
    ],
)
def test_the_first_rule_that_matches_decides(scope: dict[str, Any], *, heard: bool) -> None:
    assert allowed(Scope.model_validate(scope), Place("telegram", "direct", "agent:main:telegram:7")) is heard


def test_keys_of_others_are_kept() -> None:
    media = Media.model_validate({"image": {"enabled": True}, "audio": {"echoTranscript": True}, "models": [OPENAI]})
    assert media.model_extra == {"image": {"enabled": True}}
    assert media.audio.model_extra == {"echoTranscript": True}
