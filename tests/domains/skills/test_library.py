"""What is installed: pinned, looked after, taken away without what others wrote."""

from __future__ import annotations

import os
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from garra.core import bundle
from garra.core.errors import Conflict, NotFound, Unavailable, UserError
from garra.domains.skills.fetch import Fetched, Fetcher
from garra.domains.skills.library import Library
from garra.domains.skills.origin import Origin, origin
from garra.domains.skills.records import FILE
from garra.io.process.door import Programs
from garra.sdk.web import Visit
from tests.domains.skills.making import FILES, SKILL, zipped

FROM = Origin("archive", "/x/trip.zip")


@pytest.fixture
def library(tmp_path: Path) -> Library:
    return Library(tmp_path / "state")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "state" / "skills" / "trip-kit"


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_an_install_is_a_copy_with_a_record(library: Library, folder: Path) -> None:
    record = library.install(folder, "Trip Kit", Fetched(FROM, FILES, archive="ab"), 5)
    assert files(folder) == FILES
    assert library.find("trip-kit", folder.parent) == library.find("Trip Kit", folder.parent) == record
    assert library.find("trip-kit", folder) is None
    assert (record.files, record.archive, record.installed_at) == (bundle.digests(FILES), "ab", 5)
    assert not library.changes(record)
    assert os.access(folder / "scripts/go.sh", os.X_OK)
    assert not os.access(folder / "SKILL.md", os.X_OK)
    assert folder.stat().st_mode & 0o077 == 0
    assert [path.name for path in folder.parent.iterdir()] == ["trip-kit"]
    with pytest.raises(Conflict, match=r"installed from /x/trip\.zip"):
        library.install(folder, "Trip Kit", Fetched(FROM, FILES), 6)


def test_what_is_changed_afterwards_is_noticed_and_kept_when_it_goes(library: Library, folder: Path) -> None:
    record = library.install(folder, "Trip Kit", Fetched(FROM, FILES), 5)
    (folder / "SKILL.md").write_bytes(b"mine")
    (folder / "notes").mkdir()
    (folder / "notes" / "own.txt").write_bytes(b"own")
    assert library.changes(record).words() == "changed: SKILL.md, new: notes/own.txt"
    gone = library.remove(record)
    assert not folder.exists()
    assert (gone.files, gone.kept) == (("scripts/go.sh",), ("SKILL.md", "notes/own.txt"))
    assert files(Path(gone.aside)) == {"SKILL.md": b"mine", "notes/own.txt": b"own"}
    assert library.records.every() == {}


def test_what_is_as_it_was_leaves_nothing_behind(library: Library, folder: Path) -> None:
    record = library.install(folder, "Trip Kit", Fetched(FROM, FILES), 5)
    assert library.remove(record).aside == ""
    assert list(folder.parent.iterdir()) == []
    record = library.install(folder, "Trip Kit", Fetched(FROM, FILES), 5)
    subprocess.run(["/bin/rm", "-rf", str(folder)], check=True)
    assert library.changes(record).gone == tuple(sorted(FILES))
    assert library.remove(record).files == ()


def test_an_update_shows_what_it_would_change_and_keeps_what_was_changed(library: Library, folder: Path) -> None:
    record = library.install(folder, "Trip Kit", Fetched(FROM, FILES), 5)
    newer = Fetched(FROM, {"SKILL.md": SKILL + b"More.\n", "b": b"b"})
    assert list(library.preview(record, newer).lines()) == ["+ b", "~ SKILL.md", "- scripts/go.sh"]
    record, aside = library.update(record, newer, 9)
    assert (files(folder), aside, record.installed_at, record.updated_at) == (newer.files, "", 5, 9)
    (folder / "b").write_bytes(b"mine")
    with pytest.raises(Conflict, match=r"changed: b.*--force"):
        library.update(record, newer, 10)
    _, aside = library.update(record, newer, 10, force=True)
    assert files(Path(aside)) == {"b": b"mine"}
    assert files(folder) == newer.files


def test_what_was_not_installed_is_replaced_only_by_force_and_then_kept(library: Library, folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_bytes(b"by hand")
    with pytest.raises(Conflict, match="did not install it"):
        library.install(folder, "x", Fetched(FROM, FILES), 1)
    library.install(folder, "x", Fetched(FROM, FILES), 1, force=True)
    assert files(folder) == FILES
    (kept,) = (folder.parents[1] / "skills-kept").iterdir()
    assert files(kept) == {"SKILL.md": b"by hand"}


def test_a_link_in_the_way_is_not_followed(library: Library, folder: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_bytes(b"x")
    folder.parent.mkdir(parents=True)
    folder.symlink_to(outside)
    library.install(folder, "x", Fetched(FROM, FILES), 1, force=True)
    assert files(outside) == {"precious": b"x"}
    record = library.at(folder)
    assert record
    (folder / "deep").symlink_to(outside)
    library.remove(record)
    assert files(outside) == {"precious": b"x"}


def test_a_damaged_record_is_not_guessed_at(library: Library, tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / FILE).write_text('{"skills": [{}]}')
    with pytest.raises(Unavailable, match="is damaged"):
        library.records.every()


# ---- where it comes from


@pytest.mark.parametrize(
    ("text", "shown", "name"),
    [
        ("git:me/kit", "git:https://github.com/me/kit.git", "kit"),
        ("github:me/kit@feature/foo", "git:https://github.com/me/kit.git@feature/foo", "kit"),
        ("git:https://host.example/a/kit@v1", "git:https://host.example/a/kit@v1", "kit"),
        ("https://host.example/kit.git@v1", "git:https://host.example/kit.git@v1", "kit"),
        ("git:/srv/kit", "git:/srv/kit", "kit"),
        ("https://host.example/kit.tar.gz", "https://host.example/kit.tar.gz", "kit"),
    ],
)
def test_sources(text: str, shown: str, name: str) -> None:
    found = origin(text, Path("/nowhere"), Path("/home/me"))
    assert found.shown == shown
    assert found.name == name


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("@me/kit", "a registry of skills"),
        ("clawhub:kit", "a registry of skills"),
        ("https://me:pw@host/x.zip", "no address"),
        ("https:///x.zip", "no address"),
        ("https://[x", "no address"),
        ("git:--upload-pack=evil", "no repository"),
        ("git:ext::sh -c evil", "no repository"),
        ("git:ssh://host/x", "no repository"),
        ("git:me/kit@--evil", "no branch"),
        ("nowhere", "there is no nowhere; a skill comes from"),
    ],
)
def test_what_is_no_source(text: str, why: str) -> None:
    with pytest.raises(UserError, match=why):
        origin(text, Path("/nowhere"), Path("/home/me"))


