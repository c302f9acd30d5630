"""The built web page is that of its sources, whole, small, and asks nobody but its own gateway."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
WEB = ROOT / "web"
BUILT = ROOT / "src" / "garra" / "faces" / "web" / "assets"
TOPS = ("index.html", "package.json", "package-lock.json", "tsconfig.json", "vite.config.ts")
FOLDERS = ("public", "src", "tools")
FIRST_BYTES = 150 * 1024
FOREIGN = re.compile(rb"https?://(?!www\.w3\.org/|127\.0\.0\.1|lit\.dev/)[a-z0-9.-]+\.[a-z]{2,}")


def manifest() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((BUILT / "manifest.json").read_text())
    return found


def sources() -> list[str]:
    """Every file the page is made from, as web/tools/sources.mjs lists them."""
    below = [path for folder in FOLDERS for path in (WEB / folder).rglob("*") if path.is_file()]
    return sorted([*TOPS, *(path.relative_to(WEB).as_posix() for path in below)])


def test_the_build_is_that_of_the_sources() -> None:
    whole = hashlib.sha256()
    for name in sources():
        whole.update(f"{name}\0{hashlib.sha256((WEB / name).read_bytes()).hexdigest()}\n".encode())
    assert manifest()["sources"] == whole.hexdigest(), "run: cd web && npm run build"


def test_every_file_is_named_and_as_it_was_built() -> None:
    files = manifest()["files"]
    there = {path.relative_to(BUILT).as_posix() for path in BUILT.rglob("*") if path.is_file()}
    packed = {f"{name}.gz" for name, file in files.items() if file["gzip"]}
    assert there == {"manifest.json", *files, *packed}
    for name, file in files.items():
        data = (BUILT / name).read_bytes()
        assert hashlib.sha256(data).hexdigest() == file["sha256"], name
        assert not file["gzip"] or gzip.decompress((BUILT / f"{name}.gz").read_bytes()) == data, name


def test_the_first_paint_is_small() -> None:
    found = manifest()
    sizes = [found["files"][name]["gzip"] or found["files"][name]["size"] for name in found["first"]]
    assert sum(sizes) <= FIRST_BYTES


def test_the_page_names_no_other_host() -> None:
    for path in (path for path in BUILT.rglob("*") if path.suffix in (".js", ".css", ".html")):
        assert not FOREIGN.findall(path.read_bytes()), path.name
