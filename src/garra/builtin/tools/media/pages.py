"""Reads the text of a PDF, as a program of its own: `python -m garra.builtin.tools.media.pages`.

Standard input: a JSON line `{"pages": [[first, last], …], "most", "password", "chars"}`, then the file. Standard
output: JSON `{"count", "title", "pages": [[number, text], …]}`, or `{"error"}`.
"""

from __future__ import annotations

import importlib
import io
import json
import sys
from typing import Any


def main() -> None:
    asked = json.loads(sys.stdin.buffer.readline())
    try:
        said = read(sys.stdin.buffer.read(), asked)
    except (ArithmeticError, AttributeError, LookupError, OSError, RecursionError, TypeError, ValueError) as error:
        said = {"error": f"it cannot be read ({type(error).__name__})"}
    sys.stdout.write(json.dumps(said))


def read(data: bytes, asked: dict[str, Any]) -> dict[str, Any]:
    pypdf = importlib.import_module("pypdf")
    try:
        reader = pypdf.PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(asked["password"]):
            return {"error": "it is encrypted: give its password"}
        count = len(reader.pages)
        wanted = chosen(asked["pages"], count)[: asked["most"]]
        title = str((reader.metadata or {}).get("/Title") or "")[:300]
        found, room = [], asked["chars"]
        for number in wanted:
            text = reader.pages[number - 1].extract_text()[:room]
            room -= len(text)
            found.append([number, text])
            if room <= 0:
                break
    except pypdf.errors.PyPdfError as error:
        return {"error": f"it cannot be read ({type(error).__name__})"}
    return {"count": count, "title": title, "pages": found}


def chosen(ranges: list[list[int]], count: int) -> list[int]:
    """The numbers of the pages wanted, in order, each once; all of them when nothing is said."""
    if not ranges:
        return list(range(1, count + 1))
    return sorted({number for first, last in ranges for number in range(max(first, 1), min(last, count) + 1)})


if __name__ == "__main__":
    main()
