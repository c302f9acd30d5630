"""Where transcripts lie. Nothing a client says reaches a file outside its agent's folder."""

from __future__ import annotations

import os
from pathlib import Path

from garra.core.errors import Forbidden
from garra.core.keys import agent_id, session_id


def folder(root: Path, agent: str) -> Path:
    """An agent's transcripts below `root`, the folder of all agents."""
    return root / agent_id(agent) / "sessions"


def fresh(root: Path, agent: str, session: str) -> Path:
    """Where a new session's file is to be made; making it fails where there is something already, a link too.

    Raises UserError for an id that is none.
    """
    return folder(root, agent) / f"{session_id(session)}.jsonl"


def transcript(root: Path, agent: str, session: str) -> Path:
    """The file of a session. Blocks. Raises UserError for an id that is none, Forbidden for one that leads out."""
    path = fresh(root, agent, session)
    if os.path.realpath(path) != os.path.join(os.path.realpath(path.parent), path.name):  # noqa: PTH118
        raise Forbidden(f"session {session} leads out of {path.parent}: a transcript must be a plain file there")
    return path
