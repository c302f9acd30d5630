"""Who is asked for the words of a recording, in which order, and whose recordings are heard at all."""

from __future__ import annotations

from collections.abc import Sequence

from garra.config.sections.media import AudioMedia, Media, MediaModel, Scope
from garra.core.value import frozen

AUDIO = "audio"


@frozen
class Place:
    """Where a recording was sent. `kind` is `direct`, `group` or `channel`; `key` the session's."""

    channel: str
    kind: str
    key: str = ""


def chosen(media: Media, ready: Sequence[str]) -> tuple[MediaModel, ...]:
    """Who is asked, one after the other: the configuration's own list, else `ready`, the providers that have a key."""
    audio = media.audio
    if audio.enabled is False:
        return ()
    shared = (one for one in media.models if AUDIO in (one.capabilities or ()))
    listed = [*(one for one in audio.models if AUDIO in (one.capabilities or (AUDIO,))), *shared]
    found = listed or [MediaModel(provider=provider) for provider in ready]
    return tuple(sorted(found, key=lambda one: not _preferred(audio, one)))


def label(one: MediaModel) -> str:
    """Its name for people."""
    return one.command.rpartition("/")[2] or "a program" if is_program(one) else one.provider or "a provider"


def is_program(one: MediaModel) -> bool:
    return one.type == "cli" or (one.type is None and bool(one.command) and not one.provider)


def allowed(scope: Scope, place: Place) -> bool:
    """Whether recordings of `place` are heard: the first rule that matches decides."""
    for rule in scope.rules:
        match = rule.match
        kind = "direct" if match.chat_type == "dm" else match.chat_type
        fits = (
            match.channel in ("", place.channel) and kind in ("", place.kind) and place.key.startswith(match.key_prefix)
        )
        if fits:
            return rule.action == "allow"
    return scope.default == "allow"


def _preferred(audio: AudioMedia, one: MediaModel) -> bool:
    wanted = audio.preferred_model
    names = (
        (f"cli:{one.command}",)
        if is_program(one)
        else (f"{one.provider}/{one.model}", one.model, f"provider:{one.provider}")
    )
    return bool(wanted) and wanted in names
