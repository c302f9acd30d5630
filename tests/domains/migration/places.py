"""Folders of other programs, as tests find them."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

ARCHIVE = Path(__file__).parents[2] / "fixtures" / "openclaw-2026.9.6.tar.xz"
"""The state folder that OpenClaw 2026.9.6 left behind four chats, a job, a pairing and a login, and its workspace."""


def openclaw(folder: Path, model: str = "http://127.0.0.1:9") -> Path:
    """Unpack it below `folder`, its model at `model`; the state folder."""
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    state = folder / "openclaw" / "state"
    config = state / "openclaw.json"
    text = config.read_text().replace("/tmp/openclaw-home/ws", str(folder / "openclaw" / "ws"))
    config.write_text(text.replace("http://127.0.0.1:19903", model))
    return state


def older(folder: Path) -> Path:
    """The same kind of state before there was a database."""
    state = folder / "older"
    sessions = state / "agents" / "main" / "sessions"
    sessions.mkdir(parents=True)
    (state / "credentials").mkdir()
    (state / "cron").mkdir()
    (state / "openclaw.json").write_text("{ $include: './models.json5', agents: { list: [{ id: 'main' }] } }")
    (state / "models.json5").write_text("{ models: { providers: {} } }")
    (state / "workspace").mkdir()
    (state / "workspace" / "MEMORY.md").write_text("# Memory\n- Tea at five\n")
    (state / "workspace" / "gone").symlink_to("/etc/passwd")
    (state / "credentials" / "telegram-allowFrom.json").write_text('{"version":1,"allowFrom":["42","*"]}')
    (state / "cron" / "jobs.json").write_text('{"version":1,"jobs":[{"id":"j","name":"tea"}]}')
    (state / "exec-approvals.json").write_text('{"version":1,"socket":{"token":"t"},"agents":{}}')
    (sessions / "sessions.json").write_text(
        json.dumps({"agent:main:main": {"sessionId": "one", "updatedAt": 5, "chatType": "direct"}})
    )
    head = '{"type":"session","version":3,"id":"%s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/home"}\n'
    said = '{"type":"message","id":"a","parentId":null,"message":{"role":"user","content":"hi","timestamp":1}}\n'
    (sessions / "one.jsonl").write_text(head % "one" + said + "{torn")
    (sessions / "two.jsonl").write_text(head % "two" + said)
    return state
