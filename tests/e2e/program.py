"""The real program in a home of its own: run it, and look at what it said."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Ran:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass
class Program:
    """An installation below `home`, and the command that runs on it."""

    home: Path
    env: dict[str, str] = field(default_factory=dict)

    @property
    def state(self) -> Path:
        return self.home / ".garra"

    @property
    def config(self) -> Path:
        return self.state / "garra.json"

    @property
    def variables(self) -> dict[str, str]:
        return {"HOME": str(self.home), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", **self.env}

    def configure(self, **config: Any) -> None:
        self.state.mkdir(mode=0o700, exist_ok=True)
        self.config.write_text(json.dumps(config))

    def argv(self, *words: str) -> list[str]:
        return [sys.executable, "-P", "-m", "garra", *words]

    def run(self, *words: str, text: str | None = "", cwd: Path | None = None) -> Ran:
        ran = subprocess.run(
            self.argv(*words),
            env=self.variables,
            cwd=cwd or self.home,
            input=text.encode() if text is not None else None,
            capture_output=True,
            check=False,
            timeout=60,
        )
        return Ran(ran.returncode, ran.stdout.decode(), ran.stderr.decode())

    async def arun(self, *words: str, text: str = "") -> Ran:
        """The same beside a server that lives in this loop."""
        return await asyncio.to_thread(self.run, *words, text=text)


def speaking(url: str, **more: Any) -> dict[str, Any]:
    """A configuration whose model is a test server at `url`."""
    provider = {
        "api": "openai-completions",
        "baseUrl": f"{url}/v1",
        "apiKey": "test",
        "models": [{"id": "fake", "name": "Fake"}],
    }
    return {
        "models": {"providers": {"fake": provider}},
        "agents": {"defaults": {"model": {"primary": "fake/fake"}}},
        **more,
    }
