"""The tools for files, each as a model calls it."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path

from garra.core.messages import Image
from tests.builtin.tools.place import Place


def put(place: Place, name: str, data: str | bytes) -> Path:
    path = place.root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


async def got(path: Path) -> bytes:
    return await asyncio.to_thread(path.read_bytes)


async def test_reading_text(place: Place) -> None:
    put(place, "a.txt", "\ufeffone\r\ntwo\nthree")
    assert await place.said("read", path="a.txt") == "one\r\ntwo\nthree"
    assert (
        await place.said("read", file_path="a.txt", offset=2, limit=1) == "two\n\n[Lines 2 to 2; more follow: offset=3]"
    )
    assert await place.said("read", path="a.txt", offset="3") == "three"
    assert "has 3 lines; offset 9 is past its end" in await place.refused("read", path="a.txt", offset=9)
    put(place, "empty", "")
    assert await place.said("read", path="empty") == "(empty is empty)"
    put(place, "latin", b"caf\xe9")
    assert await place.said("read", path="latin") == "caf\ufffd"


async def test_reading_what_is_long(place: Place) -> None:
    put(place, "long", "".join(f"line {number}\n" for number in range(1, 400_001)))
    result = await place.call("read", path="long")
    assert result.text.endswith("[Lines 1 to 2000; more follow: offset=2001]")
    assert (await place.said("read", path="long", offset=399_999)) == "line 399999\nline 400000\n"
    put(place, "wide", "x" * 3_000_000 + "\nend\n")
    wide = await place.call("read", path="wide")
    assert len(wide.text) < 45_000
    assert wide.details["lines"] == [1, 1]


async def test_reading_pictures_and_what_is_neither(place: Place) -> None:
    png = b"\x89PNG\r\n\x1a\n" + b"x" * 50
    put(place, "a.png", png)
    result = await place.call("read", path="a.png")
    assert result.content[1] == Image("image/png", base64.b64encode(png).decode())
    for name, head, kind in (("j", b"\xff\xd8\xff", "jpeg"), ("g", b"GIF89a", "gif"), ("w", b"RIFF0000WEBP", "webp")):
        put(place, name, head)
        part = (await place.call("read", path=name)).content[1]
        assert isinstance(part, Image)
        assert part.media_type == f"image/{kind}"
    put(place, "huge.png", png + b"x" * (5 << 20))
    assert "at most" in await place.refused("read", path="huge.png")
    put(place, "program", b"\x7fELF\0\0")
    assert "not text" in await place.refused("read", path="program")
    assert "no such file" in await place.refused("read", path="absent")


async def test_writing(place: Place) -> None:
    assert await place.said("write", path="d/e/f.txt", content="é\n") == "Wrote 3 bytes to d/e/f.txt"
    assert await got(place.root / "d/e/f.txt") == "é\n".encode()
    await place.said("write", file_path="d/e/f.txt", content="")
    assert await got(place.root / "d/e/f.txt") == b""


async def test_editing(place: Place) -> None:
    path = put(place, "a.py", "\ufeffone\r\ntwo\r\ntwo\r\n")
    result = await place.call("edit", path="a.py", edits=[{"oldText": "one\ntwo", "newText": "1\n2"}])
    assert not result.is_error
    assert await got(path) == "\ufeff1\r\n2\r\ntwo\r\n".encode()
    assert "-two" in result.details["diff"]
    await place.said("edit", file_path="a.py", old_string="two", new_string="zwei", replace_all=True)
    await place.said("edit", path="a.py", edits=[{"old_string": "zwei", "new_string": "drei"}])
    assert "drei" in (await got(path)).decode()
    before = await got(path)
    both = [{"oldText": "drei", "newText": "x"}, {"oldText": "absent", "newText": "y"}]
    assert "edit 2 of 2" in await place.refused("edit", path="a.py", edits=both)
    assert await got(path) == before
    put(place, "bin", b"\xff\xfe")
    assert "not UTF-8" in await place.refused("edit", path="bin", edits=[{"oldText": "a", "newText": "b"}])
    assert "do not fit" in await place.refused("edit", path="a.py", edits=["x"])


async def test_patching(place: Place) -> None:
    put(place, "keep.py", "a\nb\nc\n")
    put(place, "old.py", "x\n")
    put(place, "dead.py", "x\n")
    lines = [
        "*** Begin Patch", "*** Add File: new/made.py", "+hello", "*** Update File: keep.py", "@@", " a", "-b", "+B",
        "*** Update File: old.py", "*** Move to: moved.py", "-x", "+y", "*** Delete File: dead.py",
        "*** Add File: dead.py", "+back", "*** Update File: new/made.py", "-hello", "+hi", "*** End Patch",
    ]  # fmt: skip
    said = await place.said("apply_patch", input="\n".join(lines))
    assert said.split("\n")[1:] == [
        "A new/made.py", "M keep.py", "R old.py -> moved.py", "D dead.py", "A dead.py", "M new/made.py",
    ]  # fmt: skip
    assert await got(place.root / "keep.py") == b"a\nB\nc\n"
    assert await got(place.root / "moved.py") == b"y\n"
    assert await got(place.root / "dead.py") == b"back\n"
    assert await got(place.root / "new/made.py") == b"hi\n"
    assert not await asyncio.to_thread((place.root / "old.py").exists)


async def test_a_patch_that_does_not_fit_changes_nothing(place: Place) -> None:
    put(place, "a", "1\n")
    put(place, "bin", b"\xff")
    head, tail = "*** Begin Patch\n*** Add File: made\n+x\n", "\n*** End Patch"
    for part, words in (
        ("*** Update File: a\n-2\n+3", "not in the file"),
        ("*** Add File: a\n+x", "exists already"),
        ("*** Update File: absent\n-2", "no such file"),
        ("*** Delete File: absent", "no such file"),
        ("*** Update File: bin\n-2", "not UTF-8"),
        ("*** Delete File: a\n*** Update File: a\n-1", "has removed it"),
        ("*** Update File: a\n*** Move to: made", "exists already"),
    ):
        assert words in await place.refused("apply_patch", patch=head + part + tail)
    assert sorted(path.name for path in place.root.iterdir()) == ["a", "bin"]


async def test_listing(place: Place) -> None:
    assert await place.said("ls") == "(empty)"
    put(place, "b/x", "")
    put(place, "a", "123")
    (place.root / "l").symlink_to("a")
    assert await place.said("ls") == "a  3\nb/\nl@"
    assert await place.said("ls", limit=1) == "a  3\n[2 more]"
    assert await place.said("ls", path="b") == "x  0"
    assert "no such" in await place.refused("ls", path="c")


async def test_finding(place: Place) -> None:
    for name in ("a.py", "src/b.py", "src/deep/c.py", "src/d.txt", ".git/e.py", "node_modules/f.py"):
        put(place, name, "")
    assert await place.said("find", pattern="*.py") == "a.py\nsrc/b.py\nsrc/deep/c.py"
    assert await place.said("find", pattern="**/*.py", path="src") == "src/b.py\nsrc/deep/c.py"
    assert await place.said("find", pattern="*.{txt,md}") == "src/d.txt"
    assert await place.said("find", pattern="*.rs") == "No file fits."
    assert "[2 more" in await place.said("find", pattern="*.py", limit=1)


async def test_searching(place: Place) -> None:
    put(place, "a.py", "import os\nx = 1\n")
    put(place, "src/b.txt", "IMPORT nothing\na+b\n")
    put(place, "bin", b"import\0")
    put(place, "large", "import " * 200_000)
    (place.root / "link").symlink_to("a.py")
    said = await place.said("grep", pattern="^import", ignoreCase=True)
    assert said == "a.py:1: import os\nsrc/b.txt:1: IMPORT nothing\n[1 files not searched: too large, or too many]"
    assert await place.said("grep", pattern="a+b", literal=True, path="src") == "src/b.txt:2: a+b"
    assert await place.said("grep", pattern="x", glob="*.py", path="a.py") == "a.py:2: x = 1"
    assert "[stopped at 1" in await place.said("grep", pattern=".", limit=1)
    assert "No line matches" in await place.said("grep", pattern="zzz")
    assert await place.said("grep", pattern="x", glob="*.none") == "No line matches."
    assert "no regular expression" in await place.refused("grep", pattern="(")
    assert "no such file" in await place.refused("grep", pattern="x", path="absent")
    assert await place.refused("grep", pattern="x", path="link/y") == "link/y: there is no such file or folder"
