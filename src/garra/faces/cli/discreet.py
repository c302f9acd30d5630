"""What a command that reads stored words must not show."""

from __future__ import annotations

from garra.config.load import load
from garra.config.view import known_secrets
from garra.core.blots import Blots, blots
from garra.faces.cli.place import Place


def blots_of(place: Place) -> Blots:
    """The secrets that this installation knows now: a conversation may be older than they are. Blocks."""
    return blots(known_secrets(load(place.paths, place.env)))
