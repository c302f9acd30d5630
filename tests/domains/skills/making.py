"""Archives, good and bad."""

from __future__ import annotations

import io
import tarfile
import zipfile

SKILL = b"""---
name: Trip Kit
description: Plans trips.
metadata: {"openclaw": {"requires": {"bins": ["curl"], "env": ["TRIP_KEY"]}, "primaryEnv": "TRIP_KEY",
  "install": [{"kind": "brew", "formula": "trip", "bins": ["curl"]}]}}
---
Plan it.
"""
FILES = {"SKILL.md": SKILL, "scripts/go.sh": b"#!/bin/sh\necho go\n"}


def zipped(files: dict[str, bytes], modes: dict[str, int] | None = None) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in files.items():
            info = zipfile.ZipInfo(name)
            info.create_system = 3
            info.external_attr = (modes or {}).get(name, 0o100644) << 16
            made.writestr(info, content)
    return data.getvalue()


def taped(files: dict[str, bytes], *odd: tarfile.TarInfo, mode: str = "w:gz") -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode=mode) as made:  # type: ignore[call-overload]
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            made.addfile(info, io.BytesIO(content))
        for info in odd:
            made.addfile(info)
    return data.getvalue()


def member(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info
