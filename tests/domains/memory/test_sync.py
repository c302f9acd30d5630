"""The index follows the files: what is new is read, what is gone is forgotten, all of it can be made again."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from garra.core.memory_words import match
from garra.core.taint import Mark
from garra.domains.memory import rows, sync
from garra.domains.memory.rows import Asked, Row
from garra.domains.memory.sources import Extra, Places, found
from garra.domains.memory.sync import Cut
from garra.io.store.db import Database
from tests.domains.memory.year import add, note, person, places, transcript

MAIN = "agent:main:main"


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    db = sync.opened(tmp_path / "memory.sqlite")
    yield db
    db.close_now()


def hits(db: Database, text: str, owners: tuple[str, ...] = ("",)) -> list[Row]:
    ids = db.read_now(lambda c: rows.search(c, Asked(match(text), owners, ("memory", "sessions"))))
    picked = db.read_now(lambda c: rows.pick(c, [row for row, _ in ids], owners))
    return [picked[row] for row, _ in ids]


@pytest.mark.req("SESS-16")
def test_files_and_chats_are_found_with_their_lines(tmp_path: Path, db: Database) -> None:
    where = places(tmp_path)
    note(tmp_path, "MEMORY.md", "# People\n- Ann plays the cello\n\n# Home\n- 钥匙在花盆底下\n")
    note(tmp_path, "memory/2026-05-02.md", "- the boiler was mended\n")
    note(tmp_path, "memory/deep/trips.md", "- a ferry to Gozo\n")
    note(tmp_path, "other.md", "- Ann is not here\n")
    transcript(tmp_path, "a", MAIN, [("user", "Where is my passport?"), ("assistant", "In the blue drawer.")])
    done = sync.sync(db, where, Cut())
    assert (done.files, done.gone, done.faults) == (4, 0, ())
    assert [(row.path, row.first, row.last) for row in hits(db, "who plays cello")] == [("MEMORY.md", 1, 3)]
    assert [(row.path, row.first) for row in hits(db, "钥匙")] == [("MEMORY.md", 4)]
    assert [row.path for row in hits(db, "boilers")] == ["memory/2026-05-02.md"]
    assert [row.path for row in hits(db, "ferry")] == ["memory/deep/trips.md"]
    said = hits(db, "passport")[0]
    assert (said.path, said.first, said.last, said.session) == ("sessions/a.jsonl", 3, 4, MAIN)
    assert said.text == "User: Where is my passport?\nAssistant: In the blue drawer."
    assert sync.sync(db, where, Cut()) == sync.Done()


def test_only_what_changed_is_read_again(tmp_path: Path, db: Database) -> None:
    where = places(tmp_path)
    note(tmp_path, "MEMORY.md", "- one\n")
    path = transcript(tmp_path, "a", MAIN, [("user", "first"), ("assistant", "1"), ("user", "second")])
    sync.sync(db, where, Cut())
    before = hits(db, "first")[0].id
    add(path, [("assistant", "zwei"), ("user", "third"), ("toolResult", "page"), ("assistant", "drei")])
    done = sync.sync(db, where, Cut())
    assert done.files == 1
    assert done.bytes < path.stat().st_size
    assert hits(db, "first")[0].id == before
    assert [(row.first, row.text) for row in hits(db, "second")] == [(5, "User: second\nAssistant: zwei")]
    third = hits(db, "drei")[0]
    assert (third.first, third.last, third.marks) == (7, 9, (Mark("web", "x"),))
    add(path, [("user", "fourth")])
    sync.sync(db, where, Cut())
    assert hits(db, "fourth")[0].marks == (Mark("web", "x"),)
    path.unlink()
    assert sync.sync(db, where, Cut()).gone == 1
    assert hits(db, "first") == []
    note(tmp_path, "MEMORY.md", "- two\n")
    sync.sync(db, where, Cut())
    assert (len(hits(db, "two")), hits(db, "one")) == (1, [])


def test_a_transcript_written_anew_is_read_anew(tmp_path: Path, db: Database) -> None:
    where = places(tmp_path)
    long = "x" * 5_000
    transcript(tmp_path, "a", MAIN, [("user", f"secret apple {long}"), ("user", "more")])
    sync.sync(db, where, Cut())
    transcript(tmp_path, "a", MAIN, [("user", f"removed {long}"), ("user", "more"), ("user", "pear")])
    sync.sync(db, where, Cut())
    assert (hits(db, "apple"), len(hits(db, "pear")), len(hits(db, "removed"))) == ([], 1, 1)


def test_a_long_transcript_is_read_in_slices(tmp_path: Path, db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sync, "SLICE", 700)
    where = places(tmp_path)
    said = [(role, f"{role} word{at} " + "y" * (at * 37 % 900)) for at in range(60) for role in ("user", "assistant")]
    transcript(tmp_path, "a", MAIN, said)
    sync.sync(db, where, Cut())
    for at in range(60):
        found = hits(db, f"word{at}")
        assert [(row.first, row.last) for row in found] == [(3 + 2 * at, 4 + 2 * at)]


def test_what_is_no_conversation_of_a_person_is_left_out(tmp_path: Path, db: Database) -> None:
    where = places(tmp_path)
    transcript(tmp_path, "sub", "agent:main:subagent:1", [("user", "apple")])
    transcript(tmp_path, "job", "cron:x", [("user", "apple")])
    (tmp_path / "sessions" / "torn.jsonl").write_text('{"type":"session"\n{"type":"message","mess')
    (tmp_path / "sessions" / "empty.jsonl").write_text("")
    (tmp_path / "sessions" / "a.jsonl.reset.1").write_text("apple")
    assert sync.sync(db, where, Cut()).faults == ()
    assert hits(db, "apple") == []


def test_transcripts_of_the_original_tell_their_key_in_the_table(tmp_path: Path, db: Database) -> None:
    where = places(tmp_path)
    folder = tmp_path / "sessions"
    (folder / "sessions.json").write_text(f'{{"{MAIN}": {{"sessionId": "old"}}, "x": 1}}')
    (folder / "old.jsonl").write_text(
        '{"type":"session","id":"old"}\n{"type":"message","id":"1","message":{"role":"user","content":"kiwi"}}\n'
    )
    sync.sync(db, where, Cut())
    assert [row.session for row in hits(db, "kiwi")] == [MAIN]


def test_paths_of_the_owner_are_searched_and_links_are_not_followed(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    (notes / "sub").mkdir(parents=True)
    (notes / "sub" / "a.md").write_text("x")
    (notes / "b.md").write_text("x")
    (notes / "c.txt").write_text("x")
    (notes / "one.md").write_text("x")
    where = places(tmp_path, Extra(str(notes), "sub/*.md"), Extra(str(notes / "one.md")), Extra("../notes/none"))
    (tmp_path / "work" / "memory" / "link.md").symlink_to(notes / "b.md")
    note(tmp_path, "memory/big.md", "x" * (5 << 20))
    assert [each.path for each in found(where)] == [f"{notes}/sub/a.md", f"{notes}/one.md"]
    (tmp_path / "work" / "folder").symlink_to(notes)
    assert found(places(tmp_path, Extra("folder"))) == []
    assert found(Places("main", str(tmp_path / "none"), str(tmp_path / "none"))) == []


@pytest.mark.req("SESS-16")
def test_a_damaged_index_is_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "memory.sqlite"
    path.write_bytes(b"no database at all" * 100)
    note(tmp_path, "MEMORY.md", "- kiwi\n")
    db = sync.opened(path)
    sync.sync(db, places(tmp_path), Cut())
    assert len(hits(db, "kiwi")) == 1
    db.close_now()
    sync.removed(path)
    db = sync.opened(path)
    sync.sync(db, places(tmp_path), Cut())
    assert len(hits(db, "kiwi")) == 1
    db.close_now()


def test_other_pieces_are_made_when_their_size_is_set(tmp_path: Path, db: Database) -> None:
    where = places(tmp_path)
    note(tmp_path, "MEMORY.md", "\n".join(f"kiwi {at} and some more words" for at in range(200)))
    sync.sync(db, where, Cut())
    few = len(hits(db, "kiwi"))
    assert sync.waiting(db, where, Cut(100, 20))[1] > 0
    sync.sync(db, where, Cut(100, 20))
    assert len(hits(db, "kiwi")) > 2 * few
    assert sync.waiting(db, where, Cut(100, 20)) == ([], 0)
    assert sync.sync(db, where, Cut(100, 20), force=True).files == 1


def test_a_file_that_is_only_touched_keeps_its_rows(tmp_path: Path, db: Database) -> None:
    where = places(tmp_path)
    note(tmp_path, "MEMORY.md", "- kiwi\n")
    sync.sync(db, where, Cut())
    before = hits(db, "kiwi")[0].id

    os.utime(tmp_path / "work" / "MEMORY.md", (1, 1))
    assert sync.sync(db, where, Cut()).files == 1
    assert hits(db, "kiwi")[0].id == before


def test_vectors_are_kept_by_their_text(tmp_path: Path, db: Database) -> None:
    where = places(tmp_path)
    transcript(tmp_path, "a", MAIN, [("user", "ok"), ("assistant", "x"), ("user", "Ann plays the cello")])
    sync.sync(db, where, Cut())
    wanted = db.read_now(lambda c: rows.pending(c, "one", 9))
    assert [text for _, text in wanted] == ["Ann plays the cello"]
    db.write_now(lambda c: rows.store(c, "one", {wanted[0][0]: b"\0\0\0\0"}))
    sync.sync(db, where, Cut(), force=True)
    assert db.read_now(lambda c: rows.pending(c, "one", 9)) == []
    db.write_now(lambda c: rows.sweep(c, "two"))
    counts = db.read_now(lambda c: rows.counts(c, "one"))
    assert (counts.wanted, counts.done, counts.files) == (1, 1, {"sessions": 1})
    db.write_now(lambda c: rows.store(c, "two", {wanted[0][0]: b"\0\0\0\0"}))
    db.write_now(lambda c: rows.sweep(c, "two"))
    assert db.read_now(lambda c: rows.counts(c, "one")).done == 0


def test_words_of_a_person_are_that_persons(tmp_path: Path, db: Database) -> None:
    where = places(tmp_path)
    transcript(tmp_path, "a", MAIN, [("user", "kiwi one")], **person("1"))
    transcript(tmp_path, "b", MAIN, [("user", "kiwi two")])
    sync.sync(db, where, Cut())
    assert [row.text for row in hits(db, "kiwi", ("telegram:default:1",))] == ["User: kiwi one"]
    assert [row.text for row in hits(db, "kiwi")] == ["User: kiwi two"]
    assert db.read_now(rows.owners) == ("", "telegram:default:1")
    assert hits(db, "kiwi", ()) == []
