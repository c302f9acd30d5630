"""Archives and folders: what is let in, and what is refused with one line."""

from __future__ import annotations

import gzip
import os
import struct
import tarfile
from pathlib import Path

import pytest

from garra.core import bundle
from garra.core.errors import UserError
from garra.domains.skills import pack
from tests.domains.skills.making import FILES, SKILL, member, taped, zipped

LINK = 0o120777


def named(value: object) -> str:
    """A test is not named after an archive: the time of its making stands in it, and each worker makes its own."""
    return value if isinstance(value, str) else "archive"


@pytest.mark.parametrize(
    "data",
    [
        zipped(FILES),
        zipped({f"repo-main/{name}": data for name, data in FILES.items()}),
        taped(FILES),
        taped({f"./repo/{name}": data for name, data in FILES.items()}, member("repo", tarfile.DIRTYPE)),
        taped(FILES, mode="w"),
    ],
    ids=named,
)
def test_a_skill_in_an_archive(data: bytes) -> None:
    assert pack.archive(data) == FILES


def bomb() -> bytes:
    """A .zip that says of a file that it is small."""
    data = bytearray(zipped({"SKILL.md": SKILL, "big": b"\0" * (bundle.FILE_BYTES * 4)}))
    for mark, at in ((b"PK\x01\x02", 24), (b"PK\x03\x04", 22)):
        found = data.rfind(mark)
        data[found + at : found + at + 4] = struct.pack("<I", 10)
    return bytes(data)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (zipped({**FILES, "../evil.sh": b"x"}), "leads out"),
        (zipped({**FILES, "/etc/cron.d/evil": b"x"}), "leads out"),
        (zipped({**FILES, "a\\..\\..\\evil": b"x"}), "holds a character"),
        (zipped({**FILES, "link": b"/etc/passwd"}, {"link": LINK}), "is a link"),
        (zipped({**FILES, "pipe": b""}, {"pipe": 0o010644}), "neither a file nor a folder"),
        (zipped({**FILES, "skill.MD": b"x"}), "cannot both be there"),
        (zipped({**FILES, "big": b"\0" * (bundle.FILE_BYTES + 1)}), "larger than 1 MiB"),
        (zipped({"README.md": b"x"}), "no SKILL.md"),
        (zipped({f"f{number}": b"" for number in range(20_001)}), "20,000 entries"),
        (bomb(), "broken one|larger than"),
        (taped({**FILES, "../evil": b"x"}), "leads out"),
        (taped({**FILES, "/evil": b"x"}), "leads out"),
        (taped(FILES, member("l", tarfile.SYMTYPE, "/etc/passwd")), "is a link"),
        (taped(FILES, member("l", tarfile.LNKTYPE, "SKILL.md")), "is a link"),
        (taped(FILES, member("null", tarfile.CHRTYPE)), "neither a file nor a folder"),
        (taped(FILES, member("pipe", tarfile.FIFOTYPE)), "neither a file nor a folder"),
        (gzip.compress(b"\0" * (pack.UNPACKED + 1)), "unpacks to more than"),
        (gzip.compress(b"x" * 2_000)[:-30], "broken one"),
        (gzip.compress(b"no tape"), "broken one"),
        (b"PK\x03\x04nonsense", "broken one"),
        (b"nonsense", "broken one"),
        (b"", "broken one|no SKILL.md"),
    ],
    ids=named,
)
def test_what_a_hostile_archive_holds_is_refused_in_one_line(data: bytes, why: str) -> None:
    with pytest.raises(UserError, match=why) as refused:
        pack.archive(data)
    assert "\n" not in refused.value.message


def test_an_encrypted_archive_is_refused() -> None:
    data = bytearray(zipped(FILES))
    for mark, at in ((b"PK\x01\x02", 8), (b"PK\x03\x04", 6)):
        data[data.find(mark) + at] |= 1
    with pytest.raises(UserError, match="encrypted"):
        pack.archive(bytes(data))


def test_a_folder(tmp_path: Path) -> None:
    for name, data in {**FILES, ".git/hooks/post-checkout": b"evil", "node_modules/x": b"y"}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(data)
    assert pack.folder(tmp_path) == FILES
    (tmp_path / "escape").symlink_to("/etc")
    with pytest.raises(UserError, match="escape is a link"):
        pack.folder(tmp_path)
    (tmp_path / "escape").unlink()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UserError, match="pipe is neither"):
        pack.folder(tmp_path)


def test_one_of_several_skills(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / "skills" / name).mkdir(parents=True)
        (tmp_path / "skills" / name / "SKILL.md").write_bytes(name.encode())
    with pytest.raises(UserError, match="holds 2 skills"):
        pack.folder(tmp_path)
    assert pack.folder(tmp_path, "skills/two") == {"SKILL.md": b"two"}
