"""The child that holds a model. It reads requests as JSON lines and writes what comes of them as JSON lines.

In:  {"op": "load", "path": …, "context": tokens, "threads": n} · {"op": "chat", "body": …} · {"op": "cancel"}
Out: {"ready": true} · {"chunk": …} · {"error": "one line"} · {"end": true}, each chat ending in error or end.

Run as `python -m garra.builtin.apis.local.worker`.
"""

from __future__ import annotations

import importlib
import json
import os
import secrets
import select
import sys
from typing import Any, BinaryIO


class Mouth:
    """Where the answers go. The runtime writes its log wherever it likes, so its standard output becomes another."""

    def __init__(self) -> None:
        self._out: BinaryIO = os.fdopen(os.dup(1), "wb", buffering=0)
        os.dup2(2, 1)

    def say(self, **body: Any) -> None:
        self._out.write(json.dumps(body, ensure_ascii=False).encode() + b"\n")


class Ears:
    """Lines as they come; `cancelled` looks without waiting."""

    def __init__(self) -> None:
        self._rest = b""

    def line(self) -> dict[str, Any] | None:
        """The next request; None when nobody speaks any more."""
        while b"\n" not in self._rest:
            data = os.read(0, 65_536)
            if not data:
                return None
            self._rest += data
        head, _, self._rest = self._rest.partition(b"\n")
        found = json.loads(head)
        return found if isinstance(found, dict) else {}

    def cancelled(self) -> bool:
        """Whether the request at hand is no longer wanted."""
        while b"\n" in self._rest or select.select([0], [], [], 0)[0]:
            found = self.line()
            if found is None or found.get("op") == "cancel":
                return True
        return False


def loaded(asked: dict[str, Any]) -> Any:
    """A running model, for this process alone: the port it opens wants a key that nobody has."""
    runtime = importlib.import_module("xllamacpp")
    settings = runtime.CommonParams()
    settings.model.path = asked["path"]
    settings.n_ctx = int(asked["context"])
    settings.n_parallel = 1
    settings.cpuparams.n_threads = int(asked["threads"])
    settings.cpuparams_batch.n_threads = int(asked["threads"])
    settings.use_jinja = True
    settings.warmup = False
    settings.api_keys = [secrets.token_hex(16)]
    return runtime.Server(settings)


def chat(server: Any, body: dict[str, Any], mouth: Mouth, ears: Ears) -> None:
    def heard(chunk: Any) -> bool:
        """Called for each piece; True stops."""
        mouth.say(chunk=chunk if isinstance(chunk, dict) else json.loads(chunk))
        return ears.cancelled()

    server.handle_chat_completions({**body, "stream": True, "stream_options": {"include_usage": True}}, heard)


def main() -> int:
    mouth, ears, server = Mouth(), Ears(), None
    while (asked := ears.line()) is not None:
        try:
            match asked.get("op"):
                case "load":
                    server = loaded(asked)
                    mouth.say(ready=True)
                case "chat":
                    chat(server, asked["body"], mouth, ears)
                    mouth.say(end=True)
                case _:  # a cancel that came too late
                    continue
        except (RuntimeError, ValueError, ImportError, OSError, AttributeError, TypeError) as error:
            mouth.say(error=" ".join(f"{type(error).__name__}: {error}".split())[:300])
    return 0


if __name__ == "__main__":
    sys.exit(main())
