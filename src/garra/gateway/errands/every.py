"""What tools ask the gateway, each as the turn it was called in: the session's own, or what that turn may see."""

from __future__ import annotations

from collections.abc import Mapping

from garra.gateway.errands import conversations, files, messages, questions, restart, settings, talk
from garra.gateway.errands.sight import Run

ALL: Mapping[str, Run] = {
    **conversations.ERRANDS,
    **talk.ERRANDS,
    **messages.ERRANDS,
    **files.ERRANDS,
    **questions.ERRANDS,
    **settings.ERRANDS,
    **restart.ERRANDS,
}
"""By name. What is not here may be read by the owner's own turns alone, through the method table."""

__all__ = ["ALL", "Run"]