def test_files_and_folders_of_this_machine(tmp_path: Path) -> None:
    (tmp_path / "kit").mkdir()
    (tmp_path / "kit" / "SKILL.md").write_bytes(SKILL)
    (tmp_path / "kit.zip").write_bytes(zipped(FILES))
    assert origin("kit", tmp_path, tmp_path) == origin("~/kit/SKILL.md", Path("/"), tmp_path)
    assert origin("./kit.zip", tmp_path, tmp_path).kind == "archive"
    with pytest.raises(NotFound):
        origin("./none.zip", tmp_path, tmp_path)


class Answer:
    def __init__(self, data: bytes, status: int = 200, pieces: int = 1) -> None:
        self.data, self.status, self.pieces = data, status, pieces
        self.headers: Mapping[str, str] = {}
        self.url = ""

    async def chunks(self) -> AsyncIterator[bytes]:
        for _ in range(self.pieces):
            yield self.data

    async def read(self, limit: int = 1 << 20) -> bytes:
        return self.data


@pytest.fixture
async def programs() -> AsyncIterator[Programs]:
    door = Programs()
    yield door
    await door.close()


def fetcher(programs: Programs, data: bytes = b"", status: int = 200) -> Fetcher:
    @asynccontextmanager
    async def visit(asked: Visit) -> AsyncIterator[Answer]:
        assert asked.url.startswith("http")
        yield Answer(data, status)

    return Fetcher(visit, programs, os.environ["PATH"])


@pytest.mark.req("EXT-11")
async def test_an_archive_by_its_address(programs: Programs) -> None:
    data = zipped(FILES)
    pinned = bundle.digest(data)
    at = Origin("url", "https://host/x.zip")
    found = await fetcher(programs, data).get(at)
    assert (found.files, found.archive) == (FILES, pinned)
    assert (await fetcher(programs, data).get(Origin("url", "http://host/x.zip"), sha256=pinned.upper())).files == FILES
    for door, asked, sha256, why in (
        (fetcher(programs, data), at, "0" * 64, "is not what it should be"),
        (fetcher(programs, data), Origin("url", "http://host/x.zip"), "", "changed on the way"),
        (fetcher(programs, data, 404), at, "", "answers 404"),
        (fetcher(programs, data), Origin("folder", "/x"), pinned, "--sha256 is that of an archive"),
        (fetcher(programs), Origin("archive", "/none.zip"), "", "cannot be read"),
    ):
        with pytest.raises(UserError, match=why):
            await door.get(asked, sha256=sha256)


async def test_a_download_without_end_is_cut(programs: Programs) -> None:
    @asynccontextmanager
    async def visit(_: Visit) -> AsyncIterator[Answer]:
        yield Answer(b"\0" * (1 << 20), pieces=1_000)

    with pytest.raises(UserError, match="larger than 16 MiB"):
        await Fetcher(visit, programs, "").get(Origin("url", "https://host/x.zip"))


def repository(at: Path) -> str:
    for name, data in FILES.items():
        (at / name).parent.mkdir(parents=True, exist_ok=True)
        (at / name).write_bytes(data)
    (at / ".gitattributes").write_bytes(b"* filter=evil\n")
    env = {"PATH": os.environ["PATH"], "HOME": str(at), "GIT_CONFIG_GLOBAL": "/dev/null"}
    who = ("-c", "user.name=x", "-c", "user.email=x@y")
    for words in (("init", "-q", "-b", "main"), ("add", "."), ("commit", "-qm", "one"), ("tag", "v1")):
        subprocess.run(["git", *who, *words], cwd=at, env=env, check=True, capture_output=True)
    hook = at / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {at}/ran\n")
    hook.chmod(0o755)
    done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=at, env=env, check=True, capture_output=True)
    return done.stdout.decode().strip()


@pytest.mark.needs("git")
async def test_a_repository(programs: Programs, tmp_path: Path) -> None:
    at = tmp_path / "kit"
    commit = repository(at)
    found = await fetcher(programs).get(Origin("git", str(at), "v1"))
    assert found.files == {**FILES, ".gitattributes": b"* filter=evil\n"}
    assert found.version == commit
    assert (await fetcher(programs).get(Origin("git", str(at)))).version == commit
    assert not (at / "ran").exists()
    with pytest.raises(UserError, match=r"git cannot get git:.*@v9: .*v9"):
        await fetcher(programs).get(Origin("git", str(at), "v9"))


async def test_without_git(programs: Programs) -> None:
    with pytest.raises(UserError, match="git is not installed"):
        await replace(fetcher(programs), path="/nowhere").get(Origin("git", "/x"))
