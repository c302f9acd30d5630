"""Who turns recordings into words, or that nobody does."""

from __future__ import annotations

from garra.checks.finding import Finding, Ground
from garra.config.sections.media import MediaModel
from garra.core.errors import GarraError
from garra.domains.hearing.choice import chosen, is_program, label
from garra.domains.models import catalog
from garra.domains.models.audio import Listening
from garra.domains.models.names import Names
from garra.domains.plugins import known

WHERE = "tools.media.audio"
HOW = "set GROQ_API_KEY, OPENAI_API_KEY or MISTRAL_API_KEY, or list who can under tools.media.audio.models"


def check(ground: Ground) -> list[Finding]:
    config = ground.snapshot.config
    providers = (*catalog.shipped(), *known.brought(ground.paths, config))
    names = Names(config, catalog.entries(config, providers), providers)
    listening = Listening(names, ground.snapshot.env or ground.env, config.agents.defaults.model.primary)
    media = config.tools.media
    if media.audio.enabled is False:
        return [Finding("hearing", "ok", "voice messages are not turned into words, as is configured", WHERE)]
    asked = chosen(media, listening.ready())
    if not asked:
        what = "nobody turns voice messages into words: the agent is only told that there is one"
        return [Finding("hearing", "note", what, WHERE, HOW)]
    told = [(one, _lacks(listening, one)) for one in asked]
    faults = [Finding("hearing", "warn", f"{label(one)}: {why}", WHERE, HOW) for one, why in told if why]
    able = [_named(listening, one) for one, why in told if not why]
    well = Finding("hearing", "ok", f"voice messages are turned into words by {', then '.join(able)}", WHERE)
    return [*faults, *([well] if able else [])]


def _lacks(listening: Listening, one: MediaModel) -> str:
    """Why it cannot be asked; empty where it can."""
    if is_program(one):
        return "" if one.command.strip() and one.args else "command and args must both be set"
    try:
        listening.listener(one.provider, one.model, one.base_url)
    except GarraError as fault:
        return fault.message
    return ""


def _named(listening: Listening, one: MediaModel) -> str:
    if is_program(one):
        return label(one)
    listener = listening.listener(one.provider, one.model, one.base_url)
    return f"{listener.provider}/{listener.model}"
